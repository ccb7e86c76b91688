//! The operations on one lock. Each uses names of its own, on three servers that all share.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, LockClient, LockState, LossReason, QueueSupport};

use super::operations_several as several;
use support::cli::Value;
use support::eventually;
use support::fencing::{fenced, token};
use support::locks::{
    BRIEF, LIMIT, LONG, all_nodes_client, gone, holders, pttl, take, without_restart_guard,
};
use support::loss::loss;
use support::redis::Server;
use support::server_program::ServerProgram;
use support::servers::Servers;
use support::waiters::{BY_PUSH, Line, pushed};

type Operation = fn(&mut Rig);

/// In this order, because the last ones restart servers.
pub(crate) const OPERATIONS: [(&str, Operation); 26] = [
    ("lock, try_lock", lock_and_try_lock),
    ("try_lock_for", try_lock_for),
    ("with_lock", with_lock),
    ("release", release),
    ("drop", drop_releases),
    ("leave", leave),
    ("extend", extend),
    ("keep_alive", keep_alive),
    ("handoff", handoff),
    ("inspect", inspect),
    ("inspect of a wrong type", inspect_of_a_wrong_type),
    ("locks by a pattern", locks_by_a_pattern),
    ("force_release", force_release),
    ("fenced", fencing),
    ("several resources", several::request_all),
    ("readers", several::readers),
    ("permits", several::permits),
    ("queue in order", several::queue_in_order),
    ("queue without pushes", several::queue_without_pushes),
    ("queue off", several::queue_off),
    ("leader election", several::leader_election),
    ("nodes", several::nodes),
    ("restart guard", several::restart_guard),
    ("scripts forgotten", several::scripts_forgotten),
    ("one node down", several::one_node_down),
    ("a node restarts", several::a_node_restarts),
];

/// Three servers of one program.
pub(crate) struct Rig {
    pub(crate) program: ServerProgram,
    pub(crate) servers: Servers,
}

impl Rig {
    pub(crate) fn start(program: &ServerProgram) -> Self {
        let servers = Servers::of(program, 3, &[]);
        Self {
            program: program.clone(),
            servers,
        }
    }

    pub(crate) fn client(&self) -> LockClient {
        all_nodes_client(self.servers.urls())
    }

    fn accepts(&self, words: &[&[&str]]) -> bool {
        let mut client = self.servers[0].client();
        words
            .iter()
            .all(|words| !matches!(client.command(words), Value::Error(_)))
    }

    pub(crate) fn has_resp3(&self) -> bool {
        self.accepts(&[&["HELLO", "3"]])
    }

    pub(crate) fn has_tracking(&self) -> bool {
        self.accepts(&[&["HELLO", "3"], &["CLIENT", "TRACKING", "ON", "OPTIN"]])
    }

    /// May a script write after it has read the clock? Readers and permits need it.
    pub(crate) fn has_shares(&self) -> bool {
        let script = "redis.call('TIME') return redis.call('DEL', KEYS[1])";
        self.accepts(&[&["EVAL", script, "1", "probe"]])
    }

    pub(crate) fn resp(&self) -> &'static str {
        if self.has_resp3() { "3" } else { "2" }
    }

    /// Whether clients can queue, as the library sees it.
    pub(crate) fn queue(&self) -> String {
        match self.queue_support() {
            Some(QueueSupport::Full) => "pushes".to_owned(),
            Some(QueueSupport::WithoutPushes) => "without pushes".to_owned(),
            other => format!("{other:?}"),
        }
    }

    /// Known once a client has waited.
    pub(crate) fn queue_support(&self) -> Option<QueueSupport> {
        let client = self.client();
        let other = self.client();
        let held = take(&client, "queue-support", LONG);
        let waited = other
            .request("queue-support")
            .ttl(LONG)
            .try_lock_for(Duration::from_millis(300));
        assert!(matches!(waited, Ok(None)), "{waited:?}");
        drop(held);
        other.nodes().remove(0).queue
    }
}

fn lock_and_try_lock(rig: &mut Rig) {
    let client = rig.client();
    let other = rig.client();
    let guard = client.lock("lock", LONG).expect("it is free");
    assert_eq!(holders(&rig.servers, "lock"), 3);
    assert!(
        other
            .try_lock("lock", LONG)
            .expect("a majority answers")
            .is_none()
    );
    assert!(guard.ensure_held().is_ok() && guard.remaining() > LONG / 2);
    drop(guard);
    assert!(gone(&rig.servers, "lock"));
    let _ = other
        .try_lock("lock", LONG)
        .expect("a majority answers")
        .expect("it is free");
}

fn try_lock_for(rig: &mut Rig) {
    let client = rig.client();
    let other = rig.client();
    let guard = take(&client, "for", LONG);
    let start = Instant::now();
    let refused = other
        .request("for")
        .ttl(LONG)
        .try_lock_for(Duration::from_millis(300));
    assert!(matches!(refused, Ok(None)) && start.elapsed() >= Duration::from_millis(300));
    drop(guard);
    let got = other
        .request("for")
        .ttl(LONG)
        .try_lock_until(Instant::now() + LIMIT);
    assert!(matches!(got, Ok(Some(_))), "{got:?}");
}

fn with_lock(rig: &mut Rig) {
    let held = rig.client().with_lock("with", LONG, |_| {
        Ok::<_, Error>(holders(&rig.servers, "with"))
    });
    assert_eq!(held.expect("it is free"), 3);
    assert!(gone(&rig.servers, "with"));
}

