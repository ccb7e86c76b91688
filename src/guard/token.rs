//! The token of a lock: with it, another process resumes the lock.

use super::LockGuard;
use super::release::Withdrawal;
use crate::backend::LockSpec;
use crate::clock::Time;
use crate::engine::{HeldLock, LockAttributes, NodeSet, Rules, Share, Token, Ttl};
use crate::error::{Error, LockTokenError, NotResumable};
use crate::fencing::FencingToken;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// A lock that is held and has no guard: [`LockGuard::into_token`] makes it, and
/// [`LockRequest::resume`](crate::LockRequest::resume) makes a guard of it, in this process or in
/// another one. As text it is one word of letters, digits and dots, for a message, a file or a
/// variable of the environment, and `parse` reads it.
///
/// **Whoever has it has the lock**, and can release it: it is a secret, and `Debug` shows a part of
/// it only. It does not have the lock's name, which goes with it, but a sum over the names of all
/// that is locked and over itself: with other names, or damaged on its way, it resumes nothing. It
/// stays good for as long as the lock is held, so a worker that died can be replaced by another one
/// with the same token; two that have it at the same time are one holder to the nodes, and nothing
/// keeps them apart.
#[derive(Clone, PartialEq, Eq)]
pub struct LockToken {
    token: Token,
    /// The longest ttl that was ever sent.
    ttl: Ttl,
    fence: Option<u64>,
    share: Option<Share>,
    owner: Vec<u8>,
    sum: u32,
}

/// With what the text begins: what it is, and of which form.
const FORM: &str = "redlatch1";

impl LockToken {
    /// The fencing token of the lock, if it has one. It is the resumed lock's as well.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.fence.map(FencingToken::new)
    }

    fn of(held: &HeldLock) -> Self {
        let attributes = held.attributes.as_deref();
        let token = Self {
            token: held.token,
            ttl: held.ttl_longest,
            fence: held.fence,
            share: attributes.and_then(|attributes| attributes.share),
            owner: attributes.map_or(Vec::new(), |attributes| attributes.owner.clone()),
            sum: 0,
        };
        let more = attributes.map_or(&[][..], |attributes| &attributes.more_keys);
        Self {
            sum: token.sum_with(&held.key, more),
            ..token
        }
    }

    /// Is this the token of the lock of this key and those that are locked with it?
    pub(crate) fn is_of(&self, key: &[u8], more_keys: &[Arc<[u8]>]) -> bool {
        self.sum == self.sum_with(key, more_keys)
    }

    /// FNV-1a: no two texts that differ in one byte have the same.
    fn sum_with(&self, key: &[u8], more_keys: &[Arc<[u8]>]) -> u32 {
        let mut sum = 0x811c_9dc5_u32;
        let mut add = |bytes: &[u8]| {
            let length = bytes.len().to_be_bytes();
            for byte in bytes.iter().chain(&length) {
                sum = (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
            }
        };
        let text = self.to_string();
        add(text
            .rsplit_once('.')
            .map_or("", |(before, _)| before)
            .as_bytes());
        add(key);
        more_keys.iter().for_each(|key| add(key));
        sum
    }

    /// What the lock has besides its first key.
    pub(crate) fn attributes(&self, more_keys: Vec<Arc<[u8]>>, fence: Ttl) -> LockAttributes {
        let owner = self.owner.clone();
        let fence = self.fence.map(|_| fence);
        LockAttributes {
            more_keys,
            owner,
            fence,
            share: self.share,
            counts_in_quarantine: false,
        }
    }

    /// The lock, once its extension that begins `now` is confirmed. Its validity is that of this
    /// extension: nothing else is known.
    pub(crate) fn held(&self, spec: &LockSpec<'_>, now: Time, rules: &Rules) -> HeldLock {
        let ttl = spec.ttl;
        HeldLock {
            key: Arc::clone(&spec.key),
            token: self.token,
            attributes: spec.attributes.clone(),
            fence: self.fence,
            valid_until: now.after(rules.drift.validity(ttl)),
            since: now,
            ttl,
            ttl_longest: self.ttl.max(ttl),
            nodes: NodeSet::all(rules.nodes),
            waiter: None,
            is_awaited: false,
            session: None,
        }
    }
}

