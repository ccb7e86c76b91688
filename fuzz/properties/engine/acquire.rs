//! Acquiring a lock. Properties:
//!
//! - it is never held without a majority of the configured nodes, nor with less validity than the
//!   minimum, and its validity follows the formula;
//! - each attempt has the token that was drawn for it;
//! - after a failed attempt, its undo comes first, to each node that it was sent to; the same for a
//!   lock that was to be handed off;
//! - a permit is held only with a majority for the same one, and that is the one in the lock;
//! - no pause is longer than the settings allow, and none ends after the caller's deadline; no
//!   second attempt begins after it, and no round continues beyond it;
//! - a request for one attempt gets another only after a split vote, and no more than fit in one
//!   round;
//! - the outcome is that of the last votes, and the operation ends: see [`Attempts::check_end`].

use super::outcome::Outcome;
use super::votes::{is_like, is_majority, predecessor_of, share_of, token_of, ttl_of, votes_of};
use super::{Client, attributes, duration, predecessor, wanted};
use redlatch_protocol::engine::{
    Acquire, Acquired, Before, Claim, Command, Entropy, HeldLock, Input, NodeSet, Request, Share,
    Step, Token, Ttl, Votes, Wait,
};
use redlatch_protocol::time::Time;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The state of an operation, as seen from outside.
struct Attempts {
    key: Arc<[u8]>,
    ttl: Ttl,
    wait: Wait,
    /// The share that is wanted, if it is not all of the lock.
    share: Option<Share>,
    /// The lock that is to be handed off, until that was tried.
    predecessor: Option<HeldLock>,
    /// The random numbers of the attempt that has begun, and its time.
    begun: Option<(Entropy, Time)>,
    /// The time of the first attempt, and the number of attempts.
    first: Option<Time>,
    count: u32,
    /// Undos that must come before anything else.
    owed: VecDeque<(Token, NodeSet, Ttl, Option<Share>)>,
    /// The outcome if it ends now.
    outcome: Option<Outcome>,
    /// Must it end now? May it?
    must_end: bool,
    may_end: bool,
    /// Is too little time left for another attempt? Then the caller waits for its deadline.
    is_late: bool,
    has_failed: bool,
}

pub(super) fn check(client: &mut Client<'_>, held: Option<HeldLock>) {
    let what = client.byte();
    let ttl = client.ttl();
    let wait = match what % 4 {
        0 => Wait::No,
        1 => Wait::Forever,
        2 => Wait::Until(
            client
                .now
                .before(Duration::from_nanos(client.byte().into())),
        ),
        _ => Wait::Until(client.now.after(duration(client.byte()))),
    };
    let key: Arc<[u8]> = Arc::from(&b"key"[..]);
    let share = wanted(what);
    let machine = Acquire::new(Arc::clone(&client.rules), Arc::clone(&key), ttl, wait);
    let mut machine = machine.with(attributes(share));
    let predecessor = predecessor(what, held);
    if let Some(held) = &predecessor {
        machine = machine.taking_over(held.clone());
    }
    if what & 8 != 0 {
        machine = machine.pausing(client.now.after(duration(client.byte())));
    }
    // Another thread held it until now, which is the outcome without time for an attempt.
    let outcome = predecessor.is_some().then_some(Outcome::Contended);
    let mut attempts = Attempts {
        key,
        ttl,
        wait,
        share,
        predecessor,
        begun: None,
        first: None,
        count: 0,
        owed: VecDeque::new(),
        outcome,
        must_end: false,
        may_end: false,
        is_late: false,
        has_failed: false,
    };
    // When the fuzzer's bytes are used up, no node replies any more, and the next votes are the
    // last. Before that, each step but an undo uses a byte.
    let mut steps_left = 4 * client.input.0.len() + 16;
    while attempts.step(client, &mut machine) {
        steps_left = steps_left.checked_sub(1).expect("it ends");
    }
}

