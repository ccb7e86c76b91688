//! Checks of the commands that nodes run and of the votes that clients count.

use super::owner::Credit;
use super::{Checker, Execution, Invariant, Keeping, Kept, Kind, Name};

impl Checker {
    /// A node has run a client's command about a lock.
    pub(crate) fn executed(&mut self, it: &Execution<'_>) {
        for (before, after) in it.keys {
            before.iter().for_each(|kept| self.changed(kept, after, it));
        }
        self.kept(it);
        let owner = it
            .command
            .token
            .and_then(|token| self.owners.get_mut(&token));
        if let (Some(owner), Some(is_granted)) = (owner, it.is_granted) {
            let answer = Credit {
                is_granted,
                permit: it.permit,
            };
            self.split_permits += u64::from(owner.answered(it.node, it.command, answer, it.now));
        }
    }

    /// A command found this lock, or share of one.
    fn changed(&mut self, before: &Kept, after: &Keeping, it: &Execution<'_>) {
        let Kept {
            token,
            until,
            permit,
        } = *before;
        let same = after
            .iter()
            .find(|kept| (kept.token, kept.permit) == (token, permit));
        // A release can say how long the key stays.
        let may_lose = it.command.kind == Kind::Remove && it.command.token == Some(token);
        match same {
            Some(now) if now.until < until && !may_lose => {
                let text = format!(
                    "{token:?} loses time, from {until} to {}: {it:?}",
                    now.until
                );
                self.report_violation(Invariant::Validity, text);
            }
            Some(now) if now.until >= until => {}
            None if permit.is_some() && self.is_its_own(token, it) => {
                // A node that gave another permit than others takes over theirs, or has none.
                let granted = self.owners.get(&token).and_then(|owner| owner.permit);
                if granted == permit && self.held_until(token) > it.now {
                    let text = format!("{token:?} loses its permit: {it:?}");
                    self.report_violation(Invariant::Ownership, text);
                }
                self.owners
                    .entry(token)
                    .and_modify(|owner| owner.remove(it.node));
            }
            _ => self.removed(token, it),
        }
    }

    /// Does this command take the lock, and come from the client that drew its token?
    fn is_its_own(&self, token: Name, it: &Execution<'_>) -> bool {
        let is_owner = self
            .owners
            .get(&token)
            .is_some_and(|owner| owner.client == it.client);
        is_owner && it.command.kind == Kind::Take && it.command.token == Some(token)
    }

    /// A command removed a key of a lock.
    fn removed(&mut self, token: Name, it: &Execution<'_>) {
        if it.command.kind == Kind::Force && self.seen.contains(&(it.client, token)) {
            return self.taken_away(token, it);
        }
        let owner = self.owners.get_mut(&token);
        let is_removed_by_owner = owner
            .as_ref()
            .is_some_and(|owner| owner.client == it.client);
        if !is_removed_by_owner || it.command.removed() != Some(token) {
            let text = format!("{:?} removed {token:?}, another's: {it:?}", it.client);
            self.report_violation(Invariant::Ownership, text);
        } else if let Some(owner) = owner {
            owner.remove(it.node);
            let until = self.held_until(token);
            if until > it.now {
                self.expect_kept(token, until);
            }
        }
    }

    /// An operator has inspected this lock.
    pub(crate) fn saw(&mut self, operator: (usize, u64), token: Name) {
        self.seen.insert((operator, token));
    }

    /// An operator has force-released a lock that it had inspected: the lock has ended, whatever
    /// its holder believes.
    fn taken_away(&mut self, token: Name, it: &Execution<'_>) {
        self.left(token, it.now);
        if let Some(owner) = self.owners.get_mut(&token) {
            owner.is_void = true;
            owner.remove(it.node);
        }
    }

    /// A node that has all keys of a lock keeps it for as long as it keeps all of them.
    fn kept(&mut self, it: &Execution<'_>) {
        let Some((_, first)) = it.keys.first() else {
            return;
        };
        for Kept { token, permit, .. } in first.iter().copied() {
            let until = |(_, after): &(Keeping, Keeping)| {
                after
                    .iter()
                    .find(|kept| kept.token == token)
                    .map_or(0, |kept| kept.until)
            };
            let until = it.keys.iter().map(until).min().unwrap_or_default();
            if let Some(owner) = self.owners.get_mut(&token) {
                owner.promise(it.node, until, permit);
            }
        }
    }

    /// A node has run a command that acquires a lock, on a connection that the lock's client could
    /// have ended. If the lock has ended, its key must not be set.
    pub(crate) fn expect_wanted(
        &mut self,
        node: usize,
        token: Option<Name>,
        keys: &[(Keeping, Keeping)],
    ) {
        let Some((token, owner)) = token.and_then(|it| Some((it, self.owners.get(&it)?))) else {
            return;
        };
        let has = |keeping: &Keeping| keeping.iter().any(|kept| kept.token == token);
        let is_new = keys
            .iter()
            .any(|(before, after)| has(after) && !has(before));
        if is_new && owner.is_over && !self.dead.contains(&owner.client) {
            let text = format!("node {node} has {token:?} again, after what took it back");
            self.report_violation(Invariant::Residue, text);
        }
    }

    /// A client counts a node's reply to its request since then.
    pub(crate) fn credited(
        &mut self,
        (token, kind): (Name, Kind),
        (node, counted): (usize, Credit),
        since: u64,
    ) {
        let is_granted = counted.is_granted;
        let owner = self.owners.get_mut(&token);
        let client = owner.as_ref().map(|owner| owner.client);
        if owner.is_some_and(|owner| owner.credit(node, kind, counted, since)) {
            return;
        }
        let is_pardoned =
            client.is_some_and(|client| self.unsolicited_errors.contains(&(client, node)));
        if is_granted || !is_pardoned {
            let text = format!(
                "node {node} never answered {is_granted} to the {kind:?} of {token:?} since {since}"
            );
            self.report_violation(Invariant::Attribution, text);
        }
    }
}
