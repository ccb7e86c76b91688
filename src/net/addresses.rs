//! The addresses of a node's name: in which order they are tried, and for how long each.
//!
//! The families alternate (RFC 8305), and the addresses share the time to connect. So neither a
//! broken IPv6 route nor a host that is down uses all of it up.

use super::Endpoint;
use super::locate::{Found, Location, locate};
use crate::clock::Time;
#[cfg(feature = "groups")]
use crate::node::history::History;
use crate::node_url::Address;
use crossbeam_channel::{Receiver, Sender};
use mio::Waker;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

/// For how long an answer is used that came too late for the request that asked: afterwards, the
/// name may mean another host.
const FRESH: Duration = Duration::from_secs(60);

/// The addresses that were found for one attempt to connect.
#[derive(Debug)]
pub(super) struct Addresses {
    pub(super) host: String,
    untried: VecDeque<SocketAddr>,
    asked_at: Time,
    part: Duration,
    next_at: Time,
}

impl Addresses {
    /// These addresses, in the order in which they are tried, within `timeout`.
    pub(super) fn new(found: Location, last: Last, timeout: Duration) -> Self {
        let untried = VecDeque::from(last.sorted(interleaved(&found.addresses)));
        let count = u32::try_from(untried.len().max(1)).unwrap_or(u32::MAX);
        let Location { host, asked_at, .. } = found;
        Self {
            host,
            untried,
            asked_at,
            part: timeout / count,
            next_at: Time::ZERO,
        }
    }

    /// The next address, which is tried now, unless it was found too long ago.
    pub(super) fn next(&mut self, now: Time) -> Option<SocketAddr> {
        self.next_at = now.after(self.part);
        self.untried
            .pop_front()
            .filter(|_| now.since(self.asked_at) < FRESH)
    }

    /// When the next address is tried in place of this one, if there is one.
    pub(super) fn next_at(&self) -> Option<Time> {
        (!self.untried.is_empty()).then_some(self.next_at)
    }
}

/// The address that accepted the last connection. It only sorts the addresses that the name has
/// now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    pub(super) address: Option<SocketAddr>,
    /// Has the node answered the greeting there? Then it goes first: the locks are there, if the
    /// name should have several servers behind it. If not, it goes last, so that each address gets
    /// its turn.
    pub(super) has_answered: bool,
}

impl Last {
    fn sorted(self, mut addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
        let last = addresses
            .iter()
            .position(|address| Some(*address) == self.address);
        if let Some(last) = last {
            addresses.rotate_left(last + usize::from(!self.has_answered));
        }
        addresses
    }
}

/// Each address once, the families in turn, beginning with that of the first. Within a family, the
/// resolver's order stays, which is by preference (RFC 6724).
fn interleaved(found: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(first) = found.first() else {
        return Vec::new();
    };
    let mut families = [VecDeque::new(), VecDeque::new()];
    for address in found {
        let family = &mut families[usize::from(address.is_ipv4() != first.is_ipv4())];
        if !family.contains(address) {
            family.push_back(*address);
        }
    }
    let [mut one, mut other] = families;
    let mut all = Vec::with_capacity(found.len());
    while !(one.is_empty() && other.is_empty()) {
        all.extend(one.pop_front());
        all.extend(other.pop_front());
    }
    all
}

// Resolves host names outside the leader's thread.
//
// The operating system's resolver blocks, for many seconds if its DNS servers do not answer. So
// each lookup runs on a short-lived thread of its own, and wakes the leader when it is done. One
// that takes longer than the request that started it is used by the next connection; one that takes
// longer than an attempt to connect does not keep the next one from being started, where other
// servers are asked.

/// What a thread has found out for a connection.
#[derive(Debug)]
pub(super) enum Finding {
    /// Where its node is.
    Place(Found),
    /// What a server of its group says about its history, and what the master says that lists it.
    #[cfg(feature = "groups")]
    History {
        server: History,
        master: Arc<History>,
    },
    /// All servers of the group were asked.
    #[cfg(feature = "groups")]
    AllAsked,
}

