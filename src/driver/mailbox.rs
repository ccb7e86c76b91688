//! Between a started call and the thread that polls it.

use super::MakeRequest;
use crate::clock::Time;
use crate::node::{Ended, Order};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// What a call waits for.
pub(super) enum Wish {
    /// There is room for its rounds, or it is woken, or this time has come.
    Room {
        until: Option<Time>,
        is_awaited: bool,
    },
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

#[derive(Default)]
struct Letters {
    /// From the call.
    wish: Option<Wish>,
    /// From the call: messages are left to whoever leads next.
    has_message: bool,
    /// To the call: there is room for its rounds.
    has_room: bool,
    /// To the call: how its order has ended.
    ended: Option<Ended>,
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
        std::mem::take(&mut self.lock().has_message)
    }

    pub(super) fn give_room(&self) {
        self.lock().has_room = true;
    }

    pub(super) fn take_room(&self) -> bool {
        std::mem::take(&mut self.lock().has_room)
    }

    pub(super) fn put(&self, ended: Ended) {
        self.lock().ended = Some(ended);
    }

    /// How the order has ended that the call has wished. The thread polls the call when it is
    /// there.
    pub(super) fn poll_ended(&self) -> Poll<Ended> {
        let ended = self.lock().ended.take();
        ended.map_or(Poll::Pending, Poll::Ready)
    }

    fn lock(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
