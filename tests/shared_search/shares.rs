//! What a node does about shares: `sharing.lua`, `share.lua`, `extend_shared.lua`,
//! `restore_shared.lua` and `release_shared.lua`.

use crate::air::{Air, Word};
use crate::node::{Key, Node, Outcome, Share, Slot, Waiter};
use crate::scheme::{Mistake, Scheme, Want};
use crate::token::Token;

impl Node {
    /// Do readers hold the lock? `None` if nobody has a share.
    fn are_readers(&self) -> Option<bool> {
        self.holders.first().map(|share| share.slot.is_none())
    }

    /// The waiters that can have a share now, with their slots, and the one after them. Those
    /// without a lease are removed on the way.
    fn served(&mut self, scheme: &Scheme) -> (Vec<(Token, Slot)>, Option<Token>) {
        let (mut used, mut readers) = (self.slots_in_use(), self.are_readers());
        let mut found = Vec::new();
        for waiter in self.queue.clone() {
            if !waiter.has_lease {
                self.remove(waiter.id);
                continue;
            }
            let Some(want) = waiter.want else { continue };
            if want == Want::Exclusive && scheme.makes(Mistake::SharesPassWriters) {
                continue;
            }
            let is_reader = want == Want::Reader;
            let has_room = want.is_share() && *readers.get_or_insert(is_reader) == is_reader;
            let slot = match want {
                Want::Permit(permits) => free_slot(&used, permits, 0).map(Some),
                _ => Some(None),
            };
            let Some(slot) = slot.filter(|_| has_room) else { return (found, Some(waiter.id)) };
            used.push(slot);
            found.push((waiter.id, slot));
        }
        (found, None)
    }

    /// The slot for this waiter, if it can have a share now.
    pub(crate) fn slot_for(&mut self, id: Token, scheme: &Scheme) -> Option<Slot> {
        let (served, _) = self.served(scheme);
        served.into_iter().find(|(name, _)| *name == id).map(|(_, slot)| slot)
    }

    /// `call_waiters` of `sharing.lua`
    pub(crate) fn call(&mut self, scheme: &Scheme, air: &mut Air) {
        let mut has_called = false;
        let (served, following) = loop {
            let (served, following) = self.served(scheme);
            let mut is_heard = true;
            for (id, _) in &served {
                if self.is_called(*id) {
                    continue;
                }
                let is_told = self.tell(*id, Word::Reserved, air);
                (is_heard, has_called) = (is_heard && is_told, has_called || is_told);
                self.called.extend(is_told.then_some((*id, false)));
            }
            if is_heard {
                break (served, following);
            }
        };
        self.called.retain(|(id, _)| served.iter().any(|(name, _)| name == id));
        self.called.sort_unstable();
        if let Some(following) = following.filter(|_| has_called) {
            self.tell(following, Word::AskLater, air);
        }
    }

    /// `call_next` of `release_shared.lua`
    fn call_next(&mut self, was_first: bool, air: &mut Air) {
        let ids: Vec<Token> = self.queue.iter().map(|waiter| waiter.id).collect();
        let mut has_called = false;
        for id in ids {
            if has_called {
                self.tell(id, Word::AskLater, air);
                return;
            }
            if self.is_called(id) {
                continue;
            }
            let is_permit = |waiter: &Waiter| {
                let wants = matches!(waiter.want, Some(Want::Permit(_)));
                waiter.id == id && waiter.has_lease && wants
            };
            if self.are_readers() != Some(false) || !self.queue.iter().any(is_permit) {
                if was_first {
                    self.tell(id, Word::AskNow, air);
                }
                return;
            }
            has_called = self.tell(id, Word::Reserved, air);
            self.called.extend(has_called.then_some((id, false)));
            self.called.sort_unstable();
        }
    }

    fn is_called(&self, id: Token) -> bool {
        self.called.iter().any(|(name, _)| *name == id)
    }

    /// `share.lua`
    pub(crate) fn share(
        &mut self,
        turn: Option<(Token, Slot)>,
        token: Token,
        want: Want,
        scheme: &Scheme,
        air: &mut Air,
    ) -> Outcome {
        let id = turn.map(|(id, _)| id);
        let is_open = match self.key {
            Key::Free | Key::Shared => true,
            Key::Reserved(owner, _) => id == Some(owner),
            Key::Held(_) => scheme.makes(Mistake::SharesBesideToken),
        };
        if !is_open {
            return Outcome::Refused;
        }
        self.begin_shares(scheme);
        let known = self.holders.iter().find(|share| share.token == token).map(|share| share.slot);
        let slot = match id.filter(|id| self.number_of(*id).is_some()) {
            _ if known.is_some() => known,
            Some(id) => {
                let called = self.slot_for(id, scheme);
                called.map(|slot| self.named_slot(want, turn.and_then(|turn| turn.1)).or(slot))
            }
            None => {
                // Clients spread. Who has been removed from the queue names a slot or none.
                let first = turn.map_or(token.client, |turn| turn.1.unwrap_or(0));
                self.slot_of_try(first, want, scheme)
            }
        };
        let Some(slot) = slot else { return Outcome::Refused };
        self.remove_share(token);
        self.add(Share { slot, token });
        self.key = Key::Shared;
        if let Some(id) = id {
            self.serve(id, scheme, air);
        }
        Outcome::Granted(slot)
    }

