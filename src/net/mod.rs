//! The sockets. No other module uses `mio` or `std::net` for the connections of a client.
//!
//! All threads of a client share one [`Net`]: N connections and one poll. A thread submits a
//! request and gets its outcome. There is no thread in the background by default: one of the
//! callers, the leader, runs the event loop for all (see [`leader_followers`]).
//!
//! | file | contents |
//! |---|---|
//! | `leader_followers` | Leader/Followers: which thread runs the event loop, a trait |
//! | `follower` | where the other threads wait, with one order or with several |
//! | `socket_loop` | the event loop: a conversation over the sockets |
//! | `sockets` | the poll, the connections to all nodes, and the options of their sockets |
//! | `connection` | the socket of one node, opened and closed as its session requires |
//! | `descriptors` | which descriptors are never a socket's |
//! | `change_queue` | changes of the nodes' states that are not yet reported |
//! | `ensemble` | the connection to a ZooKeeper ensemble, and what is said over it |
//! | `locate` | where a node is: a name is resolved, or those are asked that know the master |
//! | `masters` | who is asked for the master of a group, and what these say |
//! | `orders` | several orders of one thread at a time |
//! | `probe` | a connection that asks once, of a thread that waits for the answer |
//! | `stream` | the kinds of socket, and TLS over them |
//! | `witness` | what the servers of a group say about their histories |
//! | `addresses` | name resolution outside the leader's thread, and which address is tried when |
//! | `sync` | locks and the inbox of the leader, which a model checker replaces |

mod addresses;
mod change_queue;
mod connection;
mod descriptors;
#[cfg(feature = "zookeeper")]
mod ensemble;
mod follower;
mod leader_followers;
mod locate;
#[cfg_attr(not(feature = "groups"), path = "no_masters.rs")]
mod masters;
mod orders;
#[cfg(any(feature = "groups", feature = "zookeeper"))]
mod probe;
mod socket_loop;
mod sockets;
mod stream;
pub(crate) mod sync;
#[cfg(feature = "groups")]
mod witness;

use super::clock::{self, Time};
use super::engine::{QueueWait, Request, Token};
#[cfg(feature = "diagnostics")]
use super::node::NodeStatus;
use super::node::{Ended, Message, NodeAnswer, NodeError, NodeReport, Phase, Rounds, Session};
pub(crate) use super::node::{Order, RoundOutcome};
use super::node_url::Address;
pub(crate) use change_queue::ChangeQueue;
use crossbeam_channel::{Receiver, bounded};
#[cfg(feature = "zookeeper")]
pub(crate) use ensemble::{EnsembleNet, LockMessage, OrderKind, refusal};
use follower::Follower;
use leader_followers::{EventLoop, LeaderFollowers};
pub(crate) use masters::LookupAuth;
#[cfg(feature = "groups")]
pub(crate) use masters::ask_sentinels;
pub(crate) use orders::{Nudge, Orders};
use socket_loop::{DrainLimits, SocketLoop};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, thread};
#[cfg(not(feature = "tls"))]
pub(crate) use stream::TlsTarget;
#[cfg(feature = "tls")]
pub use stream::{Received, TlsSession, TlsTarget, UNSENT_MAX};
#[cfg(feature = "groups")]
pub(crate) use witness::ask_clocks;

/// With an I/O thread, a caller waits for its round until the deadline of the round and this much
/// longer. An I/O thread that is not stopped ends the round at its deadline; the margin is for the
/// scheduler.
const MARGIN: Duration = Duration::from_millis(20);

/// How many rounds the last drop waits at most for nodes that reply. Removals for which a
/// connection has no room at once take several rounds.
const DRAIN_ROUNDS: u32 = 10;

/// The rounds of all threads of a client, and the loop that drives them.
type ClientRounds = Rounds<Arc<Follower<Ended>>>;
type RoundsLoop = SocketLoop<ClientRounds>;

/// How connections are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectOptions {
    /// How long one attempt may take, from the name to the end of the greeting.
    pub(crate) timeout: Duration,
    /// How long a TCP connection is idle before the peer is probed; `None` for no probes.
    pub(crate) keepalive: Option<Duration>,
}

/// Where a node is, and how connections to it are secured.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) address: Address,
    pub(crate) tls: Option<TlsTarget>,
    /// How those are asked who name the master, if the node is a group.
    pub(crate) auth: LookupAuth,
}

/// The connections of one client, shared by its threads.
#[derive(Debug)]
pub(crate) struct Net {
    event_loop: Arc<LeaderFollowers<RoundsLoop>>,
    /// `None` if the callers lead. Dropped after the reference to the event loop, of which the
    /// thread then has the last.
    io_thread: Option<IoThread>,
    /// Has a majority of the nodes answered on its connections? Known with an I/O thread, for which
    /// callers do not wait without a limit.
    is_connected: Arc<AtomicBool>,
    /// What the nodes are, in their order.
    not_asked: Vec<NodeReport>,
}

