//! The addresses of a node's name: in which order they are tried, and when the next one is.
//!
//! As in RFC 8305, "Happy Eyeballs": the families alternate, and an address that does not answer
//! gets a short time before the next one is tried beside it. So neither a broken IPv6 route nor a
//! host that is down uses up the time for the connection, and an address that is only far away is
//! still used when it answers.

use crate::clock::Time;
use crossbeam_channel::{Receiver, Sender};
use mio::Waker;
use std::collections::VecDeque;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

/// How long one address is tried before the next one is tried beside it, if the time to connect
/// allows as much for each: the Connection Attempt Delay of RFC 8305, and its value.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The addresses that were found for one attempt to connect.
#[derive(Debug)]
pub(super) struct Addresses {
    untried: VecDeque<SocketAddr>,
    attempt_delay: Duration,
    next_at: Time,
}

impl Addresses {
    /// These addresses, in the order in which they are tried, within `timeout`.
    pub(super) fn new(found: &[SocketAddr], history: &mut History, timeout: Duration) -> Self {
        let untried = VecDeque::from(history.sorted(interleaved(found)));
        let count = u32::try_from(untried.len().max(1)).unwrap_or(u32::MAX);
        let attempt_delay = ATTEMPT_DELAY.min(timeout / count);
        Self { untried, attempt_delay, next_at: Time::ZERO }
    }

    /// The next address, which is tried now.
    pub(super) fn next(&mut self, now: Time) -> Option<SocketAddr> {
        self.next_at = now.after(self.attempt_delay);
        self.untried.pop_front()
    }

    /// When the next address is tried beside the others, if there is one.
    pub(super) fn next_at(&self) -> Option<Time> {
        (!self.untried.is_empty()).then_some(self.next_at)
    }
}

/// Which addresses earlier connections had. It only sorts the addresses that the name has now.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The address of the connection that is open or being greeted.
    current: Option<SocketAddr>,
    /// The address whose node answered last. It goes first: the locks are there, if the name
    /// should have several servers behind it.
    answered: Option<SocketAddr>,
    /// The addresses that accepted a connection without answering the greeting, the latest at the
    /// end. They go last, in this order, so that each gets its turn before one is tried again.
    failed: Vec<SocketAddr>,
}

impl History {
    /// A connection to this address is made.
    pub(super) fn connected(&mut self, address: Option<SocketAddr>) {
        self.current = address;
    }

    /// Is it unknown yet whether the current connection's node answers?
    pub(super) fn is_open(&self) -> bool {
        self.current.is_some()
    }

    /// The node has answered the greeting.
    pub(super) fn greeted(&mut self) {
        self.answered = self.current.take();
        self.failed.retain(|failed| Some(*failed) != self.answered);
    }

    pub(super) fn closed(&mut self) {
        if let Some(address) = self.current.take() {
            self.failed.retain(|failed| *failed != address);
            self.failed.push(address);
        }
    }

    fn sorted(&mut self, mut addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
        // Otherwise it would grow with each address that the name ever had.
        self.failed.retain(|failed| addresses.contains(failed));
        let rank = |address: &SocketAddr| match self.failed.iter().position(|it| it == address) {
            Some(position) => 2 + position,
            None => usize::from(self.answered != Some(*address)),
        };
        addresses.sort_by_key(rank);
        addresses
    }
}

