//! Servers with settings of their own: containers that are removed at once, TLS, layouts.

use std::thread;
use std::time::Duration;
use support::needs_zookeeper;

use crate::operator::Operator;
use crate::rig::{client, keep};
use crate::{LIMIT, LONG};

const TIMEOUT: Duration = Duration::from_secs(7);

/// kazoo #563, CURATOR-435.
#[test]
fn directories_are_swept_between_grants_and_no_lock_fails_and_tokens_grow() {
    const SWEPT: usize = 3;
    let zookeeper = needs_zookeeper!();
    let sweep = "znode.container.checkIntervalMs=500";
    let ensemble = zookeeper.ensemble(1).property(sweep).start();
    let run = |number: u64| {
        let client = client(&ensemble.url("/above/locks"), TIMEOUT);
        let name = format!("lock {number}");
        let mut operator = Operator::new(ensemble[0].port());
        let mut directories = Vec::new();
        let mut last = None;
        let mut grants = 0;
        while directories.len() <= SWEPT {
            let request = client.request(&name).ttl(LONG).fenced();
            let lock = request.try_lock_for(LIMIT).unwrap().unwrap();
            assert!(
                lock.fencing_token() > last,
                "{:?} after {last:?}",
                lock.fencing_token()
            );
            last = lock.fencing_token();
            let directory = operator
                .stat(&format!("/above/locks/{name}"))
                .unwrap()
                .created_by;
            if directories.last() != Some(&directory) {
                directories.push(directory);
            }
            assert_eq!(lock.release(), Ok(()));
            grants += 1;
            // The sweep comes at any time: no pause, a short one, and so on.
            thread::sleep(Duration::from_millis(grants % 7 * number));
        }
    };
    thread::scope(|scope| {
        (0..3).for_each(|number| drop(scope.spawn(move || run(number))));
    });
}

#[cfg(target_os = "linux")] // as the test's certificates are
#[test]
fn a_lock_is_taken_over_tls_and_only_from_a_server_that_is_trusted() {
    use redlatch::{Error, LockClient, TlsSettings};
    use support::certificates::Authority;

    let ensemble = needs_zookeeper!().ensemble(1).with_tls().start();
    let secure = ensemble[0].secure_port();
    let plain = ensemble[0].port();
    let builder = |url: String, authority: &std::path::Path| {
        let settings = TlsSettings::default().ca_file(authority);
        LockClient::builder()
            .nodes([url])
            .session_timeout(TIMEOUT)
            .tls(settings)
            .build()
            .unwrap()
    };
    let trusted = Authority::trusted_file();
    let client = builder(format!("zks://localhost:{secure}/locks"), &trusted);
    let waiter = builder(format!("zks://127.0.0.1:{secure}/locks"), &trusted);
    let guard = keep(&client, "a");
    assert!(waiter.try_lock("a", LONG).unwrap().is_none());
    assert_eq!(guard.release(), Ok(()));
    assert!(
        waiter
            .request("a")
            .ttl(LONG)
            .try_lock_for(LIMIT)
            .unwrap()
            .is_some()
    );
    // A server that nobody vouches for, and ports that speak something else.
    let folder = tempfile::tempdir().unwrap();
    let stranger = folder.path().join("stranger.pem");
    std::fs::write(&stranger, Authority::new("a stranger").pem()).unwrap();
    let wait = Duration::from_secs(2);
    let refused = |client: LockClient| match client.request("a").ttl(LONG).try_lock_for(wait) {
        Err(Error::NoQuorum(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let text = refused(builder(
        format!("zks://localhost:{secure}/locks"),
        &stranger,
    ));
    assert!(text.contains("TLS"), "{text}");
    let text = refused(builder(format!("zks://localhost:{plain}/locks"), &trusted));
    assert!(text.contains("TLS"), "{text}");
    refused(crate::rig::client(
        &format!("zk://localhost:{secure}/locks"),
        TIMEOUT,
    ));
}

#[test]
fn locks_of_two_layouts_exclude_their_own_kind_only() {
    let shared = needs_zookeeper!().shared();
    let [curator, kazoo, default] = ["?layout=curator", "?layout=kazoo", ""]
        .map(|layout| client(&format!("{}{layout}", shared.url()), TIMEOUT));
    let of_curator = keep(&curator, "a");
    let of_kazoo = keep(&kazoo, "a");
    let names = Operator::new(shared[0].port()).list(&format!("{}/a", shared.root()));
    for kind in ["__lock__", "_c_"] {
        assert_eq!(
            names.iter().filter(|name| name.contains(kind)).count(),
            1,
            "{names:?}"
        );
    }
    assert!(
        default.try_lock("a", LONG).unwrap().is_none(),
        "curator's is the default"
    );
    let another = client(&format!("{}?layout=kazoo", shared.url()), TIMEOUT);
    assert!(another.try_lock("a", LONG).unwrap().is_none());
    assert_eq!((of_curator.release(), of_kazoo.release()), (Ok(()), Ok(())));
    assert!(another.try_lock("a", LONG).unwrap().is_some());
}
