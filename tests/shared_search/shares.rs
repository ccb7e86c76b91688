//! What a node does about shares: `sharing.lua`, `share.lua`, `extend_shared.lua`,
//! `restore_shared.lua` and `release_shared.lua`.

use crate::node::{Key, Node, Outcome, Share, Slot, Waiter};
use crate::scheme::{Mistake, Scheme, Want};
use crate::token::Token;
use std::collections::BTreeSet;

/// What is added to a holder's slot where another one has it.
pub(crate) const MOVED: u8 = 64;

impl Node {
    /// The waiters that are called, with their slots. Those without a lease are ignored, which the
    /// script also removes.
    fn called(&self, scheme: &Scheme) -> Vec<(Token, Slot)> {
        let mut used = self.slots_in_use();
        let mut found = Vec::new();
        for waiter in self.queue.iter().filter(|waiter| waiter.has_lease) {
            let slot = match waiter.want {
                None => continue,
                Some(Want::Exclusive) if scheme.makes(Mistake::SharesPassWriters) => continue,
                Some(Want::Exclusive) => break,
                Some(Want::Reader) => None,
                Some(Want::Permit(permits)) if self.is_used_up(&used, permits, scheme) => break,
                Some(Want::Permit(permits)) => match free_slot(&used, permits, 0) {
                    Some(slot) => Some(slot),
                    None => break,
                },
            };
            used.push(slot);
            found.push((waiter.id, slot));
        }
        found
    }

    /// The slot for this waiter, if it is called.
    pub(crate) fn slot_for(&self, id: Token, scheme: &Scheme) -> Option<Slot> {
        let called = self.called(scheme);
        called.into_iter().find(|(name, _)| *name == id).map(|(_, slot)| slot)
    }

    fn ring(&self, scheme: &Scheme, bells: &mut Vec<Token>) {
        bells.extend(self.called(scheme).into_iter().map(|(name, _)| name));
    }

    /// `share.lua`
    pub(crate) fn share(
        &mut self,
        turn: Option<(Token, Slot)>,
        token: Token,
        want: Want,
        scheme: &Scheme,
        bells: &mut Vec<Token>,
    ) -> Outcome {
        let id = turn.map(|(id, _)| id);
        let is_open = match self.key {
            Key::Free | Key::Shared => true,
            Key::Reserved(owner) => id == Some(owner),
            Key::Held(_) => scheme.makes(Mistake::SharesBesideToken),
        };
        let entry = self.queue.iter().find(|waiter| Some(waiter.id) == id).copied();
        let slot = match entry {
            Some(entry) => {
                let called = self.slot_for(entry.id, scheme);
                called.map(|slot| self.named_slot(want, turn.and_then(|turn| turn.1)).or(slot))
            }
            None => self.slot_of_try(token, want, scheme),
        };
        let Some(slot) = slot.filter(|_| is_open) else { return Outcome::Refused };
        self.add(Share { slot, token });
        self.key = Key::Shared;
        if let Some(id) = id {
            self.serve(id, scheme, bells);
        }
        Outcome::Granted(slot)
    }

    /// Takes a waiter that has its share out of the queue.
    pub(crate) fn serve(&mut self, id: Token, scheme: &Scheme, bells: &mut Vec<Token>) {
        let entry = self.queue.iter().find(|waiter| waiter.id == id);
        self.floor = self.floor.max(entry.map_or(0, |entry| entry.number));
        self.remove(id);
        bells.push(id);
        if self.key == Key::Shared && !scheme.makes(Mistake::TurnRingsNobody) {
            self.ring(scheme, bells);
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

    fn slot_of_try(&mut self, token: Token, want: Want, scheme: &Scheme) -> Option<Slot> {
        let waits = |waiter: &Waiter| waiter.has_lease && waiter.want.is_some();
        if self.queue.iter().any(waits) && !scheme.makes(Mistake::TryIgnoresQueue) {
            return None;
        }
        let used = self.slots_in_use();
        match want {
            // Clients spread.
            Want::Permit(permits) => free_slot(&used, permits, token.client).map(Some),
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
    pub(crate) fn withdraw(
        &mut self,
        token: Token,
        want: Want,
        scheme: &Scheme,
        bells: &mut Vec<Token>,
    ) {
        let is_removed = want.is_share() && self.remove_share(token);
        self.delete(token);
        self.settle();
        if is_removed && self.key == Key::Shared {
            self.ring(scheme, bells);
        }
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
        let is_other = |share: &Share| slot.is_some() && share.slot == slot && share.token != token;
        if self.holders.iter().any(is_other) {
            if !scheme.makes(Mistake::RestoreTakesSlotInUse) {
                self.move_share(token, slot, scheme);
                return Outcome::Refused;
            }
            self.holders.retain(|share| !is_other(share));
        }
        self.remove_share(token);
        self.add(Share { slot, token });
        self.key = Key::Shared;
        Outcome::Granted(slot)
    }

    /// The part of `restore_shared.lua` for a slot that another one has.
    fn move_share(&mut self, token: Token, slot: Slot, scheme: &Scheme) {
        let keeps = scheme.makes(Mistake::RefusedRestoreKeepsSlot);
        if !keeps && self.remove_share(token) && !scheme.makes(Mistake::RefusedRestoreRemoves) {
            self.add(Share { slot: slot.map(|slot| slot + MOVED), token });
        }
    }

    /// Are there as many holders as permits, although some of these slots are free? Holders that
    /// were moved have a slot that another one has.
    fn is_used_up(&self, used: &[Slot], permits: u8, scheme: &Scheme) -> bool {
        let free = (0..permits).filter(|slot| !used.contains(&Some(*slot))).count();
        let given: Vec<u8> = self.slots_in_use().into_iter().flatten().collect();
        let slots: BTreeSet<&u8> = given.iter().collect();
        let counts = !scheme.makes(Mistake::MovedPermitsDoNotCount);
        counts && free <= given.len() - slots.len()
    }

    /// The slots that are given to nobody else.
    fn slots_in_use(&self) -> Vec<Slot> {
        self.holders.iter().map(|share| share.slot.map(|slot| slot % MOVED)).collect()
    }

    /// `release_shared.lua`
    pub(crate) fn release_share(
        &mut self,
        id: Option<Token>,
        token: Token,
        want: Want,
        scheme: &Scheme,
        bells: &mut Vec<Token>,
    ) -> Outcome {
        if let Some(id) = id {
            self.remove(id);
        }
        let is_last = self.key == Key::Shared && {
            self.remove_share(token);
            self.settle();
            self.key == Key::Free
        };
        if id.is_some_and(|id| self.key == Key::Reserved(id)) {
            self.key = Key::Free;
        }
        let forgets = is_last && scheme.makes(Mistake::LastShareReservesNothing);
        let is_silent = want == Want::Reader || scheme.makes(Mistake::PermitReleasesSilently);
        match self.key {
            Key::Free if !forgets => self.hand_over(bells),
            Key::Shared if !is_silent => self.ring_head_if_share(bells),
            _ => {}
        }
        Outcome::Removed
    }
}

fn free_slot(used: &[Slot], permits: u8, first: u8) -> Option<u8> {
    let order = (0..permits).map(|count| (first % permits + count) % permits);
    order.into_iter().find(|slot| !used.contains(&Some(*slot)))
}
