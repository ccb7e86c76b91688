//! The optional parts of a lock: more keys, an owner's label, fencing counters, a share of it.

use super::{Node, NodeSet, Ttl};
use std::fmt;
use std::sync::Arc;

/// The largest wall clock value that is used, in microseconds since 1970: a time in the year 2112.
/// A clock beyond that must not use up the range of the counters.
pub const FENCE_SEED_MAX: u64 = 1 << 52;

/// The largest fencing token. The range above any wall clock suffices for a grant every microsecond
/// for twelve days, or one every millisecond for 34 years. The nodes' scripts count in doubles,
/// which are exact up to twice this value.
///
/// The limit is high enough that no clock and no counting reaches it, and a counter above it was
/// not produced by counting. A node whose counter is above it, for whatever reason, grants nothing,
/// and the other nodes do not follow it: no client was granted such a token, because a majority
/// would then have the counter, and such a majority grants no lock.
pub const FENCE_MAX: u64 = FENCE_SEED_MAX + (1 << 40);

/// What a lock has besides one key and a token. Most locks have none of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockAttributes {
    /// Keys that are locked together with the first: all of them, or none.
    pub more_keys: Vec<Arc<[u8]>>,
    /// The owner's label, which follows the token in the keys' value.
    pub owner: Vec<u8>,
    /// The ttl of the counters that fencing tokens come from. `None` for a lock without fencing.
    pub fence: Option<Ttl>,
    /// The share of the lock, if not all of it is taken.
    pub share: Option<Share>,
    /// Does the answer of a node count that may have forgotten who holds the lock? Only where no
    /// safety depends on the lock, and whoever waits for it would wait in vain.
    pub counts_in_quarantine: bool,
}

impl LockAttributes {
    /// `None` for those of a plain lock, for which nothing is allocated.
    pub fn unless_plain(self) -> Option<Arc<Self>> {
        (self != Self::default()).then(|| Arc::new(self))
    }
}

/// A share of a lock, which other clients may hold shares of at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A reader's: any number at a time.
    Reader,
    /// One of this many permits.
    Permit {
        of: u32,
        /// Which one it is, from 0. In a waiter's turn: the one that it takes or none; `None` if
        /// each node chooses.
        number: Option<u32>,
    },
}

impl Share {
    /// How many permits there are. Zero for a reader.
    pub fn permits(self) -> u32 {
        match self {
            Self::Reader => 0,
            Self::Permit { of, .. } => of,
        }
    }

    /// Which permit it is, once it is granted. Before, the one that is asked for, if any.
    pub fn permit(self) -> Option<u32> {
        match self {
            Self::Reader => None,
            Self::Permit { number, .. } => number,
        }
    }
}

/// A lock as the nodes know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockId {
    pub key: Arc<[u8]>,
    pub token: Token,
    pub attributes: Option<Arc<LockAttributes>>,
}

impl LockId {
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        keys(&self.key, &self.attributes)
    }

    pub fn has_more_keys(&self) -> bool {
        self.attributes
            .as_ref()
            .is_some_and(|attributes| !attributes.more_keys.is_empty())
    }

    /// One of several keys, counted from 0, and the others.
    pub(super) fn split_at(&self, index: usize) -> (Self, Self) {
        let attributes = self.attributes.as_deref().cloned().unwrap_or_default();
        let mut others = vec![Arc::clone(&self.key)];
        others.extend(attributes.more_keys.iter().cloned());
        let alone = vec![others.remove(index)];
        let [alone, others] = [alone, others].map(|mut keys| Self {
            key: keys.remove(0),
            token: self.token,
            attributes: Some(Arc::new(LockAttributes {
                more_keys: keys,
                ..attributes.clone()
            })),
        });
        (alone, others)
    }

    pub fn counters_ttl(&self) -> Option<Ttl> {
        self.attributes.as_ref()?.fence
    }

    /// The share of the lock, if not all of it is taken.
    pub fn share(&self) -> Option<Share> {
        self.attributes.as_ref()?.share
    }

    /// The same lock with this permit. A lock that is not a permit stays as it is.
    pub fn with_permit(mut self, granted: Option<u32>) -> Self {
        if let Some(Share::Permit { of, .. }) = self.share() {
            let share = Some(Share::Permit {
                of,
                number: granted,
            });
            let attributes = self.attributes.as_deref().cloned().unwrap_or_default();
            self.attributes = Some(Arc::new(LockAttributes {
                share,
                ..attributes
            }));
        }
        self
    }
}

/// All keys of a lock: the first, and the keys that are locked together with it.
pub(super) fn keys<'a>(
    first: &'a Arc<[u8]>,
    attributes: &'a Option<Arc<LockAttributes>>,
) -> impl Iterator<Item = &'a [u8]> {
    let more = attributes
        .iter()
        .flat_map(|attributes| &attributes.more_keys);
    std::iter::once(first).chain(more).map(|key| &**key)
}

