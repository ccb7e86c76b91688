//! Locks for which another client waits.

use super::*;

#[test]
fn a_lock_for_which_another_client_waits_is_handed_off_for_a_short_time_only() {
    for (is_old, is_awaited, is_handed_off) in [
        (true, true, false),
        (true, false, true),
        (false, true, true),
    ] {
        let queues = queues(9, LONG);
        let head = alone(&queues);
        head.set_key_expiry(from_now(LONG));
        let next = join_in_thread(&queues, Forever, ROUND);
        let granted_at = if is_old {
            clock::now().before(HandoffLimit::CONTENDED_TIME)
        } else {
            Time::MAX
        };
        queues.lock().by_key.get_mut(&key()).unwrap().granted_at = granted_at;
        let held = HeldLock {
            is_awaited,
            ..held_lock(1, from_now(LONG))
        };
        let handed_off = head.hand_off(held);
        assert_eq!(handed_off.is_ok(), is_handed_off, "{is_old} {is_awaited}");
        drop(head);
        let (_, taken) = promoted(&next);
        assert_eq!(
            taken.is_some(),
            is_handed_off,
            "the next one asks the nodes otherwise"
        );
    }
}