impl LockGuard {
    /// Gives the lock away and keeps it held: whoever gets the token
    /// [resumes](crate::LockRequest::resume) it, in this process or in another one. For an API that
    /// hands work to a worker:
    ///
    /// ```no_run
    /// # use redlatch::{Error, LockClient};
    /// # use std::time::Duration;
    /// # fn send_to_a_worker(name: &str, token: &str) {}
    /// # fn transcode() {}
    /// // In the API. The ttl is how long the worker may take to begin.
    /// fn accept(client: &LockClient) -> Result<bool, Error> {
    ///     let Some(lock) = client.try_lock("video:42", Duration::from_secs(60))? else {
    ///         return Ok(false); // it is being transcoded
    ///     };
    ///     send_to_a_worker("video:42", &lock.into_token()?.to_string());
    ///     Ok(true)
    /// }
    ///
    /// // In the worker.
    /// fn work(client: &LockClient, name: &str, token: &str) -> Result<(), Error> {
    ///     let lock = client.request(name).keep_alive().resume(&token.parse()?)?;
    ///     transcode();
    ///     lock.release()
    /// }
    /// ```
    ///
    /// From here on this process does not extend the lock: it ends when the ttl of the last
    /// extension, or of the request, has passed, if nobody resumes it. Threads of this client that
    /// wait for the lock ask the nodes. The listener gets
    /// [`Event::LetExpire`](crate::Event::LetExpire).
    ///
    /// # Errors
    ///
    /// With an error there is not a token, and the lock is given up as if the guard was dropped.
    ///
    /// * [`Error::Lost`]: the lock was lost.
    /// * [`Error::NotResumable`]: on ZooKeeper a lock ends with the session of its client; and a
    ///   [share](crate::LockRequest::shared) that other threads of this client have too is theirs.
    pub fn into_token(mut self) -> Result<LockToken, Error> {
        self.ensure_held()?;
        if self.held.granted().session.is_some() {
            return Err(Error::NotResumable(NotResumable::Session));
        }
        if let Withdrawal::OthersStay(_) = self.withdraw(Time::ZERO) {
            return Err(Error::NotResumable(NotResumable::SharedByThreads));
        }
        let token = LockToken::of(&self.close());
        self.emit_let_expire();
        Ok(token)
    }
}

impl fmt::Display for LockToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORM}.")?;
        write_hex(f, self.token.as_bytes())?;
        write!(f, ".{}", self.ttl.as_millis())?;
        if let Some(fence) = self.fence {
            write!(f, ".f{fence}")?;
        }
        match self.share {
            None | Some(Share::Permit { number: None, .. }) => {}
            Some(Share::Reader) => f.write_str(".r")?,
            Some(Share::Permit {
                of,
                number: Some(number),
            }) => write!(f, ".p{number}of{of}")?,
        }
        if !self.owner.is_empty() {
            f.write_str(".o")?;
            write_hex(f, &self.owner)?;
        }
        write!(f, ".x{:08x}", self.sum)
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// Shows only the first bytes, for logs.
impl fmt::Debug for LockToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lock{:?}", self.token)
    }
}

impl FromStr for LockToken {
    type Err = LockTokenError;

    fn from_str(text: &str) -> Result<Self, LockTokenError> {
        let token = parsed(text).ok_or(LockTokenError)?;
        // Whatever a number can be written as as well, each token has one text.
        if token.to_string() == text {
            Ok(token)
        } else {
            Err(LockTokenError)
        }
    }
}

