//! Extending a lock. A failed extension does not shorten the lock: it stays valid until its old
//! validity ends, unless the nodes' answers prove that no majority holds it any more.

use super::judge;
use super::{Action, Ballot, HeldLock, Input, Operation, Request, Rules, Step, Ttl, Verdict};
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// The outcome of extending a lock.
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

/// The state machine that extends a lock.
#[derive(Debug)]
pub struct Extend {
    rules: Arc<Rules>,
    held: HeldLock,
    state: State,
}

#[derive(Debug)]
enum State {
    Asking { request: Request, ttl: Ttl, is_sent: bool },
    Over(Option<Extended>),
}

impl Extend {
    /// Extends `held`, which the caller believes to hold, to `ttl` from `now` on.
    pub fn new(rules: Arc<Rules>, held: HeldLock, ttl: Ttl, now: Time) -> Self {
        let hold = now.after(ttl.as_duration()).since(held.since);
        let state = if now >= held.valid_until {
            State::Over(Some(Extended::Lost(held.clone())))
        } else if rules.hold_max.is_some_and(|most| hold > most) {
            State::Over(Some(Extended::HeldTooLong(hold)))
        } else {
            // All nodes, also those that never had the key: it is restored where it was lost.
            let action = Action::Extend { lock: held.id(), ttl };
            let request = Request::to_all(&rules, now, action);
            // Waiting for connections for longer than the lock is valid would be of no use.
            let connect_deadline = request.connect_deadline.min(held.valid_until);
            let connect_deadline = connect_deadline.max(request.deadline);
            let request = Request { connect_deadline, ..request };
            State::Asking { request, ttl, is_sent: false }
        };
        Self { rules, held, state }
    }

    /// Is it over before anything was sent?
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    /// The outcome of an extension to `ttl` that was requested at `started`.
    fn conclude(&self, now: Time, started: Time, ttl: Ttl, ballot: &Ballot) -> Extended {
        // This holds for a confirmed extension too: a node may have granted it because the request
        // that took the lock reached the node only now. Until then another client may have had it.
        let is_past = now >= self.held.valid_until;
        let mut held = self.held.clone();
        held.nodes = held.nodes.union(ballot.sent);
        held.ttl_longest = held.ttl_longest.max(ttl);

        let tally = &ballot.tally;
        if tally.granted_by_majority() == Verdict::Won {
            if is_past {
                // With the old end: another extension that was confirmed in time may have kept the
                // lock, and this answer must not look like the nodes' denial of it.
                return Extended::Lost(held);
            }
            let valid_until = started.after(self.rules.drift.validity(ttl));
            held.ttl = ttl;
            held.valid_until = held.valid_until.max(valid_until);
            Extended::Confirmed(held)
        } else if is_past || judge(tally.nodes(), 0, tally.refused.len()) == Verdict::Lost {
            // Whatever the nodes without an answer hold is no majority, or was one too long ago.
            Extended::Lost(held)
        } else {
            Extended::Unanswered(held)
        }
    }
}

impl Operation for Extend {
    type Outcome = Extended;

    fn handle(&mut self, now: Time, input: Input) {
        match (std::mem::replace(&mut self.state, State::Over(None)), input) {
            (State::Asking { request, ttl, is_sent: true }, Input::Ballot(ballot)) => {
                let outcome = self.conclude(now, request.started, ttl, &ballot);
                self.state = State::Over(Some(outcome));
            }
            (state, input) => {
                debug_assert!(false, "{input:?} in {state:?}");
                self.state = state;
            }
        }
    }

