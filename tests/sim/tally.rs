//! Statistics over histories: a simulation without grants and faults proves nothing.

use crate::register::{Call, Outcome};
use std::collections::BTreeMap;
use std::fmt;

/// Counts, of one history or of many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) histories: u64,
    pub(crate) events: u64,
    pub(crate) grants: u64,
    pub(crate) extensions: u64,
    pub(crate) handoffs: u64,
    /// Grants with a fencing token, and of several resources at once.
    pub(crate) fenced: u64,
    /// Grants by a waiter's turn, and grants for which other clients wait.
    pub(crate) from_queue: u64,
    pub(crate) awaited: u64,
    /// Grants and releases in quiet histories, while somebody waited.
    pub(crate) in_order: u64,
    pub(crate) awaited_releases: u64,
    /// Commands about locks, and messages of nodes to waiters.
    pub(crate) commands: u64,
    pub(crate) pushes: u64,
    pub(crate) of_several: u64,
    /// Grants and extensions of shares. Of how many locks nodes gave different permits, and how
    /// often a permit was restored on a node.
    pub(crate) readers: u64,
    pub(crate) permits: u64,
    pub(crate) shares_from_queue: u64,
    pub(crate) shares_in_order: u64,
    pub(crate) extended_shares: u64,
    pub(crate) split_permits: u64,
    /// Locks that were held for a while without faults, and those of them that were not on all
    /// nodes.
    pub(crate) held: (u64, u64),
    pub(crate) restored_permits: u64,
    /// Of groups: elections of a master, grants and extensions after the first of them, and how
    /// often a server set the key of a lock again that it had lost.
    pub(crate) elections: u64,
    pub(crate) proofs: u64,
    pub(crate) grants_after: u64,
    pub(crate) extensions_after: u64,
    pub(crate) reclaimed: u64,
    /// How often a client has left a server because another one was named in its place.
    pub(crate) moves: u64,
    /// Calls about registers.
    pub(crate) registers: RegisterCalls,
    /// Nodes that said how they are set up.
    pub(crate) examined: u64,
    /// By their names.
    faults: BTreeMap<&'static str, u64>,
}

/// Calls about registers, by how they ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegisterCalls {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) refused: u64,
    pub(crate) deletions: u64,
    /// The nodes that were given a vote.
    pub(crate) repaired: u64,
    /// Sides of transactions.
    pub(crate) committed: u64,
    pub(crate) aborted: u64,
    pub(crate) unsure: u64,
    pub(crate) failed: u64,
}

impl RegisterCalls {
    pub(crate) fn count(&mut self, call: Call, outcome: &Outcome) {
        match (call, outcome) {
            (_, Outcome::Unsure) => self.unsure += 1,
            (_, Outcome::Failed) => self.failed += 1,
            (_, Outcome::Repaired(nodes)) => self.repaired += *nodes as u64,
            (_, Outcome::Committed) => self.committed += 1,
            (_, Outcome::Aborted) => self.aborted += 1,
            (_, Outcome::Done) => {}
            (Call::Read, _) => self.reads += 1,
            (_, Outcome::Is(_)) => self.refused += 1,
            (Call::Delete, _) => self.deletions += 1,
            _ => self.writes += 1,
        }
    }

    fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.refused += other.refused;
        self.deletions += other.deletions;
        self.repaired += other.repaired;
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.unsure += other.unsure;
        self.failed += other.failed;
    }
}

impl Tally {
    /// The counts of one history that begins.
    pub(crate) fn one() -> Self {
        Self {
            histories: 1,
            ..Self::default()
        }
    }

    /// A fault was injected.
    pub(crate) fn fault(&mut self, name: &'static str) {
        self.faults(name, 1);
    }

    pub(crate) fn faults(&mut self, name: &'static str, count: u64) {
        *self.faults.entry(name).or_default() += count;
    }

    /// How many kinds of fault there were.
    pub(crate) fn kinds(&self) -> usize {
        self.faults.values().filter(|count| **count > 0).count()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.histories += other.histories;
        self.events += other.events;
        self.grants += other.grants;
        self.extensions += other.extensions;
        self.handoffs += other.handoffs;
        self.fenced += other.fenced;
        self.from_queue += other.from_queue;
        self.awaited += other.awaited;
        self.in_order += other.in_order;
        self.awaited_releases += other.awaited_releases;
        self.commands += other.commands;
        self.pushes += other.pushes;
        self.of_several += other.of_several;
        self.readers += other.readers;
        self.permits += other.permits;
        self.shares_from_queue += other.shares_from_queue;
        self.shares_in_order += other.shares_in_order;
        self.extended_shares += other.extended_shares;
        self.split_permits += other.split_permits;
        self.held.0 += other.held.0;
        self.held.1 += other.held.1;
        self.restored_permits += other.restored_permits;
        self.examined += other.examined;
        self.elections += other.elections;
        self.proofs += other.proofs;
        self.grants_after += other.grants_after;
        self.extensions_after += other.extensions_after;
        self.reclaimed += other.reclaimed;
        self.moves += other.moves;
        self.registers.add(&other.registers);
        other
            .faults
            .iter()
            .for_each(|(name, count)| self.faults(name, *count));
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            histories,
            events,
            grants,
            extensions,
            handoffs,
            fenced,
            of_several,
            ..
        } = self;
        write!(
            f,
            "{histories} histories, {events} events, {grants} grants, "
        )?;
        write!(f, "{extensions} extensions, {handoffs} handoffs, ")?;
        write!(
            f,
            "{fenced} fenced, {of_several} of several, {} from the queue, ",
            self.from_queue
        )?;
        write!(f, "{} awaited, {} pushes, ", self.awaited, self.pushes)?;
        write!(
            f,
            "{} in order, {} awaited releases, {} readers, {} permits, ",
            self.in_order, self.awaited_releases, self.readers, self.permits
        )?;
        write!(
            f,
            "of these {} from the queue, {} in order, {} extensions, ",
            self.shares_from_queue, self.shares_in_order, self.extended_shares
        )?;
        let (held, bare) = self.held;
        write!(f, "{bare} of {held} held locks not on all nodes, ")?;
        write!(
            f,
            "{} split permits, {} restored permits",
            self.split_permits, self.restored_permits
        )?;
        if self.elections > 0 {
            write!(
                f,
                "; {} elections, {} proofs, then {} grants, {} extensions, {} reclaimed, {} moves",
                self.elections,
                self.proofs,
                self.grants_after,
                self.extensions_after,
                self.reclaimed,
                self.moves,
            )?;
        }
        write!(f, "; {:?}; faults:", self.registers)?;
        for (index, (name, count)) in self.faults.iter().enumerate() {
            let before = if index % 6 == 0 { "\n  " } else { ", " };
            write!(f, "{before}{name} {count}")?;
        }
        Ok(())
    }
}
