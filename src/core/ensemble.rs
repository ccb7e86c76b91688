//! Locks that a ZooKeeper ensemble keeps, over one connection.
//!
//! A request about a lock that is held gets one vote: an ensemble has agreed before it answers.

mod questions;

pub(crate) use questions::FoundDirectory;

use super::cancellation::EndWaits;
use crate::clock::{self, Time};
use crate::config::{Ensemble as EnsembleSettings, Settings};
use crate::core::draw;
use crate::engine::{Ballot, Command, Keep, Node, NodeSet, Removal, Request, Tally, Token, Vote};
use crate::error::{ConfigError, LossReason};
use crate::net::{ChangeQueue, Endpoint, EnsembleNet, LockMessage, OrderKind, RoundOutcome};
use crate::node::{NodeAnswer, NodeError, NodeReport, Phase};
use crate::wait_queue::HeadHandle;
use crate::watchdog::{GuardedLock, Notifier};
use crate::zookeeper::contender::Plan;
use crate::zookeeper::lock_table::{Loss, Outcome};
use crate::zookeeper::message::{Acl, Secret};
use crate::zookeeper::path::Layout;
use crate::zookeeper::path::{Directory, PathError, Root};
use crate::zookeeper::session::SessionOptions;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The connection to an ensemble, and where the locks are on it.
pub(crate) struct Ensemble {
    pub(crate) net: Arc<EnsembleNet>,
    notifier: Weak<Notifier>,
    pub(crate) root: Root,
    pub(crate) layout: Layout,
    acl: Acl,
    key_prefix: usize,
    /// How long one request may take, and how long one that has to connect first.
    pub(crate) node_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    session_timeout: Duration,
}

impl Ensemble {
    /// Prepares the connection; makes none yet.
    pub(super) fn new(
        ensemble: &EnsembleSettings,
        settings: &Settings,
        changes: Option<Arc<ChangeQueue>>,
        notifier: &Arc<Notifier>,
    ) -> Result<Self, ConfigError> {
        let rules = &settings.rules;
        let servers = ensemble.servers.iter().map(|server| {
            let endpoint = Endpoint { address: server.address.clone(), tls: server.tls.clone() };
            (Arc::clone(&server.name), endpoint)
        });
        // Without random numbers now, the servers are tried in an order that others may have too.
        let seed = draw().map_or(0, |entropy| entropy.seed);
        let mut session = SessionOptions::new(ensemble.servers.len(), seed);
        session.timeout = ensemble.session_timeout;
        session.drift_parts_per_billion = rules.drift.parts_per_billion;
        session.credentials = ensemble.credentials.clone().map(Secret);
        session.connect_timeout = settings.connecting.timeout;
        session.reconnect = (rules.retry_base, rules.retry_cap);
        let net = EnsembleNet::new(
            servers.collect(),
            settings.connecting,
            session,
            random,
            changes,
            rules.node_timeout,
        );
        Ok(Self {
            net: Arc::new(net.map_err(|error| ConfigError::System(Arc::new(error)))?),
            notifier: Arc::downgrade(notifier),
            root: ensemble.root.clone(),
            layout: ensemble.layout,
            acl: if ensemble.credentials.is_some() { Acl::Creator } else { Acl::Anyone },
            key_prefix: settings.key_prefix.len(),
            node_timeout: rules.node_timeout,
            connect_timeout: settings.connecting.timeout,
            session_timeout: ensemble.session_timeout,
        })
    }

    /// The directory of the lock with this key.
    pub(crate) fn directory(&self, key: &[u8]) -> Result<Directory, PathError> {
        // A key that another client has made may be shorter.
        let (prefix, name) = key.split_at_checked(self.key_prefix).unwrap_or_default();
        Directory::new(&self.root, prefix, name)
    }

    /// The plan of a contender for the locks with these directories.
    pub(crate) fn plan(&self, directories: Vec<Directory>) -> Plan {
        let mut plan = Plan::of_set(&self.root, directories);
        plan.layout = self.layout;
        plan.acl = self.acl;
        plan
    }

    /// For how long a lock may stay taken after its guard is gone: so long the session lives, even
    /// if the process dies at once.
    pub(super) fn longest_linger(&self) -> Duration {
        self.session_timeout() / 2
    }

    /// Gives up a lock, or the wait for it.
    pub(crate) fn give_up(&self, token: Token) {
        self.net.post(LockMessage::GiveUp(token));
    }

