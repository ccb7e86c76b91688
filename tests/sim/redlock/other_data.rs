//! In the place of what asks nodes once more: the data under a simulated lock's key is a lock, and
//! who waits for the end of a quarantine is content with less.

use super::call::{Call, NodesCaller};
use crate::error::Error;
use redlatch_protocol::engine::{Acquire, Acquired, Step};

pub(super) struct LastLooks;

impl<C: NodesCaller> Call<'_, '_, C> {
    pub(super) fn may_look(&self, _: &Acquire, _: &Step) -> bool {
        false
    }

    pub(super) async fn find_other_data(&mut self) -> Option<Error> {
        None
    }

    pub(super) async fn unanswered(&mut self) -> Acquired {
        Acquired::Unanswered
    }
}
