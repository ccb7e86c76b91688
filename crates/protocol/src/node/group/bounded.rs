//! Groups whose replaced master stops by itself: what limits it, the settings of its servers, is
//! outside of this library, and its time is the bound.
//!
//! The age of a reign counts from its first greeting: whoever writes the marker writes the clock.

use super::{GroupOptions, Reign, ReignAnswer, not_master};
use crate::node::NodeError;
use crate::resp::Reply;
use crate::time::Time;
use std::time::Duration;

/// In which reign the votes before a question were given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checked {
    pub marker: Option<Vec<u8>>,
    pub is_master: bool,
    pub id: Vec<u8>,
}

impl Checked {
    /// Reads an answer, if it is one with this number.
    pub(super) fn read(number: i64, reply: &Reply<'_>) -> Option<Self> {
        let mut elements = elements(number, reply)?;
        let marker = bytes(elements.next()?);
        let is_master = elements.next()? == Reply::Bulk(b"master");
        let id = bytes(elements.next()?).unwrap_or_default();
        Some(Self {
            marker,
            is_master,
            id,
        })
    }
}

impl ReignAnswer {
    /// Reads the answer of the script that writes the marker, if it is one with this number.
    pub(in crate::node) fn greeted(number: i64, reply: &Reply<'_>) -> Option<Self> {
        if *reply == Reply::Integer(-number) {
            return Some(Self::NotMaster);
        }
        let mut elements = elements(number, reply)?;
        let Some(marker) = elements.next() else {
            return Some(Self::Hidden);
        };
        let (Reply::Bulk(_), Reply::Integer(now)) = (elements.next()?, elements.next()?) else {
            return None;
        };
        let now = Duration::from_millis(u64::try_from(now).ok()?);
        Some(Self::Greeted {
            marker: bytes(marker).unwrap_or_default(),
            now,
        })
    }
}

/// The elements of a list behind this number.
fn elements<'a>(number: i64, reply: &Reply<'a>) -> Option<impl Iterator<Item = Reply<'a>>> {
    let Reply::Array(list) = reply else {
        return None;
    };
    let mut elements = list.iter();
    (elements.next()? == Reply::Integer(number)).then_some(elements)
}

fn bytes(element: Reply<'_>) -> Option<Vec<u8>> {
    if let Reply::Bulk(bytes) = element {
        Some(bytes.to_vec())
    } else {
        None
    }
}

/// The reign of this marker, which the server has told at this time of its clock.
pub(super) fn greeted(
    now: Time,
    sent_at: Time,
    marker: &[u8],
    clock: Duration,
) -> Result<Reign, NodeError> {
    let words: Vec<&[u8]> = marker.split(|byte| *byte == b' ').collect();
    // It was deleted meanwhile.
    let [b"redlatch1", _, id, _, since, _] = words[..] else {
        return Err(NodeError::ReignChanged);
    };
    // The server's clock was read before this client's: the reign is at least that old now.
    let since = std::str::from_utf8(since)
        .ok()
        .and_then(|digits| digits.parse().ok());
    let age = since.map(|since| (clock.saturating_sub(Duration::from_millis(since)), now));
    Ok(Reign {
        marker: marker.to_vec(),
        id: id.to_vec(),
        age,
        confirmed_at: sent_at,
        acknowledged: None,
    })
}

/// The earlier reign that the nonce of a marker names.
pub(super) fn former(nonce: &[u8]) -> Option<String> {
    let nonce = String::from_utf8_lossy(nonce);
    nonce
        .split_once("after")
        .map(|(_, former)| former.to_owned())
}

impl Reign {
    /// Judges the votes before a check that was written at `sent_at`.
    ///
    /// # Errors
    ///
    /// Why they do not count.
    pub fn check(
        &mut self,
        options: &GroupOptions,
        sent_at: Time,
        answer: &Checked,
    ) -> Result<(), NodeError> {
        if !answer.is_master {
            return Err(not_master());
        }
        let is_same = answer.marker.as_ref() == Some(&self.marker) && answer.id == self.id;
        if !is_same || self.is_stale_in(options.max_ttl, sent_at) {
            return Err(NodeError::ReignChanged);
        }
        self.confirmed_at = self.confirmed_at.max(sent_at);
        Ok(())
    }
}