    /// How much of a session's validity is left at any time while the ensemble answers.
    pub(crate) fn longest_validity(&self) -> Duration {
        self.session_timeout() * 3 / 7
    }

    /// The timeout of the session: what was granted, or what is asked for.
    fn session_timeout(&self) -> Duration {
        self.net.granted_timeout().unwrap_or(self.session_timeout)
    }

    /// How long a request may take now.
    pub(crate) fn patience(&self) -> Duration {
        if self.net.is_answering() {
            self.node_timeout
        } else {
            self.node_timeout.max(self.connect_timeout)
        }
    }

    /// Why there was no answer: what each server did last.
    pub(crate) fn reports(&self) -> Vec<NodeReport> {
        let mut reports = self.net.reports();
        for report in &mut reports {
            if report.answer == NodeAnswer::Answered {
                report.answer = NodeAnswer::Failed(NodeError::TimedOut(Phase::Answering));
            }
        }
        reports
    }

    /// Notices the loss of a lock that is held.
    pub(super) fn watch(&self, held: &Arc<GuardedLock>, head: Option<HeadHandle>) {
        let token = held.granted().token;
        let (held, notifier) = (Arc::downgrade(held), Weak::clone(&self.notifier));
        let on_loss = move |loss| {
            // The next waiter of this client need not wait for the guard to be dropped.
            if let Some(head) = &head {
                head.set_key_expiry(clock::now());
            }
            let Some(held) = held.upgrade() else { return };
            held.end_now(
                clock::now(),
                match loss {
                    Loss::Gone => LossReason::Gone,
                    Loss::Expired => LossReason::Expired,
                },
            );
            if let Some(notifier) = notifier.upgrade() {
                notifier.watch_for_loss(held);
            }
        };
        self.net.post(LockMessage::Watch(token, Box::new(on_loss)));
    }

    /// A request about a lock that is held.
    pub(super) fn submit(&self, request: &Request) -> RoundOutcome {
        let (now, until) = (request.started, request.deadline);
        let vote = match &request.command {
            Command::Keep(Keep { lock, ttl, .. }) => {
                self.vote(OrderKind::Check(lock.token, after(now, *ttl)), until)
            }
            Command::Remove(removal) => self.release(removal, now, until),
            // Nothing else is asked of an ensemble.
            _ => Vote::Failed,
        };
        let mut tally = Tally::new(1);
        tally.cast(Node::new(0), vote);
        let mut ballot = Ballot::new(tally);
        ballot.sent = NodeSet::all(1);
        let reports = if vote == Vote::Granted { Vec::new() } else { self.reports() };
        RoundOutcome { reports, ..RoundOutcome::of(ballot) }
    }

    fn release(&self, removal: &Removal, now: Time, until: Time) -> Vote {
        let token = removal.lock.token;
        match removal.linger {
            None => self.vote(OrderKind::Release(token), until),
            Some(linger) => {
                let end = after(now, linger);
                let vote = self.vote(OrderKind::Check(token, end), until);
                self.net.post(LockMessage::Leave(token, end));
                vote
            }
        }
    }

    fn vote(&self, order: OrderKind, until: Time) -> Vote {
        match self.net.submit(order, until) {
            Some(Outcome::Voted(vote)) => vote,
            _ => Vote::Failed,
        }
    }

    /// A request that nobody waits for.
    pub(super) fn post(&self, request: &Request) {
        let Command::Remove(removal) = &request.command else { return };
        let token = removal.lock.token;
        self.net.post(match removal.linger {
            None => LockMessage::GiveUp(token),
            Some(linger) => LockMessage::Leave(token, after(request.started, linger)),
        });
    }

    pub(super) fn waits(&self) -> Weak<dyn EndWaits> {
        Arc::<EnsembleNet>::downgrade(&self.net)
    }

    pub(super) fn leak(&self) {
        std::mem::forget(Arc::clone(&self.net));
    }
}

impl EndWaits for EnsembleNet {
    fn end_waits(&self, waiter: Option<Token>) {
        self.end_waits(waiter);
    }
}

fn after(time: Time, ttl: crate::engine::Ttl) -> Time {
    time.after(ttl.as_duration())
}

/// Random bytes for the name of a znode.
fn random() -> Option<[u8; 16]> {
    let entropy = draw()?;
    entropy.token.as_bytes()[..16].try_into().ok()
}