fn release(rig: &mut Rig) {
    let client = rig.client();
    assert_eq!(take(&client, "release", LONG).release(), Ok(()));
    assert_eq!(holders(&rig.servers, "release"), 0);
    let guard = take(&client, "release", BRIEF);
    assert!(eventually(LIMIT, || guard.remaining().is_zero()
        && gone(&rig.servers, "release")));
    assert_eq!(loss(&guard), Some(LossReason::Expired));
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
}

fn drop_releases(rig: &mut Rig) {
    drop(take(&rig.client(), "drop", LONG));
    assert!(gone(&rig.servers, "drop"));
}

fn leave(rig: &mut Rig) {
    let ttl = Duration::from_secs(1);
    let client = rig.client();
    let start = Instant::now();
    take(&client, "leave", ttl).let_expire();
    let _ = rig
        .client()
        .lock("leave", LONG)
        .expect("it is free in the end");
    assert!(start.elapsed() >= ttl);
}

fn extend(rig: &mut Rig) {
    let mut guard = take(&rig.client(), "extend", LONG / 4);
    guard.extend(LONG).expect("it is held");
    assert!(
        rig.servers
            .iter()
            .all(|server| pttl(server, "extend") > 26_000)
    );
    assert_eq!(guard.release(), Ok(()));
}

fn keep_alive(rig: &mut Rig) {
    let settings = without_restart_guard(rig.servers.urls()).node_timeout(LIMIT / 50);
    let client = settings.build().expect("the settings are good");
    let ttl = Duration::from_secs(3);
    let guard = client
        .request("keep")
        .ttl(ttl)
        .keep_alive()
        .lock()
        .expect("it is free");
    thread::sleep(ttl * 4 / 3);
    assert!(guard.ensure_held().is_ok());
    assert!(
        rig.client()
            .try_lock("keep", LONG)
            .expect("a majority answers")
            .is_none()
    );
    assert_eq!(guard.release(), Ok(()));
}

/// The threads of one client, which hand the lock to each other.
fn handoff(rig: &mut Rig) {
    let client = rig.client();
    let inside = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let guard = client
                        .lock("handoff", LONG)
                        .expect("it is served in the end");
                    let mut count = inside.try_lock().expect("nobody else is inside");
                    *count += 1;
                    drop(count);
                    drop(guard);
                }
            });
        }
    });
    assert_eq!(inside.into_inner().expect("no panic"), 40);
}

fn inspect(rig: &mut Rig) {
    let client = rig.client();
    let other = rig.client();
    let look = || other.inspect("inspect").expect("a majority answers");
    assert_eq!(look().state, LockState::Free);
    let request = client.request("inspect").ttl(LONG).owner("me");
    let guard = request
        .try_lock()
        .expect("a majority answers")
        .expect("it is free");
    let LockState::Held(holder) = look().state else {
        panic!("{:?}", look())
    };
    assert!(holder.owner().is_some_and(|owner| owner == b"me"));
    assert!(holder.remaining.is_some_and(|left| left > LONG / 2));
    let waiting = thread::spawn({
        let waiter = rig.client();
        move || waiter.request("inspect").ttl(LONG).try_lock_for(LIMIT)
    });
    assert!(eventually(LIMIT, || look().waiters.len() == 1));
    drop(guard);
    assert!(matches!(waiting.join(), Ok(Ok(Some(_)))));
}

fn inspect_of_a_wrong_type(rig: &mut Rig) {
    let client = rig.client();
    rig.servers
        .iter()
        .for_each(|server| drop(server.command(&["LPUSH", "list", "x"])));
    let seen = client.inspect("list").expect("a majority answers");
    assert!(matches!(seen.state, LockState::NotALock(_)), "{seen:?}");
    let refused = client.try_lock("list", LONG);
    assert!(
        matches!(refused, Err(Error::NotALock { .. })),
        "{refused:?}"
    );
}

fn locks_by_a_pattern(rig: &mut Rig) {
    let client = rig.client();
    let name = |number: usize| format!("listed:{number:03}");
    let guards: Vec<_> = (0..600)
        .map(|number| take(&client, name(number), LONG))
        .collect();
    let found = client
        .locks("listed:[0-9]*")
        .map(|lock| lock.expect("a majority answers"));
    let mut names: Vec<_> = found.map(|lock| lock.resource().to_string()).collect();
    names.sort_unstable();
    assert!(names == (0..600).map(name).collect::<Vec<_>>(), "{names:?}");
    drop(guards);
    assert_eq!(client.locks("listed:*").count(), 0);
}

fn force_release(rig: &mut Rig) {
    let client = rig.client();
    let other = rig.client();
    let guard = take(&client, "force", LONG);
    let seen = other.inspect("force").expect("a majority answers");
    assert_eq!(other.force_release(&seen), Ok(true));
    assert_eq!(holders(&rig.servers, "force"), 0);
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
    assert_eq!(other.force_release(&seen), Ok(false));
}

fn fencing(rig: &mut Rig) {
    let client = rig.client();
    let other = rig.client();
    let mut last = 0;
    for round in 0..6 {
        let guard = fenced(if round % 2 == 0 { &client } else { &other }, "fenced");
        assert!(token(&guard) > last);
        last = token(&guard);
    }
}

/// Several waiters of other clients are served in the order in which they joined.
pub(crate) fn serve_in_order(servers: &[Server], urls: &[String], key: &'static str) {
    let holder = without_restart_guard(urls)
        .wait_for_all(true)
        .node_timeout(LIMIT / 10);
    let held = take(&holder.build().expect("the settings are good"), key, LONG);
    let mut line = Line::before(key);
    (0..4).for_each(|_| line.join(servers, pushed(urls)));
    assert!(line.is_waiting());
    let start = Instant::now();
    drop(held);
    let served = line.end() - start;
    assert!(served < BY_PUSH, "{served:?}");
}
