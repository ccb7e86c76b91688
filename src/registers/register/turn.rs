//! The turns of clients that change a register at the same time: whether a change is made does not
//! depend on them.

use super::Register;
use crate::guard::LockGuard;
use std::time::Duration;

/// How the key of a lock ends in whose queue those stand who change a register at the same time.
const TURN: &[u8] = b":redlatch:turn";

/// For how long a client has its turn, and for how long it waits for it at most.
const TURN_TTL: Duration = Duration::from_secs(2);

/// A client has its turn as long as it has this.
pub(super) struct Turn {
    _lock: LockGuard,
}

impl Register {
    /// Waits for the turn of this client. `None` if it does without.
    pub(super) async fn take_turn(&self) -> Option<Turn> {
        let client = &self.client;
        let turn = [&self.lock, TURN].concat();
        let ttl = TURN_TTL.min(client.core.max_ttl);
        let mut request = client
            .request_key(turn.into())
            .ttl(ttl)
            .min_validity(Duration::ZERO);
        request.settings.counts_in_quarantine = true;
        let lock = request.try_lock_for(ttl).ok().flatten();
        lock.map(|lock| Turn { _lock: lock })
    }
}
