//! `with_lock` whose lock is lost while the body runs: the result says so.

use std::sync::{Mutex, mpsc};
use std::time::Duration;
use std::{fs, io, thread};

use redlatch::{Error, Event, LockClient, LockGuard, LossReason, Released};
use support::locks::{LIMIT, LONG, gone, pause, resume, without_restart_guard};
use support::loss::reason;
use support::servers::Servers;

const TTL: Duration = Duration::from_secs(2);

fn client(servers: &Servers) -> LockClient {
    let settings = without_restart_guard(servers.urls());
    settings.node_timeout(Duration::from_millis(400)).build().expect("the settings are good")
}

/// An error that the body and the lock can have.
#[derive(Debug)]
enum Failure {
    Body(io::Error),
    Lock(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

impl Failure {
    fn is_the_body_s(&self) -> bool {
        match self {
            Self::Body(error) => error.kind() == io::ErrorKind::NotFound,
            Self::Lock(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_bodys_own_error_is_returned_also_when_the_lock_was_lost() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let error = || fs::read("/nowhere/to/be/found").map(|_| ()).map_err(Failure::Body);
    let came = client.request("error").ttl(TTL).with_lock(|_| error()).unwrap_err();
    assert!(came.is_the_body_s());
    assert!(gone(&servers, "error"));

    // With a lost lock, and nodes that do not reply to the release.
    let came = client.request("error").ttl(TTL).with_lock(|held| {
        pause(&servers, 3);
        assert_eq!(held.wait_lost(LIMIT).map(reason), Some(LossReason::Expired));
        error()
    });
    assert!(came.unwrap_err().is_the_body_s());
    resume(&servers, 3);
    assert!(gone(&servers, "error"));
}

/// Why the lock was lost, of whose body this is the result.
#[track_caller]
fn loss<T>(result: Result<T, Error>) -> LossReason {
    match result {
        Err(Error::Lost(lost)) => lost.reason(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was held to the end"),
    }
}

#[test]
fn a_body_that_succeeds_after_its_lock_expired_is_an_error() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let mut booked = None;
    let result = client.with_lock("seats", TTL, |held| {
        pause(&servers, 3);
        assert!(held.wait_lost(LIMIT).is_some());
        thread::sleep(Duration::from_millis(10));
        booked = Some(42);
        Ok(())
    });
    resume(&servers, 3);
    let text = result.as_ref().unwrap_err().to_string();
    assert!(text.starts_with("the lock \"seats\" is lost: its validity has passed"), "{text}");
    let Err(Error::Lost(lost)) = result else { panic!("it was acquired") };
    assert_eq!((lost.resource().as_bytes(), lost.reason()), (&b"seats"[..], LossReason::Expired));
    assert_eq!(booked, Some(42), "the body leaves what must be undone");
}

#[test]
fn a_lock_whose_keys_vanished_during_the_body_was_lost_also_if_no_extension_noticed() {
    let servers = Servers::start(3);
    let client = client(&servers);
    // The next extension is due in ten seconds.
    let flush = |held: &LockGuard, nodes: usize| {
        servers.iter().take(nodes).for_each(|server| _ = server.command(&["DEL", "orders"]));
        assert_eq!(held.ensure_held(), Ok(()), "the client cannot know yet");
        Ok("sent")
    };
    for nodes in [2, 3] {
        let result = client.with_lock("orders", LONG, |held| flush(held, nodes));
        assert_eq!(loss(result), LossReason::Gone);
    }
    let request = client.request("orders").ttl(LONG);
    let result = request.clone().try_with_lock(|held| flush(held, 3));
    assert_eq!(loss(result), LossReason::Gone);
    // A majority still has it.
    assert_eq!(request.with_lock(|held| flush(held, 1)), Ok("sent"));
}

#[test]
fn nodes_that_do_not_answer_the_release_are_no_loss() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let result = client.with_lock("orders", LONG, |_| {
        pause(&servers, 3);
        Ok(7)
    });
    assert_eq!(result.unwrap(), 7);
    resume(&servers, 3);
    assert!(gone(&servers, "orders"), "it is released when they can be reached");
}

#[test]
fn a_body_that_returns_makes_a_release_with_a_known_outcome() {
    let servers = Servers::start(3);
    let (sender, outcomes) = mpsc::channel();
    let sender = Mutex::new(sender);
    let settings = without_restart_guard(servers.urls()).node_timeout(Duration::from_millis(400));
    let client = settings
        .on_event(move |event| {
            if let Event::Released { outcome, .. } = event {
                sender.lock().unwrap().send(*outcome).unwrap();
            }
        })
        .build()
        .unwrap();
    client.with_lock("one", LONG, |_| Ok(())).unwrap();
    assert_eq!(outcomes.recv_timeout(LIMIT), Ok(Some(Released::InTime)));
    let request = client.request("one").ttl(LONG);
    let failed: Result<(), Failure> =
        request.with_lock(|_| Err(Failure::Body(io::ErrorKind::NotFound.into())));
    assert!(failed.unwrap_err().is_the_body_s());
    assert_eq!(outcomes.recv_timeout(LIMIT), Ok(Some(Released::InTime)));
    let result = client.with_lock("one", LONG, |_| {
        servers.iter().for_each(|server| _ = server.command(&["DEL", "one"]));
        Ok(())
    });
    assert_eq!(loss(result), LossReason::Gone);
    assert_eq!(outcomes.recv_timeout(LIMIT), Ok(Some(Released::TooLate)));
}
