//! What a ZooKeeper ensemble holds for a resource.

use super::{Holder, Inspection, Label, LockState, NodeView, QueuedWaiter, Seen};
use crate::clock::{WallTime, wall_time};
use crate::zookeeper::queue_listing::{ListedClient, LockView};
use std::sync::Arc;

impl Inspection {
    /// What the server with this URL has shown.
    pub(crate) fn of_ensemble(key: Arc<[u8]>, url: Arc<str>, view: &LockView) -> Self {
        let path = |holder: &ListedClient| holder.path.as_bytes().to_vec();
        let locks = view.holders.iter().map(path).collect();
        let held = view.holders.first().filter(|_| !view.is_shared).map(path);
        let seen = Seen { key, locks, others: Vec::new(), held };
        let holders: Vec<Holder> = view.holders.iter().map(holder).collect();
        let state = match &*holders {
            [] if view.has_changed => LockState::Undecided,
            [] => LockState::Free,
            holders if view.is_shared => LockState::Shared(holders.to_vec()),
            [holder, ..] => LockState::Held(holder.clone()),
        };
        let (shares, whole) =
            if view.is_shared { (holders, None) } else { (Vec::new(), Some(holders)) };
        let node = NodeView {
            url,
            holder: Ok(whole.and_then(|holders| holders.into_iter().next())),
            shares,
            is_reserved: false,
            not_a_lock: None,
            quarantine: None,
            agrees: matches!(state, LockState::Held(_) | LockState::Shared(_)),
        };
        Self {
            state,
            nodes: vec![node],
            quarantine: None,
            holder_count: view.holder_count,
            waiter_count: view.waiter_count,
            waiters: view.waiters.iter().map(waiter).collect(),
            seen,
        }
    }
}

fn holder(member: &ListedClient) -> Holder {
    let since = Some(since(member));
    let (slot, owner) = (member.slot, label(member));
    Holder { slot, owner, remaining: None, since, other_program: None }
}

fn waiter(member: &ListedClient) -> QueuedWaiter {
    let since = since(member);
    QueuedWaiter { owner: label(member), is_for_share: false, since, nodes: 1 }
}

fn label(member: &ListedClient) -> Option<Label> {
    Some(&member.owner).filter(|owner| !owner.is_empty()).map(|owner| Label(owner.to_vec()))
}

fn since(member: &ListedClient) -> WallTime {
    wall_time(member.created_at_ms.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(path: &str, owner: &str, slot: Option<u32>) -> ListedClient {
        let (path, owner) = (Arc::from(path), Arc::from(owner.as_bytes()));
        ListedClient { path, owner, created_at_ms: 1_500, slot }
    }

    fn inspected(
        holders: Vec<ListedClient>,
        waiters: Vec<ListedClient>,
        is_shared: bool,
        has_changed: bool,
    ) -> Inspection {
        let (holder_count, waiter_count) = (holders.len(), waiters.len());
        let view =
            LockView { holders, is_shared, holder_count, waiters, waiter_count, has_changed };
        Inspection::of_ensemble(Arc::from(*b"key"), "zk://a:2181".into(), &view)
    }

    #[test]
    fn the_first_holds_the_lock_and_the_others_wait() {
        let waiters = vec![member("/b/2", "w", None), member("/b/3", "", None)];
        let seen = inspected(vec![member("/b/1", "h", None)], waiters, false, false);
        let LockState::Held(holder) = &seen.state else { panic!("{seen:?}") };
        assert_eq!(holder.owner().map(|owner| owner.to_string()).as_deref(), Some("h"));
        assert_eq!((holder.remaining, holder.since), (None, Some(wall_time(1_500_000))));
        assert_eq!(seen.nodes[0].holder, Ok(Some(holder.clone())));
        assert!(seen.nodes[0].agrees && seen.nodes[0].shares.is_empty());
        assert_eq!((seen.holder_count, seen.waiter_count, seen.waiters.len()), (1, 2, 2));
        assert_eq!(seen.waiters[0].since, wall_time(1_500_000));
        assert_eq!(seen.waiters[1].owner(), None);
        assert_eq!(&*seen.seen.locks, [b"/b/1".to_vec()]);
    }

    #[test]
    fn shares_have_many_holders() {
        let holders = vec![member("/s/r1", "r", None), member("/s/p2", "p", Some(2))];
        let seen = inspected(holders, vec![], true, false);
        let LockState::Shared(holders) = &seen.state else { panic!("{seen:?}") };
        assert_eq!(holders.iter().map(|it| it.slot).collect::<Vec<_>>(), [None, Some(2)]);
        assert_eq!((&seen.nodes[0].shares, &seen.nodes[0].holder), (holders, &Ok(None)));
        assert_eq!(seen.seen.locks.len(), 2);
    }

    #[test]
    fn nobody_is_free_unless_somebody_has_just_gone() {
        assert_eq!(inspected(vec![], vec![], false, false).state, LockState::Free);
        assert_eq!(inspected(vec![], vec![], true, true).state, LockState::Undecided);
        let waiters = vec![member("/b/2", "w", None)];
        assert_eq!(inspected(vec![], waiters, false, true).state, LockState::Undecided);
    }
}
