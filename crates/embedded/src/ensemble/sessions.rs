//! The sessions: their timeouts, and when they end if nothing is heard from them.

use crate::pushes::Listeners;
use redlatch_protocol::time::Time;
use redlatch_zookeeper::message::PASSWORD_LENGTH;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The sessions. As in ZooKeeper, sessions end at whole ticks, the first one that is later than
/// their timeout.
#[derive(Debug)]
pub(super) struct Sessions {
    tick: Duration,
    timeouts: RangeInclusive<Duration>,
    next_id: i64,
    sessions: BTreeMap<i64, LiveSession>,
}

#[derive(Debug)]
struct LiveSession {
    timeout: Duration,
    ends_at: Time,
}

impl Sessions {
    /// No sessions; the first one will have this id.
    pub(super) fn new(tick: Duration, timeouts: RangeInclusive<Duration>, first_id: i64) -> Self {
        Self {
            tick,
            timeouts,
            next_id: first_id,
            sessions: BTreeMap::new(),
        }
    }

    /// The timeout that is granted to a client that asks for this one.
    pub(super) fn granted(&self, timeout_ms: i32) -> Duration {
        let asked = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
        asked.min(*self.timeouts.end()).max(*self.timeouts.start())
    }

    pub(super) fn begin(&mut self, now: Time, timeout: Duration) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.sessions.insert(
            id,
            LiveSession {
                timeout,
                ends_at: Time::ZERO,
            },
        );
        self.touch(now, id);
        id
    }

    /// Goes on with a session on another connection, with this timeout. Returns whether there is
    /// such a session with this password.
    pub(super) fn resume(
        &mut self,
        now: Time,
        id: i64,
        password: &[u8],
        timeout: Duration,
    ) -> bool {
        let is_right = password == self.password(id);
        let Some(session) = self.sessions.get_mut(&id).filter(|_| is_right) else {
            return false;
        };
        session.timeout = timeout;
        self.touch(now, id);
        true
    }

    /// The password of a session. It is derived from the id, as in ZooKeeper, and no secret: this
    /// server is for tests.
    pub(super) fn password(&self, id: i64) -> [u8; PASSWORD_LENGTH] {
        let mut state = id as u64 ^ 0xb341_5c00;
        let mut password = 0_u128;
        for _ in 0..2 {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            password = (password << 64) | u128::from(mixed ^ (mixed >> 31));
        }
        password.to_be_bytes()
    }

    /// The session was heard of.
    pub(super) fn touch(&mut self, now: Time, id: i64) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.ends_at = next_tick(now.after(session.timeout), self.tick);
        }
    }

    /// The server has started again: every session has its whole timeout.
    pub(super) fn touch_all(&mut self, now: Time) {
        self.ids().into_iter().for_each(|id| self.touch(now, id));
    }

    pub(super) fn ids(&self) -> Vec<i64> {
        self.sessions.keys().copied().collect()
    }

    pub(super) fn end(&mut self, id: i64) {
        self.sessions.remove(&id);
    }

    /// When the next session ends, unless it is heard of.
    pub(super) fn next_end(&self) -> Time {
        self.next().map_or(Time::MAX, |(time, _)| time)
    }

    /// A session whose time has passed. It has not ended until [`end`](Self::end).
    pub(super) fn expired(&self, now: Time) -> Option<i64> {
        self.next()
            .filter(|(time, _)| *time <= now)
            .map(|(_, id)| id)
    }

    fn next(&self) -> Option<(Time, i64)> {
        self.sessions
            .iter()
            .map(|(id, session)| (session.ends_at, *id))
            .min()
    }
}

/// The first whole tick after `time`.
fn next_tick(time: Time, tick: Duration) -> Time {
    let tick = u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX).max(1);
    Time::from_nanos(
        (time.as_nanos() / tick)
            .saturating_add(1)
            .saturating_mul(tick),
    )
}

// Watches: who is to be told of the next change of a znode, once.

/// What happened to a znode. The numbers are those of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    Created = 1,
    Deleted = 2,
    DataChanged = 3,
    ChildrenChanged = 4,
}

/// What happened, and to which znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ZnodeEvent {
    pub(super) kind: EventKind,
    pub(super) path: Box<str>,
}

impl ZnodeEvent {
    pub(super) fn new(kind: EventKind, path: &str) -> Self {
        Self {
            kind,
            path: path.into(),
        }
    }
}