/// How many lookups of one node there are at most, where other servers are asked: all but the last
/// of them hang.
const LOOKUPS_MAX: usize = 4;

/// The lookups of one node.
#[derive(Debug)]
pub(super) struct Lookups {
    most: usize,
    /// When the last one began, if no answer has come since.
    since: Option<Time>,
    /// Shared with the threads.
    running: Arc<()>,
}

impl Lookups {
    /// Where the operating system's resolver hangs on a name, it would hang on it once more.
    pub(super) fn of(address: &Address) -> Self {
        let most = match address {
            Address::Tcp { .. } | Address::Unix { .. } => 1,
            Address::Sentinel { .. } | Address::Cluster { .. } => LOOKUPS_MAX,
        };
        Self {
            most,
            since: None,
            running: Arc::default(),
        }
    }

    /// What the thread of a new lookup keeps, if there is to be one: not while the last one may
    /// still be answered within `timeout`.
    pub(super) fn begin(&self, now: Time, timeout: Duration) -> Option<Arc<()>> {
        let is_awaited = self.since.is_some_and(|since| now < since.after(timeout));
        let is_one_more = Arc::strong_count(&self.running) <= self.most;
        (!is_awaited && is_one_more).then(|| Arc::clone(&self.running))
    }

    pub(super) fn began(&mut self, now: Time) {
        self.since = Some(now);
    }

    pub(super) fn ended(&mut self) {
        self.since = None;
    }
}

/// Starts lookups and collects their results.
#[derive(Debug)]
pub(super) struct Resolver {
    findings: Sender<(usize, Finding)>,
    receiver: Receiver<(usize, Finding)>,
    waker: Arc<Waker>,
}

impl Resolver {
    pub(super) fn new(waker: Arc<Waker>) -> Self {
        let (findings, receiver) = crossbeam_channel::unbounded();
        Self {
            findings,
            receiver,
            waker,
        }
    }

    /// Starts to look up where the node at `index` is.
    pub(super) fn look_up(
        &self,
        index: usize,
        endpoint: &Endpoint,
        timeout: Duration,
        running: Arc<()>,
    ) -> io::Result<()> {
        let reporter = self.reporter(index);
        let endpoint = endpoint.clone();
        let thread = thread::Builder::new().name("redlatch-resolver".to_owned());
        thread.spawn(move || {
            let found = locate(&endpoint, timeout);
            drop(running);
            reporter.report(Finding::Place(found));
        })?;
        Ok(())
    }

    /// What a thread gets that finds out something about the node at `index`.
    pub(super) fn reporter(&self, index: usize) -> Reporter {
        Reporter {
            index,
            findings: self.findings.clone(),
            waker: Arc::clone(&self.waker),
        }
    }

    pub(super) fn poll(&self) -> Option<(usize, Finding)> {
        self.receiver.try_recv().ok()
    }
}

/// Passes what a thread has found out to the event loop, and wakes it.
pub(super) struct Reporter {
    index: usize,
    findings: Sender<(usize, Finding)>,
    waker: Arc<Waker>,
}

