//! A lock that is held: extending it and releasing it.

use super::validity::TTL_LIMIT;
use super::{
    Command, Keep, LockAttributes, LockId, NodeSet, Removal, Request, Rules, Token, Ttl, Verdict,
    Votes, attributes, judge,
};
use crate::time::{SharedTime, Time};
use std::sync::Arc;
use std::time::Duration;

/// A lock that was granted.
#[derive(Clone, Debug)]
pub struct HeldLock {
    pub key: Arc<[u8]>,
    pub token: Token,
    pub attributes: Option<Arc<LockAttributes>>,
    /// The fencing token, if it is fenced.
    pub fence: Option<u64>,
    pub valid_until: Time,
    /// When it was requested, before the first byte was written.
    pub since: Time,
    /// The latest ttl that was sent.
    pub ttl: Ttl,
    /// The longest ttl that was ever sent.
    pub ttl_longest: Ttl,
    /// The nodes that may hold the key.
    pub nodes: NodeSet,
    /// The waiter whose turn it was, if the lock was taken from the nodes' queue: it may still
    /// stand in the queue of some nodes.
    pub waiter: Option<Token>,
    /// Did another client wait for the lock when it was granted?
    pub is_awaited: bool,
    /// Until when the session lives that holds the lock, if one does: the lock ends with it.
    pub session: Option<Arc<SharedTime>>,
}

impl HeldLock {
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        attributes::keys(&self.key, &self.attributes)
    }

    pub fn id(&self) -> LockId {
        LockId {
            key: Arc::clone(&self.key),
            token: self.token,
            attributes: self.attributes.clone(),
        }
    }

    /// The removal of its key, which is worth sending for as long as the key may exist.
    pub(super) fn removal(&self) -> Removal {
        let ttl = self.ttl_longest;
        let waiter = self.waiter;
        Removal {
            lock: self.id(),
            ttl,
            keep_for: None,
            waiter,
            is_awaited: false,
        }
    }

    /// A request about this lock, to the nodes that may hold it.
    pub(super) fn request(&self, command: Command, now: Time, rules: &Rules) -> Request {
        Request {
            nodes: self.nodes,
            ..Request::to_all(rules, now, command)
        }
    }

    /// When its key will have expired on every node that applied the latest request in time.
    pub fn expires_at(&self, rules: &Rules) -> Time {
        let margin = self.ttl_longest.as_duration() - rules.drift.validity(self.ttl_longest);
        self.valid_until.after(margin).after(rules.skew)
    }

    /// Until when it stays taken if it is left to its ttl now. A lock that its session keeps alive
    /// has no end that an extension gave it: its ttl begins now.
    pub fn stays_until(&self, now: Time, rules: &Rules) -> Time {
        self.expires_at(rules)
            .min(now.after(self.ttl_longest.as_duration()))
    }

    /// A removal that no caller waits for.
    pub fn undo(&self, now: Time, rules: &Rules) -> Request {
        self.undo_after(None, now, rules)
    }

    /// As [`undo`](Self::undo), but the key stays for `keep_for` from now on, if that is given.
    pub fn undo_after(&self, keep_for: Option<Ttl>, now: Time, rules: &Rules) -> Request {
        self.request(
            Command::Remove(Removal {
                keep_for,
                ..self.removal()
            }),
            now,
            rules,
        )
    }

    /// How long the key must stay from now on, so that the lock stays taken for `hold_at_least`
    /// since its request, rounded up to whole milliseconds. `None` if that time has passed.
    pub fn keep_for(&self, hold_at_least: Duration, now: Time) -> Option<Ttl> {
        let left = hold_at_least
            .checked_sub(now.since(self.since))
            .filter(|left| !left.is_zero());
        let rounded_up = left?.saturating_add(Duration::from_nanos(999_999));
        Ttl::from_duration(rounded_up.min(TTL_LIMIT))
    }
}

// Extending a lock. A failed extension does not shorten the lock: it stays valid until its old
// validity ends, unless the nodes' answers prove that no majority holds it any more.

#[derive(Clone, Debug)]
pub enum Extended {
    /// A majority confirmed the extension. This is the lock from now on.
    Confirmed(HeldLock),
    /// The lock was lost: its validity has passed, or so many nodes refused that the others are no
    /// majority. The lock has its old validity. It must be released: on some nodes the key may
    /// stay for as long as the extension asked for.
    Lost(HeldLock),
    /// Too few nodes answered. The lock is valid as before, and the extension may be tried again.
    /// On some nodes the key may stay longer; the lock records that for its release.
    Unanswered(HeldLock),
    /// The lock would be held in all for longer than the configuration allows.
    HeldTooLong(Duration),
}

