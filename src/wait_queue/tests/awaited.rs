//! Locks for which another client waits.

use super::*;

#[test]
fn a_lock_for_which_another_client_waits_is_handed_off_for_a_short_time_only() {
    for (awaited, is_awaited, is_handed_off) in
        [(Duration::ZERO, true, false), (Duration::ZERO, false, true), (LONG, true, true)]
    {
        let limit = HandoffLimit { count: 9, time: LONG, awaited };
        let queues =
            Arc::new(WaitQueues::new(limit, CancelToken::new(), Arc::new(OwnerProcess::here())));
        let head = alone(&queues);
        head.set_key_expiry(from_now(LONG));
        let next = join_in_thread(&queues, Forever, ROUND);
        let lease = Lease { is_awaited, ..lease(1, from_now(LONG)) };
        let handed_off = head.hand_off(lease);
        assert_eq!(handed_off.is_ok(), is_handed_off, "{awaited:?} {is_awaited}");
        drop(head);
        let (_, taken) = promoted(&next);
        assert_eq!(taken.is_some(), is_handed_off, "the next one asks the nodes otherwise");
    }
}