impl Reporter {
    pub(super) fn report(&self, finding: Finding) {
        // It fails if the client was dropped meanwhile.
        if self.findings.send((self.index, finding)).is_ok() {
            let _ = self.waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts
            .iter()
            .map(|text| SocketAddr::new(text.parse().expect("an address"), 1))
            .collect()
    }

    fn found(texts: &[&str]) -> Location {
        let host = String::new();
        let addresses = addresses(texts);
        Location {
            host,
            addresses,
            announced: None,
            epoch: 0,
            asked_at: Time::ZERO,
        }
    }

    fn order(texts: &[&str], last: Last) -> Vec<SocketAddr> {
        let mut all = Addresses::new(found(texts), last, SECOND);
        std::iter::from_fn(|| all.next(Time::ZERO)).collect()
    }

    #[test]
    fn families_alternate_and_each_keeps_its_order() {
        for (found, expected) in [
            (
                &["::1", "::2", "::3", "1.0.0.1", "1.0.0.2"][..],
                &["::1", "1.0.0.1", "::2", "1.0.0.2", "::3"][..],
            ),
            (
                &["1.0.0.1", "1.0.0.2", "::1"],
                &["1.0.0.1", "::1", "1.0.0.2"],
            ),
            (&["::1", "::1", "1.0.0.1", "::1"], &["::1", "1.0.0.1"]),
            (&["1.0.0.2", "1.0.0.1"], &["1.0.0.2", "1.0.0.1"]),
            (&[], &[]),
        ] {
            assert_eq!(order(found, Last::default()), addresses(expected));
        }
    }

    #[test]
    fn the_address_that_answered_goes_first_and_the_one_that_did_not_goes_last() {
        let found = ["1.0.0.1", "1.0.0.2", "1.0.0.3"];
        let address = |index: usize| Some(addresses(&found)[index]);
        let answered = Last {
            address: address(1),
            has_answered: true,
        };
        assert_eq!(
            order(&found, answered),
            addresses(&["1.0.0.2", "1.0.0.3", "1.0.0.1"])
        );
        // Each gets its turn, however many accept and do not answer.
        let mut last = Last::default();
        for turn in 0..3 * found.len() {
            let first = order(&found, last)[0];
            assert_eq!(Some(first), address(turn % found.len()), "turn {turn}");
            last = Last {
                address: Some(first),
                has_answered: false,
            };
        }
        let gone = Last {
            address: Some(addresses(&["1.0.0.9"])[0]),
            has_answered: true,
        };
        assert_eq!(
            order(&found, gone),
            addresses(&found),
            "the name has it no more"
        );
    }

    #[test]
    fn each_address_gets_its_part_of_the_time() {
        let at = |millis| Time::ZERO.after(Duration::from_millis(millis));
        let named = addresses(&["1.0.0.1", "1.0.0.2"]);
        for (timeout, part) in [(2_000, 1_000), (300, 150), (1, 0)] {
            let timeout = Duration::from_millis(timeout);
            let location = found(&["1.0.0.1", "1.0.0.2"]);
            let mut all = Addresses::new(location, Last::default(), timeout);
            assert_eq!(all.next(at(10)), Some(named[0]));
            let next_at = all.next_at().expect("there is another");
            assert_eq!(next_at.since(at(10)).as_millis(), part, "{timeout:?}");
            assert_eq!(all.next(at(10)), Some(named[1]));
            assert_eq!((all.next_at(), all.next(at(10))), (None, None));
        }
    }

    #[test]
    fn what_was_found_long_ago_is_not_used() {
        let mut all = Addresses::new(found(&["1.0.0.1", "1.0.0.2"]), Last::default(), SECOND);
        assert!(all.next(Time::ZERO.after(59 * SECOND)).is_some());
        assert_eq!(all.next(Time::ZERO.after(60 * SECOND)), None);
    }

    #[test]
    fn a_lookup_that_hangs_does_not_stop_the_next_one_and_few_hang() {
        let mut lookups = Lookups {
            most: LOOKUPS_MAX,
            since: None,
            running: Arc::default(),
        };
        let mut running = Vec::new();
        let mut now = Time::ZERO;
        for number in 0..2 * LOOKUPS_MAX {
            let lookup = lookups.begin(now, SECOND);
            assert_eq!(lookup.is_some(), number < LOOKUPS_MAX);
            running.extend(lookup);
            lookups.began(now);
            assert!(
                lookups.begin(now, SECOND).is_none(),
                "it was begun a moment ago"
            );
            now = now.after(SECOND);
        }
        drop(running);
        lookups.ended();
        assert!(lookups.begin(now, SECOND).is_some());
    }
}