impl Net {
    /// Connections to these nodes, each made when it is first needed.
    ///
    /// When this is dropped, it waits for up to `node_timeout` for the nodes' replies to the
    /// removals that were sent. Changes of the nodes' states are put into `changes`, if it is
    /// given; a node that has been silent for `node_timeout` is slow. With `has_io_thread`, an I/O
    /// thread leads.
    ///
    /// # Errors
    ///
    /// The operating system could not create a poll or a thread.
    pub(crate) fn new(
        nodes: Vec<(Endpoint, Session)>,
        options: ConnectOptions,
        wait_for_all: bool,
        node_timeout: Duration,
        changes: Option<Arc<ChangeQueue>>,
        has_io_thread: bool,
    ) -> io::Result<Self> {
        let (endpoints, sessions): (_, Vec<Session>) = nodes.into_iter().unzip();
        let not_asked = sessions
            .iter()
            .map(|session| session.report(NodeAnswer::NotAsked))
            .collect();
        let mut rounds = Rounds::new(sessions, wait_for_all);
        if changes.is_some() {
            rounds.watch(node_timeout);
        }
        let connections = socket_loop::connections(endpoints, options);
        let is_connected = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&is_connected);
        let tell = Box::new(move |rounds: &mut ClientRounds| {
            if has_io_thread {
                shared.store(rounds.is_connected(), Ordering::Relaxed);
            }
            if let Some(changes) = &changes {
                while let Some(change) = rounds.poll_change() {
                    changes.push(change);
                }
            }
        });
        let drain_limits = DrainLimits {
            most: node_timeout * DRAIN_ROUNDS,
            next: node_timeout,
        };
        let (socket_loop, wake) = SocketLoop::new(connections, rounds, tell, drain_limits)?;
        let event_loop = Arc::new(LeaderFollowers::new(socket_loop, wake, has_io_thread));
        // The event loop drains before the I/O thread ends.
        let longest = node_timeout * DRAIN_ROUNDS + MARGIN;
        let io_thread = has_io_thread
            .then(|| IoThread::start(&event_loop, longest))
            .transpose()?;
        Ok(Self {
            event_loop,
            io_thread,
            is_connected,
            not_asked,
        })
    }

    /// Sends a request to all nodes and waits until it is decided, or until its deadline.
    pub(crate) fn submit(&self, request: Request) -> RoundOutcome {
        let limit = self.limit(&request).since(clock::now());
        let ended = self.event_loop.submit(Order::Round(request), limit);
        ended
            .and_then(Ended::into_round)
            .unwrap_or_else(|| self.undelivered())
    }

    /// Waits in the nodes' queue: see [`Order::Wait`]. Returns whether a majority of them reserves
    /// the lock.
    pub(crate) fn wait(&self, wait: QueueWait) -> bool {
        let limit = wait.until.after(MARGIN).since(clock::now());
        let ended = self.event_loop.submit(Order::Wait(wait), limit);
        matches!(ended, Some(Ended::Wait { is_called: true }))
    }

    /// Sends a request to all nodes without waiting for replies.
    pub(crate) fn post(&self, request: Request) {
        self.event_loop.post(Message::Post(request));
    }

    /// Has a message processed with what comes next: an order of this thread that it waits for, or
    /// [`flush`](Self::flush), one of which must follow without delay.
    pub(crate) fn post_later(&self, message: Message) {
        self.event_loop.post_later(message);
    }

    /// Processes and writes what was posted [for later](Self::post_later).
    pub(crate) fn flush(&self) {
        self.event_loop.flush();
    }

    /// Forgets a waiter, about which no request follows.
    #[cfg(feature = "registers")]
    pub(crate) fn leave(&self, waiter: Token) {
        self.event_loop.post(Message::Leave(waiter));
    }

    /// Ends the waits of one waiter in the nodes' queue, or of all, now and from now on.
    pub(crate) fn end_waits(&self, waiter: Option<Token>) {
        self.event_loop.post(Message::EndWaits(waiter));
    }

    /// The nodes' statuses where no request can be sent.
    #[cfg(feature = "diagnostics")]
    pub(crate) fn unreachable(&self, error: &NodeError) -> Vec<NodeStatus> {
        NodeStatus::of_unreachable(&self.not_asked, error)
    }

    /// Until when a caller waits for the I/O thread at most.
    fn limit(&self, request: &Request) -> Time {
        let is_connected = self.is_connected.load(Ordering::Relaxed);
        let end = if is_connected {
            request.deadline
        } else {
            request.connect_deadline
        };
        end.after(MARGIN)
    }

    /// The outcome of a request that the I/O thread has not delivered in time.
    fn undelivered(&self) -> RoundOutcome {
        RoundOutcome::without_replies(&self.not_asked, &NodeError::TimedOut(Phase::Queued))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if self.io_thread.is_some() {
            self.event_loop.close();
        }
    }
}

// A thread that leads all the time, for clients that are configured to have one.
//
// It sleeps in the poll while there is no request and nothing arrives. It runs no code of the
// user, so only the scheduler and signal handlers can delay it. It ends when it is
// [closed](LeaderFollowers::close). If it has the last reference to the connections by then, it
// waits for the replies to the removals that were written.

/// The thread. Dropping this waits until the thread has ended, but for at most `join_timeout`.
#[derive(Debug)]
struct IoThread {
    ended: Receiver<Infallible>,
    join_timeout: Duration,
}

impl IoThread {
    /// Starts the thread. It should take at most `join_timeout` to end after it is
    /// [closed](LeaderFollowers::close).
    fn start<E>(shared: &Arc<LeaderFollowers<E>>, join_timeout: Duration) -> io::Result<Self>
    where
        E: EventLoop<Order: Send, Message: Send, Outcome: Send> + Send + 'static,
    {
        let (ends, ended) = bounded(0);
        let shared = Arc::clone(shared);
        let thread = thread::Builder::new().name("redlatch-io".to_owned());
        thread.spawn(move || {
            shared.run();
            drop(shared);
            drop(ends);
        })?;
        Ok(Self {
            ended,
            join_timeout,
        })
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        // Nothing is ever sent: this returns when the sender is dropped or the time is over.
        let _ = self.ended.recv_timeout(self.join_timeout);
    }
}