/// The lock that a handoff replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predecessor {
    pub token: Token,
    pub attributes: Option<Arc<LockAttributes>>,
    /// The waiter by which it was taken, which leaves the nodes' queue.
    pub waiter: Option<Token>,
    /// The longest ttl of the two locks: for so long the predecessor's key may exist on a node that
    /// the handoff does not reach.
    pub ttl_longest: Ttl,
}

/// The counters in the nodes' answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub largest: u64,
    /// The nodes that granted the lock and answered with the largest counter.
    pub nodes: NodeSet,
}

impl Counters {
    /// Records the counter in the answer of `node`. The largest counter counts from any node; the
    /// node itself counts only with its vote.
    pub fn note(&mut self, node: Node, counter: u64, has_voted: bool) {
        if counter > self.largest {
            *self = Self {
                largest: counter,
                nodes: NodeSet::EMPTY,
            };
        }
        if counter == self.largest && has_voted {
            self.nodes.insert(node);
        }
    }
}

// The random value that identifies the holder of a lock.

/// The value of a lock's key: 20 random bytes, new for every attempt.
///
/// Twenty bytes from the operating system's generator are what the Redlock description asks for.
/// They are sent as they are: keys and values are binary-safe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token([u8; Self::LEN]);

impl Token {
    pub const LEN: usize = 20;

    pub const fn new(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Shows only the first bytes, for logs: knowledge of the whole token is enough to release the
/// lock.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:02x}{:02x}..)", self.0[0], self.0[1])
    }
}

/// The inputs of an attempt: random numbers, drawn together, and the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Entropy {
    pub token: Token,
    /// The seed of the random pause after this attempt, if it fails.
    pub seed: u64,
    /// Microseconds since 1970 by this machine's wall clock: the least value of a new counter.
    pub wall: u64,
}

impl Entropy {
    pub const LEN: usize = Token::LEN + 8;

    /// Splits these random bytes into a token and a seed.
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let mut token = [0; Token::LEN];
        let mut seed = [0; 8];
        token.copy_from_slice(&bytes[..Token::LEN]);
        seed.copy_from_slice(&bytes[Token::LEN..]);
        Self {
            token: Token::new(token),
            seed: u64::from_le_bytes(seed),
            wall: 0,
        }
    }

    /// The same random numbers with this wall clock.
    pub fn at(self, wall: u64) -> Self {
        Self { wall, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(attributes: Option<LockAttributes>) -> LockId {
        let key = Arc::from(&b"key"[..]);
        let token = Token::new([7; Token::LEN]);
        LockId {
            key,
            token,
            attributes: attributes.map(Arc::new),
        }
    }

    #[test]
    fn only_a_permit_gets_a_number_and_only_that_allocates() {
        let ttl = Some(Ttl::SHORTEST);
        let of = |share| LockAttributes {
            share,
            fence: ttl,
            ..LockAttributes::default()
        };
        for attributes in [None, Some(of(None)), Some(of(Some(Share::Reader)))] {
            let before = lock(attributes);
            let after = before.clone().with_permit(Some(3));
            assert_eq!(before, after);
            let pair = before.attributes.zip(after.attributes);
            assert!(pair.is_none_or(|(before, after)| Arc::ptr_eq(&before, &after)));
        }
        let any = Share::Permit {
            of: 4,
            number: None,
        };
        let third = Share::Permit {
            of: 4,
            number: Some(2),
        };
        let held = lock(Some(of(Some(any)))).with_permit(Some(2));
        assert_eq!(held, lock(Some(of(Some(third)))), "the rest stays");
        assert_eq!(held.with_permit(None), lock(Some(of(Some(any)))));
        assert_eq!((third.permits(), third.permit()), (4, Some(2)));
        assert_eq!((Share::Reader.permits(), Share::Reader.permit()), (0, None));
    }

    mod token {
        use super::super::*;

        #[test]
        fn every_drawn_byte_is_used_once() {
            let bytes: [u8; Entropy::LEN] = std::array::from_fn(|index| index as u8);
            let draw = Entropy::from_bytes(bytes).at(7);
            assert_eq!(draw.token.as_bytes(), &bytes[..20]);
            assert_eq!(draw.seed.to_le_bytes(), bytes[20..]);
            assert_eq!(draw.wall, 7);
        }

        #[test]
        fn debug_output_shows_only_the_first_bytes_of_a_token() {
            let text = format!("{:?}", Token::new([0xAB; 20]));
            assert_eq!(text, "Token(abab..)");
        }
    }
}
