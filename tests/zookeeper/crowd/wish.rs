//! What a client of the crowd wants, and what it may hold beside others.

use super::tree::ROOT;
use crate::random::Random;
use redlatch_protocol::engine::Share;
use redlatch_zookeeper::contender::{Contender, ContenderPlan, Held};
use redlatch_zookeeper::path::{Directory, Root};
use std::collections::BTreeMap;

/// The names of the locks.
pub(super) const LOCKS: [&str; 2] = ["a", "b"];

/// Some of the locks, or a share of one.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    locks: Vec<usize>,
    share: Option<Share>,
}

/// What the clients of a history want as a rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taste(u64);

impl Taste {
    pub(super) fn new(random: &mut Random) -> Self {
        Self(random.below(8))
    }
}

impl Wish {
    pub(super) fn new(taste: Taste, random: &mut Random) -> Self {
        let lock = usize::from(random.one_in(4));
        let of = 1 + random.below(3) as u32;
        let number = random.one_in(2).then(|| random.below(4) as u32);
        let choice = if random.one_in(2) {
            taste.0
        } else {
            random.below(8)
        };
        let (locks, share) = match choice {
            0..=2 => (vec![lock], None),
            3 | 4 => (vec![lock], Some(Share::Reader)),
            5 | 6 => (vec![lock], Some(Share::Permit { of, number })),
            _ => (vec![lock, 1 - lock], None),
        };
        Self { locks, share }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.share.is_none()
    }

    pub(super) fn contender(&self, waits: bool) -> Contender {
        let root = Root::new(ROOT).expect("a path");
        let directory =
            |lock: &usize| Directory::new(&root, b"", LOCKS[*lock].as_bytes()).expect("a path");
        let mut plan = ContenderPlan::of_set(&root, self.locks.iter().map(directory).collect());
        plan.waits = waits;
        plan.share = self.share;
        Contender::new(plan)
    }
}

/// What a client holds.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) paths: Vec<String>,
    locks: Vec<usize>,
    pub(super) kind: Kind,
    token: i64,
}

/// How much of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Whole,
    Reader,
    Permit(u32),
}

impl Kind {
    /// May nobody hold both at a time?
    fn excludes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Reader, Self::Reader) => false,
            (Self::Permit(number), Self::Permit(other)) => number == other,
            _ => true,
        }
    }
}

impl Hold {
    pub(super) fn new(wish: &Wish, held: &Held) -> Result<Self, String> {
        let kind = match (wish.share, held.slot) {
            (None, None) => Kind::Whole,
            (Some(Share::Reader), None) => Kind::Reader,
            (Some(Share::Permit { of, .. }), Some(slot)) if slot < of => Kind::Permit(slot),
            _ => return Err(format!("{:?} has {:?}", wish.share, held.slot)),
        };
        let paths = held.paths.iter().map(ToString::to_string).collect();
        Ok(Self {
            paths,
            locks: wish.locks.clone(),
            kind,
            token: held.created_by,
        })
    }

    /// May nobody hold both at a time?
    pub(super) fn excludes(&self, other: &Self) -> bool {
        let is_shared = self.locks.iter().any(|lock| other.locks.contains(lock));
        is_shared && self.kind.excludes(other.kind)
    }

    pub(super) fn is_of_a_lock_of(&self, other: &Self) -> bool {
        self.locks.iter().any(|lock| other.locks.contains(lock))
    }
}

/// The largest tokens of what was granted of each lock.
#[derive(Default)]
pub(super) struct Tokens(BTreeMap<(usize, Kind), i64>);

impl Tokens {
    /// A grant has a larger token than all before it that exclude it.
    pub(super) fn granted(&mut self, hold: &Hold) -> Result<(), String> {
        for ((lock, kind), token) in &self.0 {
            let is_before = hold.locks.contains(lock) && kind.excludes(hold.kind);
            if is_before && hold.token <= *token {
                return Err(format!("token {} after {token}: {hold:?}", hold.token));
            }
        }
        for lock in &hold.locks {
            let token = self.0.entry((*lock, hold.kind)).or_default();
            *token = hold.token.max(*token);
        }
        Ok(())
    }
}
