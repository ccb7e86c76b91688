//! A lock that a session holds, and that lives no longer.

use super::GuardedLock;
use super::fixture::{at, held_lock};
use crate::engine::HeldLock;
use crate::error::LossReason;
use redlatch_protocol::time::SharedTime;
use std::sync::Arc;

fn held_by(session: &Arc<SharedTime>) -> GuardedLock {
    let held = held_lock(1_000).granted().clone();
    GuardedLock::new(HeldLock {
        session: Some(Arc::clone(session)),
        ..held
    })
}

#[test]
fn a_lock_ends_with_the_session_that_holds_it() {
    let session = Arc::new(SharedTime::new(at(400)));
    let lock = held_by(&session);
    assert_eq!(lock.check(at(399)), Ok(at(400)));
    session.set(at(600));
    assert_eq!(lock.check(at(599)), Ok(at(600)), "the session lives on");
    session.set(at(5_000));
    assert_eq!(
        lock.check(at(999)),
        Ok(at(1_000)),
        "it has an end of its own too"
    );
    session.set(at(999));
    assert_eq!(lock.check(at(999)), Err(LossReason::Expired));
    session.set(at(5_000));
    assert_eq!(
        lock.check(at(999)),
        Err(LossReason::Expired),
        "what is lost stays lost"
    );
}

#[cfg(feature = "zookeeper")]
#[test]
fn a_lock_that_is_said_to_be_gone_is_lost_once() {
    let session = Arc::new(SharedTime::new(at(400)));
    let lock = held_by(&session);
    lock.end_now(at(100), LossReason::Gone);
    lock.end_now(at(500), LossReason::Expired);
    assert_eq!(lock.check(at(500)), Err(LossReason::Gone));
    let late = held_by(&session);
    late.end_now(at(400), LossReason::Gone);
    assert_eq!(
        late.check(at(400)),
        Err(LossReason::Expired),
        "it had ended before"
    );
}
