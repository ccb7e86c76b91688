//! Between a started call and the thread that polls it.

use super::MakeRequest;
use crate::cancel_token::CancelToken;
use crate::clock::Time;
use crate::node::{Ended, Order};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// What a call waits for.
pub(super) enum Wish {
    /// This order is fulfilled.
    Order(Order),
    /// The request is answered that this makes.
    Request(MakeRequest),
    /// It is woken, or this time has come.
    Sleep(Option<Time>),
}

#[derive(Default)]
pub(super) struct Mailbox {
    letters: Mutex<Letters>,
    /// Does nobody wait for the call any more?
    pub(super) is_dropped: Arc<AtomicBool>,
}

struct Letters {
    /// From the call: those that cancel it.
    tokens: Vec<CancelToken>,
    /// From the call.
    wish: Option<Wish>,
    /// From the call: messages are left to whoever leads next.
    has_message: bool,
    /// To the call: how its order has ended. None: it was left unsent, because the call is
    /// cancelled.
    ended: Poll<Option<Ended>>,
}

impl Default for Letters {
    fn default() -> Self {
        Self {
            tokens: Vec::new(),
            wish: None,
            has_message: false,
            ended: Poll::Pending,
        }
    }
}

impl Mailbox {
    /// What the call waits for from now on.
    pub(super) fn wish(&self, wish: Wish) {
        self.lock().wish = Some(wish);
    }

    pub(super) fn take_wish(&self) -> Option<Wish> {
        self.lock().wish.take()
    }

    pub(super) fn note_message(&self) {
        self.lock().has_message = true;
    }

    pub(super) fn take_message(&self) -> bool {
        mem::take(&mut self.lock().has_message)
    }

    /// The call is cancelled by these too.
    pub(super) fn add_tokens(&self, tokens: impl IntoIterator<Item = CancelToken>) {
        self.lock().tokens.extend(tokens);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_dropped.load(Ordering::SeqCst)
            || self.lock().tokens.iter().any(CancelToken::is_cancelled)
    }

    pub(super) fn put(&self, ended: Option<Ended>) {
        self.lock().ended = Poll::Ready(ended);
    }

    /// How the order has ended that the call has wished. The thread polls the call when it is
    /// there.
    pub(super) fn poll_ended(&self) -> Poll<Option<Ended>> {
        mem::replace(&mut self.lock().ended, Poll::Pending)
    }

    fn lock(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
