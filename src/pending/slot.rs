//! Where the result of a started call is left for whoever waits for it.
//!
//! What must stay true: a result is taken once or dropped once, and whoever polled last is woken
//! for it. Wakers and callbacks are users' code: they are cloned, called and dropped outside the
//! lock.

use super::sync::{Mutex, MutexGuard, PoisonError};
use crate::callback::contain;
use std::mem;
use std::task::{Poll, Waker};

pub(super) struct Slot<T> {
    state: Mutex<State<T>>,
}

enum State<T> {
    /// The call goes on. Who polled last is woken when it has ended.
    Empty(Option<Waker>),
    /// This gets the result.
    Callback(Callback<T>),
    Full(T),
    /// The result was taken, or nobody waits for it.
    Over,
}

type Callback<T> = Box<dyn FnOnce(T) + Send>;

impl<T> Slot<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State::Empty(None)),
        }
    }

    /// The call has ended. Its result goes to whoever waits for it, or is dropped.
    pub(super) fn fill(&self, result: T) {
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Over) {
            State::Empty(waker) => {
                *state = State::Full(result);
                drop(state);
                if let Some(waker) = waker {
                    contain(|| waker.wake());
                }
            }
            State::Callback(callback) => {
                drop(state);
                callback(result);
            }
            State::Full(_) | State::Over => {
                drop(state);
                contain(|| drop(result));
            }
        }
    }

    /// The result, if it is there. If not, `waker` is woken for it, and no other any more.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<T> {
        let waker = waker.clone();
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Over) {
            State::Full(result) => {
                drop(state);
                Poll::Ready(result)
            }
            before => {
                *state = State::Empty(Some(waker));
                drop(state);
                drop(before);
                Poll::Pending
            }
        }
    }

    /// Has this called with the result: now, if it is there.
    pub(super) fn call(&self, callback: Callback<T>) {
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Over) {
            State::Full(result) => {
                drop(state);
                callback(result);
            }
            before => {
                *state = State::Callback(callback);
                drop(state);
                drop(before);
            }
        }
    }

    /// Nobody waits for the result any more: it is dropped, now or when it comes.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        let before = mem::replace(&mut *state, State::Over);
        drop(state);
        drop(before);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
