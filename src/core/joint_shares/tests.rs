//! Who enters which share, by literal times.

use super::*;
use crate::cancel_token::CancelToken;
use crate::engine::Token;
use crate::error::LossReason;
use crate::owner_process::OwnerProcess;
use crate::wait_queue::HandoffLimit;

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn shares() -> JointShares {
    let process = Arc::new(OwnerProcess::here());
    let queues = WaitQueues::new(HandoffLimit::DEFAULT, CancelToken::new(), process);
    JointShares::new(Arc::new(queues))
}

/// A share that was asked for at `since` and is valid for this many milliseconds.
fn granted(since: u64, validity: u64) -> Granted {
    let ttl = Ttl::from_duration(Duration::from_millis(validity)).unwrap();
    let held = HeldLock {
        key: Arc::from(*b"key"),
        token: Token::new([1; Token::LEN]),
        attributes: None,
        fence: None,
        valid_until: at(since + validity),
        since: at(since),
        ttl,
        ttl_longest: ttl,
        nodes: NodeSet::all(3),
        waiter: None,
        is_awaited: false,
        session: None,
    };
    Granted {
        held: Arc::new(GuardedLock::new(held)),
        capacity: None,
    }
}

/// A share of which this many members wait, and that was granted then.
fn share(members: usize, granted: Granted) -> JointShare {
    let share = JointShare::new(&Arc::from(*b"kind"), at(0));
    (1..members).for_each(|_| assert!(share.let_in(at(0), Duration::ZERO).is_some()));
    share.lock().granted = Some(granted);
    share
}

#[test]
fn threads_of_one_kind_enter_one_share_until_it_takes_in_no_more() {
    let (shares, [one, other]) = (shares(), [Arc::from(*b"one"), Arc::from(*b"other")]);
    let enter = |kind, millis| shares.enter(kind, at(millis), Duration::ZERO);
    let (first, number) = enter(&one, 100);
    let (same, second) = enter(&one, 109);
    assert!(Arc::ptr_eq(&first, &same) && ![PUBLISHER, number].contains(&second));
    let (different, _) = enter(&other, 109);
    let (later, _) = enter(&one, 110);
    let all = [&first, &different, &later];
    let names: std::collections::HashSet<_> = all.iter().map(|share| &share.name).collect();
    assert_eq!(names.len(), 3);
    // Only its own share is forgotten with the last member.
    assert_eq!(first.leave(Time::ZERO), None);
    assert_eq!(first.leave(Time::ZERO), Some(Time::ZERO));
    shares.forget(&first);
    assert!(Arc::ptr_eq(&enter(&one, 119).0, &later));
    shares.forget(&later);
    shares.forget(&different);
    assert!(shares.lock().is_empty());
}

#[test]
fn nobody_enters_a_share_that_its_last_member_has_left() {
    let share = share(2, granted(0, 1_000));
    assert_eq!(share.leave(at(700)), None);
    assert!(share.let_in(at(1), Duration::ZERO).is_some());
    assert_eq!(share.leave(at(600)), None);
    assert_eq!(share.leave(Time::ZERO), Some(at(700)), "the latest of all");
    assert_eq!(share.let_in(at(1), Duration::ZERO), None);
}

#[test]
fn newcomers_enter_a_granted_share_for_a_moment_after_it_was_asked_for() {
    // It waited for long.
    let long = share(1, granted(5_000, 60_000));
    for (millis, may_enter) in [
        (5_000, true),
        (5_009, true),
        (5_010, false),
        (64_000, false),
    ] {
        assert_eq!(
            long.let_in(at(millis), Duration::ZERO).is_some(),
            may_enter,
            "{millis}"
        );
    }
    // Of a short one, most must be left.
    let short = share(1, granted(5_000, 50));
    for (millis, may_enter) in [(5_005, true), (5_006, false)] {
        assert_eq!(
            short.let_in(at(millis), Duration::ZERO).is_some(),
            may_enter,
            "{millis}"
        );
    }
}

#[test]
fn a_member_uses_a_share_of_which_enough_is_left() {
    let granted = granted(5_000, 1_000);
    let usable = |millis, least| granted.has_left(at(millis), Duration::from_millis(least));
    let is_open = |millis| granted.open_since(at(millis), Duration::ZERO).is_some();
    assert!(usable(5_100, 0) && usable(5_100, 900));
    assert!(!usable(5_100, 901), "less than it asks for");
    assert!(
        is_open(5_100) && !is_open(5_101),
        "a newcomer's own round gives more"
    );
    assert!(
        usable(5_101, 0),
        "a member of the share does not begin anew"
    );
    granted.held.end_now(at(5_050), LossReason::Gone);
    assert!(!usable(5_060, 0) && !is_open(5_060), "it is lost");
}