fn parsed(text: &str) -> Option<LockToken> {
    let mut parts = text.split('.').skip(1);
    let token = Token::new(bytes_of_hex(parts.next()?)?.try_into().ok()?);
    let ttl = Ttl::from_duration(Duration::from_millis(parts.next()?.parse().ok()?))?;
    let fence = None;
    let share = None;
    let owner = Vec::new();
    let mut parsed = LockToken {
        token,
        ttl,
        fence,
        share,
        owner,
        sum: 0,
    };
    for part in parts {
        match part.split_at_checked(1)? {
            ("f", number) => {
                let number = number.parse::<u64>().ok()?;
                parsed.fence = Some(FencingToken::try_from(number).ok()?.as_u64());
            }
            ("r", "") => parsed.share = Some(Share::Reader),
            ("p", permit) => {
                let (number, of) = permit.split_once("of")?;
                let number = number.parse().ok()?;
                let of = of.parse().ok()?;
                parsed.share = Some(Share::Permit {
                    of,
                    number: Some(number),
                });
            }
            ("o", owner) => parsed.owner = bytes_of_hex(owner)?,
            ("x", sum) => parsed.sum = u32::from_str_radix(sum, 16).ok()?,
            _ => return None,
        }
    }
    Some(parsed)
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| u8::try_from(digit.to_digit(16)?).ok())
        .collect();
    let pairs = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(pairs.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::fixture::held_lock;

    #[test]
    fn a_token_is_one_word_and_is_read_from_it() {
        let with = |attributes: LockAttributes, fence| {
            let attributes = Some(Arc::new(attributes));
            LockToken::of(&HeldLock {
                attributes,
                fence,
                ..held_lock(0xAB)
            })
        };
        let plain = "redlatch1.abababababababababababababababababababab.60000";
        let permit = Some(Share::Permit {
            of: 4,
            number: Some(3),
        });
        let owner = b"a.b \xff".to_vec();
        let table = [
            (LockToken::of(&held_lock(0xAB)), String::new()),
            (with(LockAttributes::default(), Some(7)), ".f7".to_owned()),
            (
                with(
                    LockAttributes {
                        share: Some(Share::Reader),
                        ..Default::default()
                    },
                    None,
                ),
                ".r".to_owned(),
            ),
            (
                with(
                    LockAttributes {
                        share: permit,
                        owner,
                        ..Default::default()
                    },
                    Some(1 << 52),
                ),
                ".f4503599627370496.p3of4.o612e6220ff".to_owned(),
            ),
        ];
        for (token, rest) in table {
            let text = token.to_string();
            let (before, sum) = text.rsplit_once(".x").expect("the sum is last");
            assert_eq!((before, sum.len()), (&*format!("{plain}{rest}"), 8));
            assert_eq!(text.parse(), Ok(token.clone()), "{text}");
            assert_eq!(format!("{token:?}"), "LockToken(abab..)", "it is a secret");
        }
    }

    #[test]
    fn a_token_is_that_of_all_its_names_and_of_no_others() {
        let more_keys = vec![Arc::from(&b"more"[..])];
        let attributes = LockAttributes {
            more_keys: more_keys.clone(),
            ..LockAttributes::default()
        };
        let held = HeldLock {
            attributes: Some(Arc::new(attributes)),
            ..held_lock(7)
        };
        let token = LockToken::of(&held);
        assert!(token.is_of(&held.key, &more_keys));
        let other: Arc<[u8]> = Arc::from(&b"mor"[..]);
        assert!(!token.is_of(&held.key, &[]) && !token.is_of(&held.key, &[other]));
        assert!(!token.is_of(b"more", &[Arc::clone(&held.key)]));
        assert!(!token.is_of(&[&held.key[..], b"more"].concat(), &[]));
    }

    #[test]
    fn a_token_with_a_wrong_character_is_no_token_of_the_lock() {
        let held = held_lock(7);
        let text = LockToken::of(&held).to_string();
        for at in 0..text.len() {
            for digit in "0123456789abcdefrx".chars() {
                let mut wrong = text.clone();
                wrong.replace_range(at..=at, &digit.to_string());
                let read = wrong.parse::<LockToken>();
                let is_it = read.is_ok_and(|token| token.is_of(&held.key, &[]));
                assert_eq!(is_it, wrong == text, "{wrong}");
            }
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let plain = "redlatch1.abababababababababababababababababababab.60000";
        assert!(format!("{plain}.x00000000").parse::<LockToken>().is_ok());
        for bad in [
            "",
            "redlatch1",
            "redlatch2.abababababababababababababababababababab.60000",
            "redlatch1.abababababababababababababababababababab",
            plain,
            "redlatch1.abababababababababababababababababababab.60000.x1",
            "redlatch1.abababababababababababababababababababab.0.x00000000",
            "redlatch1.abababababababababababababababababababab.+1",
            "redlatch1.ABababababababababababababababababababab.60000.x00000000",
            "redlatch1.ababababababababababababababababababab.60000.x00000000",
        ] {
            assert_eq!(bad.parse::<LockToken>(), Err(LockTokenError), "{bad}");
        }
        for rest in [
            ".", ".f0", ".f-1", ".r0", ".p1", ".p1of", ".x", ".o6", ".o", ".ö", " ", ".o61.f1",
        ] {
            let bad = format!("{plain}{rest}.x00000000");
            assert_eq!(bad.parse::<LockToken>(), Err(LockTokenError), "{bad}");
        }
        assert!(!LockTokenError.to_string().contains("abab"));
    }
}