impl Attempts {
    /// One step. Returns whether there will be another.
    fn step(&mut self, client: &mut Client<'_>, machine: &mut Acquire) -> bool {
        let step = machine.poll();
        if let Some((token, nodes, ttl, share)) = self.owed.pop_front() {
            let Step::Send(undo) = step else {
                panic!("{step:?} instead of the undo of {token:?}")
            };
            assert!(undo.is_removal() && !undo.is_answered());
            assert_eq!((token_of(&undo), undo.nodes), (token, nodes));
            assert_eq!((undo.key(), ttl_of(&undo)), (&*self.key, ttl));
            assert!(
                is_like(share_of(&undo), share),
                "nodes may have granted any permit"
            );
            return true;
        }
        match step {
            Step::Send(request) => {
                self.check_request(client, &request);
                client.pass_time();
                let votes = votes_of(client, &request);
                machine.handle(client.now, Input::Votes(votes.clone()));
                self.count(client, &request, &votes);
                true
            }
            Step::Wait(wait) => panic!("it waits in the queue: {wait:?}"),
            Step::Pause(until) => {
                assert!(!self.must_end, "{:?}, and it goes on", self.outcome);
                if self.has_failed {
                    self.check_pause(client, until);
                }
                self.begin(client, machine, until);
                true
            }
            Step::Done(outcome) => {
                self.check_end(client, outcome);
                false
            }
        }
    }

    fn check_request(&mut self, client: &Client<'_>, request: &Request) {
        let (draw, started) = self.begun.take().expect("no attempt has begun");
        assert_eq!((token_of(request), request.started), (draw.token, started));
        assert_eq!((request.key(), ttl_of(request)), (&*self.key, self.ttl));
        assert_eq!(request.nodes, NodeSet::all(client.rules.nodes));
        assert_eq!(share_of(request), self.share);
        let before = self.predecessor.as_ref();
        assert!(request.is_claim() && !request.is_turn());
        let expected = before.map(|held| predecessor_of(held, self.ttl));
        assert_eq!(request.predecessor(), expected.as_ref());
        let round_end = started.after(client.rules.node_timeout);
        assert_eq!(request.deadline, round_end.min(self.end(client)));
    }

    /// Does the caller want one attempt?
    fn is_single(&self) -> bool {
        match self.wait {
            Wait::No => true,
            Wait::Until(time) => self.first.is_some_and(|first| time <= first),
            Wait::Forever => false,
        }
    }

    /// The caller's deadline.
    fn end(&self, client: &Client<'_>) -> Time {
        match (self.wait, self.first) {
            (_, Some(first)) if self.is_single() => first.after(client.rules.node_timeout),
            (Wait::Until(time), _) => time,
            _ => Time::MAX,
        }
    }

    /// A pause, between two attempts.
    fn check_pause(&self, client: &Client<'_>, until: Time) {
        assert!(until > client.now || until == Time::MAX, "a tight loop");
        let longest = client.rules.retry_cap.max(Duration::from_nanos(1));
        let is_last = self.is_late && until == self.end(client);
        assert!(
            until.since(client.now) <= longest || is_last,
            "a pause above the cap"
        );
        assert!(
            until <= self.end(client),
            "a pause beyond the caller's deadline"
        );
    }

    fn begin(&mut self, client: &mut Client<'_>, machine: &mut Acquire, until: Time) {
        client.now = client.now.max(until);
        let what = client.byte();
        if what & 1 != 0 {
            client.pass_time();
        }
        if what & 62 == 62 {
            machine.handle(client.now, Input::NoEntropy);
            self.outcome = Some(Outcome::NoEntropy);
            self.must_end = true;
            self.owe_predecessor(NodeSet::EMPTY);
            return;
        }
        let draw = client.draw();
        machine.handle(client.now, Input::Attempt(draw));
        if client.now >= self.end(client) && self.outcome.is_some() {
            self.must_end = true;
            self.owe_predecessor(NodeSet::EMPTY);
        } else {
            self.begun = Some((draw, client.now));
            self.first.get_or_insert(client.now);
            self.count += 1;
        }
    }

