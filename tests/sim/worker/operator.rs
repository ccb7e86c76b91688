//! An operator who force-releases locks: inspects a lock, pauses, and removes the inspected values,
//! as in `src/client.rs`.

use crate::step::Step;
use redlatch_protocol::engine::{Command, Input, Request, Rules};
use redlatch_protocol::inspect::{ForcedRemoval, KeySnapshot, Look};
use redlatch_protocol::node::command::SHARED;
use redlatch_protocol::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// The state machine that inspects and removes.
#[derive(Debug)]
pub(super) struct Operator {
    rules: Arc<Rules>,
    key: Arc<[u8]>,
    /// The pause between the inspection and the removal.
    pause: Duration,
    state: State,
    /// The inspected values.
    seen: Vec<Vec<u8>>,
}

#[derive(Debug)]
enum State {
    Looking(Time),
    Asked,
    Thinking(Time),
    Removing(Time),
    Over,
}

/// What a release by force removes on a node: the value of the key, or the shares of its lock.
pub(super) fn locks(seen: &KeySnapshot) -> Vec<Vec<u8>> {
    if seen.value.as_deref() == Some(SHARED) {
        return seen
            .holders
            .iter()
            .map(|holder| holder.member.clone())
            .collect();
    }
    seen.value.iter().cloned().collect()
}

impl Operator {
    pub(super) fn new(rules: Arc<Rules>, key: Arc<[u8]>, now: Time, pause: Duration) -> Self {
        Self {
            rules,
            key,
            pause,
            state: State::Looking(now),
            seen: Vec::new(),
        }
    }

    /// Takes in the values on the nodes, and pauses if there are any.
    pub(super) fn inspected(&mut self, now: Time, values: Vec<Vec<u8>>) {
        self.state = match values.is_empty() {
            true => State::Over,
            false => State::Thinking(now.after(self.pause)),
        };
        self.seen = values;
    }

    pub(super) fn handle(&mut self, now: Time, input: Input) {
        self.state = match (&self.state, input) {
            (State::Thinking(_), Input::Attempt(_)) => State::Removing(now),
            _ => State::Over,
        };
    }

    pub(super) fn poll<T>(&mut self, over: T) -> Step<T> {
        match self.state {
            State::Looking(now) => {
                self.state = State::Asked;
                Step::Send(self.look(now))
            }
            State::Thinking(until) => Step::Pause(until),
            State::Removing(now) => {
                self.state = State::Over;
                Step::Send(self.removal(now))
            }
            State::Asked | State::Over => Step::Done(over),
        }
    }

    /// The look at the key.
    fn look(&self, now: Time) -> Request {
        let look = Look::new(Arc::clone(&self.key));
        Request::to_all(&self.rules, now, Command::Custom(Arc::new(look)))
    }

    /// The removal of the inspected value, and of nothing else.
    fn removal(&self, now: Time) -> Request {
        let key = Arc::clone(&self.key);
        let seen = Arc::from(self.seen.clone());
        Request::to_all(
            &self.rules,
            now,
            Command::Custom(Arc::new(ForcedRemoval { key, seen })),
        )
    }
}
