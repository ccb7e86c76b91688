//! What must hold when a client is granted what it wants.

use crate::client::{Client, Phase};
use crate::scheme::Scheme;
use crate::violation::Violation;
use crate::want::Want;
use crate::world::World;

/// What still has a bearing on the order of grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Order {
    /// Nobody may be overtaken.
    #[default]
    Strict,
    /// The key may be free while waiters are queued, so a try may overtake, but no claim.
    OfClaims,
    /// Places may be lost.
    None,
}

impl World {
    pub(crate) fn grant(&mut self, client: usize, scheme: &Scheme) -> Result<(), Violation> {
        let is_claim = self.clients[client].was_queued;
        self.clients[client].phase = Phase::Holding;
        self.leave_order(client);
        self.check_holders()?;
        let is_ordered = match self.order {
            Order::Strict => true,
            Order::OfClaims => is_claim,
            Order::None => false,
        };
        match is_ordered && self.overtakes(client, scheme) {
            true => Err(Violation::Overtaken),
            false => Ok(()),
        }
    }

    fn check_holders(&self) -> Result<(), Violation> {
        let holders: Vec<&Client> = self
            .clients
            .iter()
            .filter(|client| client.holds())
            .collect();
        for (index, holder) in holders.iter().enumerate() {
            let mut others = holders[..index].iter().map(|other| other.want);
            let is_beside = |want: Want| !want.is_share() || !holder.want.is_share();
            if others.any(|want| want.overlaps(holder.want) && is_beside(want)) {
                return Err(Violation::TwoHolders);
            }
        }
        for holder in &holders {
            let Want::Permit(permits) = holder.want else {
                continue;
            };
            if holders
                .iter()
                .filter(|other| other.want == holder.want)
                .count()
                > permits.into()
            {
                return Err(Violation::TooManyPermits);
            }
            let is_twin = |other: &&&Client| other.slot.is_some() && other.slot == holder.slot;
            if holders.iter().filter(is_twin).count() > 1 {
                return Err(Violation::SlotTwice);
            }
        }
        Ok(())
    }

    fn overtakes(&self, client: usize, scheme: &Scheme) -> bool {
        let state = &self.clients[client];
        let is_before =
            |other: &usize| state.before & 1 << other != 0 && self.is_firm(*other, scheme);
        let others = (0..self.clients.len()).filter(is_before);
        others.into_iter().any(|other| {
            let other = self.clients[other].want;
            let is_free = match other {
                // A turn may split, and another client be granted what it would have had.
                Want::Permit(permits) if permits > 1 && !scheme.orders_permits => true,
                // Two permits may be given in either order if both are free.
                Want::Permit(_) => self.is_permit_left(other),
                _ => false,
            };
            state.want.excludes(other) && !(state.want.is_share() && is_free)
        })
    }

    fn is_permit_left(&self, want: Want) -> bool {
        let holders = self
            .clients
            .iter()
            .filter(|client| client.holds() && client.want == want);
        matches!(want, Want::Permit(permits) if holders.count() < permits.into())
    }

    /// Nobody can overtake this client from now on.
    pub(crate) fn leave_order(&mut self, client: usize) {
        self.clients[client].has_joined = false;
        for other in &mut self.clients {
            other.before &= !(1 << client);
        }
    }
}
