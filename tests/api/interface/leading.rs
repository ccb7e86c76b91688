//! Electing a leader: one at a time, each with a larger epoch, whoever keeps the locks.

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use redlatch::{CancelToken, Error, LockClient, LossReason};
use support::backend::Backend;
use support::loss::loss_in;
use support::on_each_backend;
use support::waiters::await_in_order;

use super::LIMIT;

on_each_backend!(
    one_candidate_leads_at_a_time_and_the_next_has_a_larger_epoch,
    a_leader_that_is_deposed_is_told_and_does_not_lead_again,
    a_candidate_that_goes_on_leads_again_after_the_others,
);

/// The leader's name, as anybody sees it.
fn leader(client: &LockClient, name: &str) -> Option<String> {
    let holder = client.election(name).leader().unwrap()?;
    holder.owner().map(|name| name.to_string())
}

fn one_candidate_leads_at_a_time_and_the_next_has_a_larger_epoch(backend: &Backend) {
    let one = backend.client();
    let two = backend.client();
    assert_eq!(leader(&one, "scheduler"), None);
    let before = SystemTime::now();
    let first = one.election("scheduler").name("one").campaign().unwrap();
    assert!((before..=SystemTime::now()).contains(&first.since()));
    let election = two.election("scheduler").name("two");
    for wait in [Duration::ZERO, Duration::from_millis(100)] {
        assert!(election.campaign_for(wait).unwrap().is_none());
    }
    assert_eq!(leader(&two, "scheduler"), Some("one".to_owned()));
    assert_eq!(
        one.election("other").leader().unwrap(),
        None,
        "another election"
    );
    let token = CancelToken::new();
    token.cancel();
    assert_eq!(
        election.clone().cancelled_by(&token).campaign().err(),
        Some(Error::Cancelled)
    );
    thread::scope(|scope| {
        let second = scope.spawn(|| election.campaign().unwrap());
        assert!(first.is_leader() && first.ensure().is_ok());
        assert!(!first.lock().remaining().is_zero());
        let epoch = first.epoch();
        assert_eq!(first.resign(), Ok(()));
        let second = second.join().unwrap();
        assert!(second.is_leader() && second.epoch() > epoch);
        assert_eq!(leader(&one, "scheduler"), Some("two".to_owned()));
        drop(second); // resigns as well
    });
    let third = one
        .election("scheduler")
        .campaign_for(LIMIT)
        .unwrap()
        .unwrap();
    let epoch = third.epoch();
    let lock = third.into_lock();
    assert!(lock.ensure_held().is_ok() && lock.fencing_token() == Some(epoch));
}

fn a_leader_that_is_deposed_is_told_and_does_not_lead_again(backend: &Backend) {
    let one = backend.client();
    let two = backend.client();
    let first = one
        .election("deposed")
        .ttl(Duration::from_secs(2))
        .campaign()
        .unwrap();
    let (sender, lost) = mpsc::channel();
    first
        .on_lost(move |lost| sender.send(lost.reason()).unwrap())
        .unwrap();
    let seen = two.inspect("deposed").unwrap();
    assert!(two.force_release(&seen).unwrap());
    let second = two.election("deposed").campaign().unwrap();
    assert_eq!(lost.recv_timeout(LIMIT), Ok(LossReason::Gone));
    assert!(!first.is_leader());
    assert_eq!(loss_in(first.ensure()), Some(LossReason::Gone));
    assert!(second.is_leader() && second.epoch() > first.epoch());
    assert!(matches!(first.resign(), Err(Error::Lost(_))));
    assert!(
        second.is_leader(),
        "the other one has resigned from nothing"
    );
}

fn a_candidate_that_goes_on_leads_again_after_the_others(backend: &Backend) {
    let one = backend.client();
    let two = backend.client();
    let mut epochs = Vec::new();
    let between = thread::scope(|scope| {
        let mut second = None;
        let ended = one.election("again").lead(|leadership| {
            epochs.push(leadership.epoch());
            if second.is_some() {
                return ControlFlow::Break("enough");
            }
            second = Some(scope.spawn(|| two.election("again").campaign().unwrap().epoch()));
            // It waits before this one goes on.
            await_in_order(&one, "again", 1);
            ControlFlow::Continue(())
        });
        assert_eq!(ended.unwrap(), "enough");
        second.unwrap().join().unwrap()
    });
    assert!(
        epochs.len() == 2 && epochs[0] < between && between < epochs[1],
        "{epochs:?}"
    );
    assert_eq!(one.election("again").leader().unwrap(), None);
}