/// The extension of a lock, in one round.
#[derive(Clone, Debug)]
pub struct Extension {
    /// The lock, which the caller holds by its clock, or resumes.
    pub held: HeldLock,
    /// For how long, from when it began.
    pub ttl: Ttl,
    /// When it began: before the first byte is written.
    pub began: Time,
    /// Does it resume a lock by its token? Then only the nodes know whether the lock is held.
    pub is_resumed: bool,
}

impl Extension {
    /// What the nodes are asked; or the outcome, if they need not be asked.
    #[expect(
        clippy::result_large_err,
        reason = "a request is as large, and so is what follows from its votes"
    )]
    pub fn request(&self, rules: &Rules) -> Result<Request, Extended> {
        let now = self.began;
        let hold = now.after(self.ttl.as_duration()).since(self.held.since);
        if now >= self.held.valid_until {
            return Err(Extended::Lost(self.held.clone()));
        }
        if rules.hold_max.is_some_and(|most| hold > most) {
            return Err(Extended::HeldTooLong(hold));
        }
        // All nodes, also those that never had the key: it is restored where it was lost.
        let keep = Keep {
            lock: self.held.id(),
            ttl: self.ttl,
            restores: false,
            reclaims: false,
            is_resumed: self.is_resumed,
        };
        let to_all = Request::to_all(rules, now, Command::Keep(keep));
        // A round that waits for slow nodes, or for connections, leaves time for others, which ask
        // also the nodes that could not be reached.
        let part = now.after(self.held.valid_until.since(now) / 4);
        let connect_deadline = to_all.connect_deadline.min(part).max(to_all.deadline);
        Ok(Request {
            connect_deadline,
            ..to_all
        })
    }

    /// What follows from the votes. `now` was read after the answer that decided the round.
    pub fn conclude(self, now: Time, votes: &Votes, rules: &Rules) -> Extended {
        // This holds for a confirmed extension too: a node may have granted it because the request
        // that took the lock reached the node only now. Until then another client may have had it.
        let is_past = now >= self.held.valid_until;
        let mut held = self.held;
        held.nodes = held.nodes.union(votes.sent);
        held.ttl_longest = held.ttl_longest.max(self.ttl);

        let tally = &votes.tally;
        if tally.granted_by_majority() == Verdict::Won {
            if is_past {
                // With the old end: another extension that was confirmed in time may have kept the
                // lock, and this answer must not look like the nodes' denial of it.
                return Extended::Lost(held);
            }
            let valid_until = self.began.after(rules.drift.validity(self.ttl));
            held.ttl = self.ttl;
            held.valid_until = held.valid_until.max(valid_until);
            Extended::Confirmed(held)
        } else if is_past || judge(tally.nodes(), 0, tally.refused.len()) == Verdict::Lost {
            // Whatever the nodes without an answer hold is not a majority, or was one too long ago.
            Extended::Lost(held)
        } else {
            Extended::Unanswered(held)
        }
    }
}

// Releasing a lock: compare and delete, on every node that may hold its key.

/// The release of a lock, in one round.
#[derive(Clone, Copy, Debug)]
pub struct Release<'a> {
    pub held: &'a HeldLock,
    /// If given, the key stays for this time from when it began.
    pub keep_for: Option<Ttl>,
    pub began: Time,
}