    fn poll(&mut self) -> Step<Extended> {
        match &mut self.state {
            State::Asking { request, is_sent, .. } => {
                debug_assert!(!*is_sent, "polled while the nodes are being asked");
                *is_sent = true;
                Step::Send(request.clone())
            }
            State::Over(outcome) => Step::Done(
                outcome.take().expect("the outcome is taken once, and nothing polled after it"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Script, ballot, held_lock, rules};
    use super::super::{NodeSet, Verb};
    use super::*;

    fn ttl(millis: u64) -> Ttl {
        Ttl::from_duration(Duration::from_millis(millis)).unwrap()
    }

    /// Extends a lock that was taken at 0 for 1,000 ms and is valid until 988.
    fn extend(millis: u64, now: u64) -> Script<Extend> {
        Script::new(Extend::new(rules(5), held_lock(0, 1_000), ttl(millis), Time::from_millis(now)))
    }

    #[test]
    fn a_confirmed_extension_counts_from_before_the_request() {
        let mut extend = extend(1_000, 500);
        let request = extend.request();
        assert_eq!((request.verb(), request.nodes), (Verb::Extend, NodeSet::all(5)));
        let Extended::Confirmed(held) = extend.answer(510, ballot("yyy--")).done() else {
            panic!()
        };
        assert_eq!(held.valid_until, Time::from_millis(500 + 988));
    }

    #[test]
    fn a_shorter_extension_never_shortens_the_validity() {
        let mut extend = extend(100, 500);
        assert_eq!(extend.request().ttl(), Some(ttl(100)));
        let Extended::Confirmed(held) = extend.answer(510, ballot("yyyyy")).done() else {
            panic!()
        };
        assert_eq!(held.valid_until, Time::from_millis(988));
        assert_eq!((held.ttl, held.ttl_longest), (ttl(100), ttl(1_000)));
    }

    #[test]
    fn nothing_is_sent_once_the_validity_has_passed() {
        for (now, lost) in [(987, false), (988, true), (9_999, true)] {
            let mut extend = extend(1_000, now);
            if lost {
                assert!(matches!(extend.done(), Extended::Lost(_)));
            } else {
                extend.request();
            }
        }
    }

    #[test]
    fn an_extension_with_too_few_answers_keeps_the_old_validity() {
        for votes in ["yyfff", "fffff", "ynnff", "nnfff", "yynnf"] {
            let mut script = extend(1_000, 500);
            script.request();
            let Extended::Unanswered(held) = script.answer(550, ballot(votes)).done() else {
                panic!("{votes}")
            };
            assert_eq!(held.valid_until, Time::from_millis(988));

            let mut script = extend(1_000, 950);
            script.request();
            assert!(matches!(script.answer(1_000, ballot(votes)).done(), Extended::Lost(_)));
        }
    }

    #[test]
    fn a_lock_is_lost_at_once_when_a_majority_refuses_the_extension() {
        for votes in ["nnn--", "nnnff", "yynnn", "nnnnn"] {
            let mut extend = extend(1_000, 500);
            extend.request();
            assert!(
                matches!(extend.answer(510, ballot(votes)).done(), Extended::Lost(_)),
                "{votes}"
            );
        }
    }

    #[test]
    fn the_release_of_a_lost_lock_stays_pending_for_the_longest_ttl_sent() {
        let mut extend = extend(60_000, 500);
        extend.request();
        let Extended::Lost(held) = extend.answer(510, ballot("nnny-")).done() else { panic!() };
        let undo = held.undo(Time::from_millis(520), &rules(5));
        assert_eq!((undo.ttl(), undo.nodes), (Some(ttl(60_000)), NodeSet::all(5)));
    }

    #[test]
    fn a_lock_is_released_on_every_node_that_got_an_extension() {
        // The last two never had the key; if it is restored there, it must be removed again.
        let mut before = held_lock(0, 1_000);
        before.nodes = ballot("yyy--").tally.granted;
        for votes in ["yyynn", "yyfff", "nnnyy"] {
            let now = Time::from_millis(500);
            let mut extend = Script::new(Extend::new(rules(5), before.clone(), ttl(1_000), now));
            extend.request();
            let (Extended::Confirmed(held) | Extended::Unanswered(held) | Extended::Lost(held)) =
                extend.answer(510, ballot(votes)).done()
            else {
                panic!("{votes}")
            };
            assert_eq!(held.nodes, NodeSet::all(5), "{votes}");
        }
    }

    #[test]
    fn a_confirmation_after_the_old_and_the_new_validity_counts_as_lost() {
        let mut extend = extend(100, 500);
        extend.request();
        assert!(matches!(extend.answer(988, ballot("yyyyy")).done(), Extended::Lost(_)));
    }

    #[test]
    fn a_confirmation_after_the_old_validity_counts_as_lost() {
        // A node may have got the key only now, from a request that was late; until then another
        // client may have had the lock.
        for (now, is_lost) in [(987, false), (988, true), (1_010, true)] {
            let mut extend = extend(1_000, 970);
            extend.request();
            let outcome = extend.answer(now, ballot("yyyyy")).done();
            assert_eq!(matches!(outcome, Extended::Lost(_)), is_lost, "{now}: {outcome:?}");
        }
    }

    #[test]
    fn a_late_confirmation_does_not_change_the_validity() {
        // A comparison with another extension of the same lock must show that this one is lost by
        // the clock, and not by the nodes' answers.
        let mut extend = extend(1_000, 970);
        extend.request();
        let Extended::Lost(held) = extend.answer(988, ballot("yyyyy")).done() else { panic!() };
        assert_eq!((held.valid_until, held.ttl), (Time::from_millis(988), ttl(1_000)));
        assert_eq!((held.ttl_longest, held.nodes), (ttl(1_000), NodeSet::all(5)));
    }

    #[test]
    fn the_total_time_is_capped() {
        let mut rules = (*rules(5)).clone();
        rules.hold_max = Some(Duration::from_millis(1_500));
        let rules = Arc::new(rules);
        let extend = |now| {
            let now = Time::from_millis(now);
            Script::new(Extend::new(Arc::clone(&rules), held_lock(0, 1_000), ttl(1_000), now))
        };
        extend(500).request();
        assert!(matches!(extend(501).done(), Extended::HeldTooLong(_)));
    }
}