/// The watches of all connections. `C` identifies a connection.
#[derive(Debug, Default)]
pub(super) struct Watches<C> {
    /// On a znode itself, or on its creation.
    pub(super) znodes: Listeners<C>,
    /// On the list of its children.
    pub(super) children: Listeners<C>,
}

impl<C: Copy + Ord> Watches<C> {
    /// The connections to tell of this event, each once. Their watches have ended.
    pub(super) fn trigger(&mut self, event: &ZnodeEvent) -> BTreeSet<C> {
        let path = event.path.as_bytes();
        let kind = event.kind;
        let mut told = BTreeSet::new();
        if kind != EventKind::ChildrenChanged {
            told.extend(self.znodes.take(path));
        }
        if matches!(kind, EventKind::Deleted | EventKind::ChildrenChanged) {
            told.extend(self.children.take(path));
        }
        told
    }

    /// The connection is gone.
    pub(super) fn forget(&mut self, connection: C) {
        self.znodes.forget(connection);
        self.children.forget(connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions() -> Sessions {
        let timeouts = Duration::from_millis(200)..=Duration::from_millis(2_000);
        Sessions::new(Duration::from_millis(100), timeouts, 5)
    }

    #[test]
    fn timeouts_are_granted_within_their_limits() {
        let sessions = sessions();
        let granted = [i32::MIN, 0, 199, 200, 1_234, 2_001, i32::MAX]
            .map(|asked| sessions.granted(asked).as_millis());
        assert_eq!(granted, [200, 200, 200, 200, 1_234, 2_000, 2_000]);
    }

    #[test]
    fn a_session_ends_at_the_tick_after_its_timeout() {
        let mut sessions = sessions();
        let at = Time::from_millis;
        let id = sessions.begin(at(1_050), Duration::from_millis(200));
        assert_eq!((id, sessions.next_end()), (5, at(1_300)));
        assert_eq!(sessions.expired(at(1_299)), None);
        sessions.touch(at(1_250), id);
        assert_eq!(sessions.expired(at(1_300)), None);
        assert_eq!(sessions.expired(at(1_500)), Some(id));
        sessions.touch_all(at(1_500));
        assert_eq!(sessions.next_end(), at(1_800));
        sessions.end(id);
        assert_eq!(sessions.next_end(), Time::MAX);
    }

    #[test]
    fn a_session_is_resumed_with_its_password() {
        let mut sessions = sessions();
        let timeout = Duration::from_millis(200);
        let id = sessions.begin(Time::ZERO, timeout);
        let password = sessions.password(id);
        assert!(sessions.resume(Time::ZERO, id, &password, timeout));
        assert!(!sessions.resume(Time::ZERO, id, &[0; 16], timeout));
        let other = sessions.password(id + 1);
        assert!(!sessions.resume(Time::ZERO, id + 1, &other, timeout));
    }

    mod watches {
        use super::super::*;

        #[test]
        fn a_watch_is_told_of_one_event() {
            let mut watches = Watches::default();
            let mut trigger = |kind, watch: &dyn Fn(&mut Watches<u8>)| {
                watch(&mut watches);
                watches
                    .trigger(&ZnodeEvent::new(kind, "/a"))
                    .into_iter()
                    .collect::<Vec<_>>()
            };
            let nothing = |_: &mut Watches<u8>| {};
            let both = |watches: &mut Watches<u8>| {
                watches.znodes.add(b"/a", 1);
                watches.children.add(b"/a", 1);
                watches.children.add(b"/a", 2);
            };
            assert_eq!(trigger(EventKind::DataChanged, &both), [1]);
            assert_eq!(trigger(EventKind::DataChanged, &nothing), []);
            assert_eq!(trigger(EventKind::ChildrenChanged, &nothing), [1, 2]);
            assert_eq!(trigger(EventKind::Deleted, &both), [1, 2]);
            assert_eq!(trigger(EventKind::Deleted, &nothing), []);
            both(&mut watches);
            watches.forget(1);
            assert_eq!(
                watches
                    .trigger(&ZnodeEvent::new(EventKind::Created, "/a"))
                    .len(),
                0
            );
            assert_eq!(
                watches
                    .trigger(&ZnodeEvent::new(EventKind::Deleted, "/a"))
                    .len(),
                1
            );
        }
    }
}