impl Release<'_> {
    pub fn request(&self, rules: &Rules) -> Request {
        // The key may still exist, late or not, and a key that stays only blocks other clients.
        let removal = Removal {
            keep_for: self.keep_for,
            is_awaited: true,
            ..self.held.removal()
        };
        self.held
            .request(Command::Remove(removal), self.began, rules)
    }

    /// Was the lock held to the end?
    ///
    /// `Won` if a majority held the key until the release, and deleted it or set how long it stays.
    /// `Lost` if the validity had passed, or if no majority held the key any more. `Pending` if too
    /// few nodes answered to know; the keys that remain expire with their ttl.
    pub fn conclude(&self, votes: &Votes) -> Verdict {
        if self.began >= self.held.valid_until {
            return Verdict::Lost;
        }
        // A majority still held our token when it deleted it, so no other client can have held the
        // lock before that, however long the answers took. A node without an answer may have held
        // the key: only a refusal says that it did not.
        let tally = &votes.tally;
        judge(tally.nodes(), tally.granted.len(), tally.refused.len())
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::fixture::{held_lock, rules, votes_of};
    use crate::engine::held_lock::*;
    use crate::engine::{NodeSet, Verb};

    fn ttl(millis: u64) -> Ttl {
        Ttl::from_duration(Duration::from_millis(millis)).unwrap()
    }

    /// Extends a lock that was taken at 0 for 1,000 ms and is valid until 988.
    fn extend(millis: u64, now: u64) -> Extension {
        Extension {
            held: held_lock(0, 1_000),
            ttl: ttl(millis),
            began: Time::from_millis(now),
            is_resumed: false,
        }
    }

    fn request(extension: &Extension) -> Request {
        extension.request(&rules(5)).expect("the nodes are asked")
    }

    /// The outcome of one that was sent, with these votes at this time.
    fn answer(extension: Extension, now: u64, votes: &str) -> Extended {
        request(&extension);
        extension.conclude(Time::from_millis(now), &votes_of(votes), &rules(5))
    }

    #[test]
    fn a_confirmed_extension_counts_from_before_the_request() {
        let extend = extend(1_000, 500);
        let request = request(&extend);
        assert_eq!(
            (request.verb(), request.nodes),
            (Verb::Extend, NodeSet::all(5))
        );
        let Extended::Confirmed(held) = answer(extend, 510, "yyy--") else {
            panic!()
        };
        assert_eq!(held.valid_until, Time::from_millis(500 + 988));
    }

    #[test]
    fn a_key_expires_later_where_it_lives_longer_than_its_lock() {
        let held = held_lock(0, 1_000);
        let later = Rules {
            skew: Duration::from_millis(250),
            ..(*rules(5)).clone()
        };
        assert_eq!(held.expires_at(&rules(5)), Time::from_millis(1_000));
        assert_eq!(held.expires_at(&later), Time::from_millis(1_250));
    }

    #[test]
    fn an_extension_that_waits_for_slow_nodes_leaves_time_for_others() {
        let ends = |now| request(&extend(1_000, now)).connect_deadline;
        assert_eq!(ends(500), Time::from_millis(500 + 488 / 4));
        // Its round takes as long as any.
        assert_eq!(ends(980), request(&extend(1_000, 980)).deadline);
    }

    #[test]
    fn a_shorter_extension_never_shortens_the_validity() {
        let extend = extend(100, 500);
        assert_eq!(request(&extend).ttl(), Some(ttl(100)));
        let Extended::Confirmed(held) = answer(extend, 510, "yyyyy") else {
            panic!()
        };
        assert_eq!(held.valid_until, Time::from_millis(988));
        assert_eq!((held.ttl, held.ttl_longest), (ttl(100), ttl(1_000)));
    }

    #[test]
    fn nothing_is_sent_once_the_validity_has_passed() {
        for (now, lost) in [(987, false), (988, true), (9_999, true)] {
            let request = extend(1_000, now).request(&rules(5));
            assert_eq!(matches!(request, Err(Extended::Lost(_))), lost);
            assert_eq!(request.is_ok(), !lost);
        }
    }

    #[test]
    fn an_extension_with_too_few_answers_keeps_the_old_validity() {
        for votes in ["yyfff", "fffff", "ynnff", "nnfff", "yynnf"] {
            let Extended::Unanswered(held) = answer(extend(1_000, 500), 550, votes) else {
                panic!("{votes}")
            };
            assert_eq!(held.valid_until, Time::from_millis(988));

            let outcome = answer(extend(1_000, 950), 1_000, votes);
            assert!(matches!(outcome, Extended::Lost(_)));
        }
    }

    #[test]
    fn a_lock_is_lost_at_once_when_a_majority_refuses_the_extension() {
        for votes in ["nnn--", "nnnff", "yynnn", "nnnnn"] {
            let outcome = answer(extend(1_000, 500), 510, votes);
            assert!(matches!(outcome, Extended::Lost(_)), "{votes}");
        }
    }

    #[test]
    fn the_release_of_a_lost_lock_stays_pending_for_the_longest_ttl_sent() {
        let Extended::Lost(held) = answer(extend(60_000, 500), 510, "nnny-") else {
            panic!()
        };
        let undo = held.undo(Time::from_millis(520), &rules(5));
        assert_eq!(
            (undo.ttl(), undo.nodes),
            (Some(ttl(60_000)), NodeSet::all(5))
        );
    }

    #[test]
    fn a_lock_is_released_on_every_node_that_got_an_extension() {
        // The last two never had the key; if it is restored there, it must be removed again.
        let mut before = held_lock(0, 1_000);
        before.nodes = votes_of("yyy--").tally.granted;
        for votes in ["yyynn", "yyfff", "nnnyy"] {
            let extend = Extension {
                held: before.clone(),
                ..extend(1_000, 500)
            };
            let (Extended::Confirmed(held) | Extended::Unanswered(held) | Extended::Lost(held)) =
                answer(extend, 510, votes)
            else {
                panic!("{votes}")
            };
            assert_eq!(held.nodes, NodeSet::all(5), "{votes}");
        }
    }

    #[test]
    fn a_confirmation_after_the_old_and_the_new_validity_counts_as_lost() {
        let outcome = answer(extend(100, 500), 988, "yyyyy");
        assert!(matches!(outcome, Extended::Lost(_)));
    }

    #[test]
    fn a_confirmation_after_the_old_validity_counts_as_lost() {
        // A node may have got the key only now, from a request that was late; until then another
        // client may have had the lock.
        for (now, is_lost) in [(987, false), (988, true), (1_010, true)] {
            let outcome = answer(extend(1_000, 970), now, "yyyyy");
            assert_eq!(
                matches!(outcome, Extended::Lost(_)),
                is_lost,
                "{now}: {outcome:?}"
            );
        }
    }

    #[test]
    fn a_late_confirmation_does_not_change_the_validity() {
        // A comparison with another extension of the same lock must show that this one is lost by
        // the clock, and not by the nodes' answers.
        let Extended::Lost(held) = answer(extend(1_000, 970), 988, "yyyyy") else {
            panic!()
        };
        assert_eq!(
            (held.valid_until, held.ttl),
            (Time::from_millis(988), ttl(1_000))
        );
        assert_eq!(
            (held.ttl_longest, held.nodes),
            (ttl(1_000), NodeSet::all(5))
        );
    }

    #[test]
    fn the_total_time_is_capped() {
        let mut rules = (*rules(5)).clone();
        rules.hold_max = Some(Duration::from_millis(1_500));
        assert!(extend(1_000, 500).request(&rules).is_ok());
        let too_long = extend(1_000, 501).request(&rules);
        assert!(matches!(too_long, Err(Extended::HeldTooLong(_))));
    }

    mod release {
        use crate::engine::fixture::{held_lock, rules, votes_of};
        use crate::engine::held_lock::*;
        use crate::engine::{TTL_LIMIT, Verb};
        use std::time::Duration;

        fn release(held: &HeldLock, now: u64) -> Release<'_> {
            Release {
                held,
                keep_for: None,
                began: Time::from_millis(now),
            }
        }

        #[test]
        fn the_answers_say_whether_the_lock_was_held_to_the_end() {
            let table = [
                ("yyy--", Verdict::Won),
                ("yyynn", Verdict::Won),
                ("yynnn", Verdict::Lost),
                ("nnn--", Verdict::Lost),
                ("yynff", Verdict::Pending),
                ("yyfff", Verdict::Pending),
                ("fffff", Verdict::Pending),
            ];
            for (votes, expected) in table {
                let held = held_lock(0, 1_000);
                let release = release(&held, 500);
                assert_eq!(release.request(&rules(5)).verb(), Verb::Release);
                assert_eq!(release.conclude(&votes_of(votes)), expected, "{votes}");
            }
        }

        #[test]
        fn an_expired_lock_is_released_too_late_but_released() {
            for votes in ["yyyyy", "nnnnn", "fffff"] {
                let held = held_lock(0, 1_000);
                let release = release(&held, 988);
                assert_eq!(release.request(&rules(5)).verb(), Verb::Release);
                assert_eq!(release.conclude(&votes_of(votes)), Verdict::Lost);
            }
        }

        #[test]
        fn a_release_before_hold_at_least_keeps_the_key_for_the_rest_of_that_time() {
            let held = held_lock(2_000, 1_000);
            let least = Duration::from_millis(30_000);
            let table = [
                (2_000, Some(30_000)),
                (2_400, Some(29_600)),
                (31_999, Some(1)),
                (32_000, None),
                (40_000, None),
            ];
            for (now, left) in table {
                let now = Time::from_millis(now);
                let keep_for = held.keep_for(least, now);
                assert_eq!(keep_for.map(Ttl::as_millis), left);
                let release = Release {
                    held: &held,
                    keep_for,
                    began: now,
                };
                let request = release.request(&rules(5));
                let removal = Removal {
                    keep_for,
                    ..held.removal()
                };
                let release = Removal {
                    is_awaited: true,
                    ..removal.clone()
                };
                assert_eq!(request.command, Command::Remove(release));
                let undo = held.undo_after(keep_for, now, &rules(5));
                assert_eq!(undo.command, Command::Remove(removal));
                let undo = held.undo(now, &rules(5));
                assert_eq!(undo.command, Command::Remove(held.removal()));
            }
            let almost = held.since.after(Duration::from_nanos(29_999_000_001));
            assert_eq!(
                held.keep_for(least, almost).map(Ttl::as_millis),
                Some(1),
                "it is rounded up"
            );
            assert_eq!(held.keep_for(Duration::ZERO, held.since), None);
            let longest = held.keep_for(TTL_LIMIT, held.since).map(Ttl::as_duration);
            assert_eq!(
                longest,
                Some(TTL_LIMIT),
                "the longest is not taken for none"
            );
        }
    }
}