/// Each address once, the families in turn, beginning with that of the first. Within a family, the
/// resolver's order stays, which is by preference (RFC 6724).
fn interleaved(found: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(first) = found.first() else { return Vec::new() };
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
// each lookup runs on a short-lived thread of its own, at most one per node, and wakes the leader
// when it is done. A lookup that takes longer than the request that started it is used by the next
// connection.

pub(super) type Found = io::Result<Vec<SocketAddr>>;

/// The index of a node, and the result of the lookup for it.
type Lookup = (usize, Found);

/// Starts lookups and collects their results.
#[derive(Debug)]
pub(super) struct Resolver {
    sender: Sender<Lookup>,
    receiver: Receiver<Lookup>,
    waker: Arc<Waker>,
}

impl Resolver {
    pub(super) fn new(waker: Arc<Waker>) -> Self {
        let (sender, receiver) = crossbeam_channel::unbounded();
        Self { sender, receiver, waker }
    }

    /// Starts to look up `host` for the node at `index`.
    pub(super) fn look_up(&self, index: usize, host: &str, port: u16) -> io::Result<()> {
        let (host, results, waker) = (host.to_owned(), self.sender.clone(), self.waker.clone());
        let lookup = move || {
            let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
            // It fails if the client was dropped meanwhile.
            if results.send((index, found)).is_ok() {
                let _ = waker.wake();
            }
        };
        thread::Builder::new().name("redlatch-resolver".to_owned()).spawn(lookup).map(drop)
    }

    pub(super) fn poll(&self) -> Option<(usize, Found)> {
        self.receiver.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| SocketAddr::new(text.parse().expect("an address"), 1)).collect()
    }

    fn order(found: &[&str], history: &mut History) -> Vec<SocketAddr> {
        let mut all = Addresses::new(&addresses(found), history, SECOND);
        std::iter::from_fn(|| all.next(Time::ZERO)).collect()
    }

    #[test]
    fn families_alternate_and_each_keeps_its_order() {
        let mut history = History::default();
        for (found, expected) in [
            (
                &["::1", "::2", "::3", "1.0.0.1", "1.0.0.2"][..],
                &["::1", "1.0.0.1", "::2", "1.0.0.2", "::3"][..],
            ),
            (&["1.0.0.1", "1.0.0.2", "::1"], &["1.0.0.1", "::1", "1.0.0.2"]),
            (&["::1", "::1", "1.0.0.1", "::1"], &["::1", "1.0.0.1"]),
            (&["1.0.0.2", "1.0.0.1"], &["1.0.0.2", "1.0.0.1"]),
            (&[], &[]),
        ] {
            assert_eq!(order(found, &mut history), addresses(expected));
        }
    }

    #[test]
    fn the_address_that_answered_goes_first_and_the_one_that_did_not_goes_last() {
        let found = ["1.0.0.1", "1.0.0.2", "1.0.0.3"];
        let [one, two] = [0, 1].map(|index| Some(addresses(&found)[index]));
        let mut history = History::default();
        history.connected(two);
        assert!(history.is_open());
        history.greeted();
        history.closed();
        assert_eq!(order(&found, &mut history), addresses(&["1.0.0.2", "1.0.0.1", "1.0.0.3"]));
        history.connected(one);
        history.closed();
        assert_eq!(order(&found, &mut history), addresses(&["1.0.0.2", "1.0.0.3", "1.0.0.1"]));
        // An address that answered and then does not.
        history.connected(two);
        history.closed();
        assert_eq!(order(&found, &mut history), addresses(&["1.0.0.3", "1.0.0.1", "1.0.0.2"]));
        history.connected(two);
        history.greeted();
        assert_eq!(order(&found, &mut history), addresses(&["1.0.0.2", "1.0.0.3", "1.0.0.1"]));
    }

    #[test]
    fn each_address_gets_its_turn_however_many_accept_and_do_not_answer() {
        let found = ["1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4"];
        let mut history = History::default();
        for turn in 0..3 * found.len() {
            let first = order(&found, &mut history)[0];
            assert_eq!(first, addresses(&found)[turn % found.len()], "turn {turn}");
            history.connected(Some(first));
            history.closed();
        }
    }

    #[test]
    fn an_address_that_the_name_does_not_have_any_more_is_not_tried() {
        let mut history = History::default();
        history.connected(Some(addresses(&["1.0.0.9"])[0]));
        history.greeted();
        assert_eq!(
            order(&["1.0.0.1", "1.0.0.2"], &mut history),
            addresses(&["1.0.0.1", "1.0.0.2"])
        );
    }

    #[test]
    fn each_address_gets_its_part_of_the_time() {
        let at = |millis| Time::ZERO.after(Duration::from_millis(millis));
        let found = addresses(&["1.0.0.1", "1.0.0.2"]);
        for (timeout, delay) in [(2_000, 250), (500, 250), (300, 150), (1, 0)] {
            let timeout = Duration::from_millis(timeout);
            let mut all = Addresses::new(&found, &mut History::default(), timeout);
            assert_eq!(all.next(at(10)), Some(found[0]));
            let next_at = all.next_at().expect("there is another");
            assert_eq!(next_at.since(at(10)).as_millis(), delay, "{timeout:?}");
            assert_eq!(all.next(at(10)), Some(found[1]));
            assert_eq!((all.next_at(), all.next(at(10))), (None, None));
        }
    }
}
