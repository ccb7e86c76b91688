//! Servers with settings that make rare things frequent: containers that are removed at once, and a
//! small limit of what is accepted.

use crate::client::Client;
use crate::contention::plan;
use crate::drive::drive;
use crate::messages::names;
use redlatch_zookeeper::message::{
    Acl, Create, CreateKind, EnsembleReply, EnsembleRequest, MultiOperation,
};
use redlatch_zookeeper::session::Failure;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use support::needs_zookeeper;

#[test]
fn containers_are_swept_between_any_two_requests_and_no_lock_fails() {
    const CLIENTS: usize = 3;
    const SWEPT: usize = 4;
    let zookeeper = needs_zookeeper!();
    let sweep = "znode.container.checkIntervalMs=500";
    let ensemble = zookeeper.ensemble(1).property(sweep).start();
    // Each client has a lock of its own, so that its container is empty between two grants, and
    // goes on until the numbers have begun anew: then the container was another one.
    let run = |ports: Vec<u16>, number: usize| {
        let mut client = Client::new(&ports);
        let mut last = -1;
        let mut swept = 0;
        let mut grants = 0;
        while swept < SWEPT {
            let held = client.acquire(plan("/above/locks", &format!("lock {number}")));
            let (_, digits) = held.paths[0].rsplit_once('-').unwrap();
            let found: i32 = digits.parse().unwrap();
            swept += usize::from(found <= last);
            last = found;
            client.release();
            grants += 1;
            // The sweep comes at any time: no pause, a short one, and so on.
            thread::sleep(Duration::from_millis(grants % 7 * number as u64));
        }
        grants
    };
    let ports = ensemble.ports();
    let grants: Vec<u64> = thread::scope(|scope| {
        let start = |number| {
            let ports = ports.clone();
            scope.spawn(move || run(ports, number))
        };
        let threads: Vec<_> = (0..CLIENTS).map(start).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    println!("grants until each container was swept {SWEPT} times: {grants:?}");
}

#[test]
fn a_request_above_the_servers_limit_costs_the_connection_and_nothing_else() {
    let zookeeper = needs_zookeeper!();
    let ensemble = zookeeper
        .ensemble(1)
        .property("jute.maxbuffer=8192")
        .start();
    let [mut client, mut other] = [(); 2].map(|()| Client::new(&ensemble.ports()));
    let held = client.acquire(plan("/locks", "a"));
    let session = client.session.id();
    let data = vec![7; 9_000].into();
    let acl = Acl::Anyone;
    let kind = CreateKind::Ephemeral;
    let long = Create {
        path: "/long".into(),
        data,
        acl,
        kind,
    };
    let answer = client.ask(EnsembleRequest::Create(long));
    assert_eq!(answer.reply().unwrap_err(), &Failure::Unanswered);
    client.ask(EnsembleRequest::Sync("/".into()));
    assert_eq!((client.session.id(), client.sessions_lost), (session, 0));
    assert_eq!(client.held(), Some(&held));
    // Lists may be longer: the limit is for what clients send.
    let join = |_| {
        let path: Arc<str> = "/locks/a/_c_00010203-0405-4607-8809-0a0b0c0d0e0f-lock-".into();
        let kind = CreateKind::EphemeralSequential;
        MultiOperation::Create(Create {
            path,
            data: Arc::from([]),
            acl: Acl::Anyone,
            kind,
        })
    };
    for _ in 0..8 {
        let many: Vec<MultiOperation> = (0..40).map(join).collect();
        let answer = other.ask(EnsembleRequest::Multi(many.into()));
        let Ok(EnsembleReply::Results(results)) = answer.reply() else {
            panic!("{answer:?}")
        };
        assert_eq!(results.error(), None);
    }
    assert_eq!(names(&mut client, "/locks/a").len(), 321);
    let mut last = Client::new(&ensemble.ports());
    last.contend(plan("/locks", "a"));
    drive(&mut [&mut last], "the place", |clients| {
        clients[0].contention().contender.place() == Some(321)
    });
}