    /// The expected effect of the votes.
    fn count(&mut self, client: &Client<'_>, request: &Request, votes: &Votes) {
        let now = client.now;
        let rules = &client.rules;
        let valid_until = client.valid_until(request.started, self.ttl);
        let is_worth_it = now < valid_until && valid_until.since(now) >= rules.min_validity;
        let is_granted = is_majority(votes.tally.granted, rules.nodes);
        if is_granted && is_worth_it && !votes.same_server {
            let token = token_of(request);
            let since = request.started;
            let nodes = votes.sent;
            let permit = votes.permit;
            self.outcome = Some(Outcome::Held {
                token,
                since,
                valid_until,
                nodes,
                permit,
            });
            self.must_end = true;
            self.owe_predecessor(votes.sent);
            return;
        }
        self.owed
            .push_back((token_of(request), votes.sent, ttl_of(request), self.share));
        self.owe_predecessor(NodeSet::EMPTY);

        let took = now.since(request.started);
        let usable = NodeSet::all(rules.nodes).without(votes.permanent_failures);
        self.has_failed = true;
        let is_over = !self.is_split(client, request, votes)
            || self.count >= 4
            || now.after(took) >= self.end(client);
        self.must_end =
            self.is_single() && is_over || votes.same_server || !is_majority(usable, rules.nodes);
        let is_until = matches!(self.wait, Wait::Until(_)) && !self.is_single();
        // A wait is not over before its end. An attempt begins only if the remaining time suffices
        // for another round like this one.
        self.may_end = is_until && now >= self.end(client);
        let next_end = now.after(took.max(rules.retry_base));
        self.is_late = is_until && next_end >= self.end(client);
        self.outcome = Some(if votes.same_server {
            Outcome::SameServer
        } else if is_granted {
            Outcome::TooLate(took)
        } else if self.is_contended(client, request, votes) {
            Outcome::Contended
        } else {
            Outcome::Unanswered
        });
    }

    /// Did several clients get some nodes each, as far as one of them can see?
    fn is_split(&self, client: &Client<'_>, request: &Request, votes: &Votes) -> bool {
        let nodes = client.rules.nodes;
        let tally = &votes.tally;
        let may_grant = NodeSet::all(nodes)
            .without(tally.refused)
            .without(tally.failed);
        let is_first = |it: &Claim| it.before == Before::Nothing;
        matches!(&request.command, Command::Claim(claim) if is_first(claim))
            && !is_majority(may_grant, nodes)
            && is_majority(tally.granted.union(tally.refused), nodes)
            && !tally.granted.is_empty()
            && !tally.refused.is_empty()
    }

    /// Did a majority reply? If the round ended at the caller's deadline while one still could, the
    /// round before counts.
    fn is_contended(&self, client: &Client<'_>, request: &Request, votes: &Votes) -> bool {
        let nodes = client.rules.nodes;
        let tally = &votes.tally;
        let may_answer = NodeSet::all(nodes).without(tally.failed);
        let was_cut = request.deadline == self.end(client);
        is_majority(tally.granted.union(tally.refused), nodes)
            || (was_cut
                && is_majority(may_answer, nodes)
                && self.outcome == Some(Outcome::Contended))
    }

    /// The lock that was to be handed off is removed where it was not.
    fn owe_predecessor(&mut self, handed_off: NodeSet) {
        let Some(held) = self.predecessor.take() else {
            return;
        };
        let nodes = held.nodes.without(handed_off);
        if !nodes.is_empty() {
            self.owed
                .push_back((held.token, nodes, held.ttl_longest, None));
        }
    }

    /// It ends when it must or when its time is over, with the outcome of the last attempt.
    fn check_end(&self, client: &mut Client<'_>, acquired: Acquired) {
        assert!(self.must_end || self.may_end, "it gave up");
        let outcome = match acquired {
            Acquired::Held(held) => {
                let token = held.token;
                let since = held.since;
                let valid_until = held.valid_until;
                let nodes = held.nodes;
                let share = held.id().share();
                assert!(
                    is_like(share, self.share),
                    "{share:?} instead of {:?}",
                    self.share
                );
                let permit = share.and_then(Share::permit);
                assert_eq!((&held.key, held.ttl), (&self.key, self.ttl));
                assert_eq!(held.ttl_longest, self.ttl);
                client.held = Some(held);
                Outcome::Held {
                    token,
                    since,
                    valid_until,
                    nodes,
                    permit,
                }
            }
            Acquired::Contended => Outcome::Contended,
            Acquired::Unanswered => Outcome::Unanswered,
            Acquired::TooSlow(took) => Outcome::TooLate(took),
            Acquired::SameServer => Outcome::SameServer,
            Acquired::NoEntropy => Outcome::NoEntropy,
        };
        assert_eq!(Some(outcome), self.outcome);
    }
}