    /// Whom the node called while the lock was shared before, it calls anew.
    fn begin_shares(&mut self, scheme: &Scheme) {
        if self.key != Key::Shared && !scheme.makes(Mistake::CallsOutliveShares) {
            self.called.clear();
        }
    }

    /// Takes a waiter that has its share out of the queue.
    fn serve(&mut self, id: Token, scheme: &Scheme, air: &mut Air) {
        self.floor = self.floor.max(self.number_of(id).unwrap_or(0));
        self.remove(id);
        self.called.retain(|(name, _)| *name != id);
        if !scheme.makes(Mistake::TurnCallsNobody) {
            self.call(scheme, air);
        }
    }

    /// The slot that a waiter which is called takes if it names the one to begin with.
    fn named_slot(&self, want: Want, first: Slot) -> Slot {
        let used = self.slots_in_use();
        match want {
            Want::Permit(permits) => free_slot(&used, permits, first?),
            _ => None,
        }
    }

    fn slot_of_try(&mut self, first: u8, want: Want, scheme: &Scheme) -> Option<Slot> {
        for waiter in self.queue.clone() {
            if !waiter.has_lease {
                self.remove(waiter.id);
            } else if waiter.want.is_some() && !scheme.makes(Mistake::TryIgnoresQueue) {
                return None;
            }
        }
        let is_reader = want == Want::Reader;
        if self.are_readers().is_some_and(|readers| readers != is_reader) {
            return None;
        }
        let used = self.slots_in_use();
        match want {
            Want::Permit(permits) => free_slot(&used, permits, first).map(Some),
            _ => Some(None),
        }
    }

    fn add(&mut self, share: Share) {
        self.holders.push(share);
        self.holders.sort_unstable();
    }

    /// Removes a share, whatever its slot.
    pub(crate) fn remove_share(&mut self, token: Token) -> bool {
        let before = self.holders.len();
        self.holders.retain(|share| share.token != token);
        self.holders.len() < before
    }

    /// The key ends with the last share.
    pub(crate) fn settle(&mut self) {
        if self.key == Key::Shared && self.holders.is_empty() {
            self.key = Key::Free;
        }
    }

    /// The part of `queue.lua` that withdraws a failed attempt.
    pub(crate) fn withdraw(&mut self, token: Token, want: Want) {
        self.delete(token);
        if want.is_share() {
            self.remove_share(token);
        }
        self.settle();
    }

    pub(crate) fn extend(&self, token: Token, want: Want, slot: Slot) -> Outcome {
        let is_held = match want.is_share() {
            true => self.holders.contains(&Share { slot, token }),
            false => self.key == Key::Held(token),
        };
        if is_held { Outcome::Granted(slot) } else { Outcome::Refused }
    }

    /// `restore_shared.lua`
    pub(crate) fn restore(&mut self, token: Token, slot: Slot, scheme: &Scheme) -> Outcome {
        if let Key::Held(_) = self.key {
            return Outcome::Refused;
        }
        self.begin_shares(scheme);
        if self.are_readers().is_some_and(|readers| readers != slot.is_none()) {
            return Outcome::Refused;
        }
        let is_other = |share: &Share| slot.is_some() && share.slot == slot && share.token != token;
        if self.holders.iter().any(is_other) {
            if !scheme.makes(Mistake::RestoreTakesSlotInUse) {
                if !scheme.makes(Mistake::RefusedRestoreKeepsSlot) {
                    self.remove_share(token);
                }
                return Outcome::Refused;
            }
            self.holders.retain(|share| !is_other(share));
        }
        self.remove_share(token);
        self.add(Share { slot, token });
        self.key = Key::Shared;
        Outcome::Granted(slot)
    }

    fn slots_in_use(&self) -> Vec<Slot> {
        self.holders.iter().map(|share| share.slot).collect()
    }

    /// `release_shared.lua`
    pub(crate) fn release_share(
        &mut self,
        id: Option<Token>,
        token: Token,
        scheme: &Scheme,
        air: &mut Air,
    ) -> Outcome {
        let was_first = id.is_some() && self.queue.first().map(|head| head.id) == id;
        if let Some(id) = id {
            self.remove(id);
            self.called.retain(|(name, _)| *name != id);
        }
        let was_shared = self.key == Key::Shared;
        let is_found = was_shared && self.remove_share(token);
        self.settle();
        if id.is_some() && self.reservation() == id {
            self.key = Key::Free;
        }
        let forgets = was_shared && scheme.makes(Mistake::LastShareReservesNothing);
        let is_silent = is_found && scheme.makes(Mistake::PermitReleasesSilently);
        match self.key {
            Key::Free if !forgets => self.reserve(air),
            Key::Shared if !is_silent && (is_found || was_first) => self.call_next(was_first, air),
            _ => {}
        }
        Outcome::Removed
    }
}

fn free_slot(used: &[Slot], permits: u8, first: u8) -> Option<u8> {
    let order = (0..permits).map(|count| (first % permits + count) % permits);
    order.into_iter().find(|slot| !used.contains(&Some(*slot)))
}
