//! Locks that a ZooKeeper ensemble keeps, over one connection.

mod acquire;
mod questions;

use crate::backend::{
    Backend, Blocking, EventRecorder, LockSpec, Operator, SessionLimits, SharedParts, Start,
    Started, StartedExtension, at_once,
};
use crate::clock::{self, Time};
use crate::config::{EnsembleSettings, Settings};
use crate::driver::{Driven, Driver, Work};
use crate::engine::{Extended, Extension, HeldLock, Release, Rules, Token, Ttl, Vote};
use crate::entropy::draw;
use crate::error::{ConfigError, Error, LossReason, NoQuorum};
use crate::event::Released;
use crate::inspect::Inspection;
use crate::net::{Endpoint, EnsembleNet, LockMessage, LookupAuth, OrderKind};
use crate::node::{NodeAnswer, NodeError, NodeReport, Phase};
use crate::owner_process::OwnerProcess;
use crate::wait_queue::QueueHead;
use crate::watchdog::{GuardedLock, Notifier};
use acquire::{ZooKeeperAcquire, outcome};
use redlatch_zookeeper::contender::ContenderPlan;
use redlatch_zookeeper::lock_table::{Loss, Outcome};
use redlatch_zookeeper::message::{Acl, Secret};
use redlatch_zookeeper::path::{Directory, Layout, PathError, Root};
use redlatch_zookeeper::session::EnsembleSessionOptions;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The connection to an ensemble, and where the locks are on it.
pub(crate) struct EnsembleBackend {
    /// Dropped first: that ends its thread. The connection has one of its own.
    driver: Driver,
    net: Arc<EnsembleNet>,
    notifier: Weak<Notifier>,
    owner_process: Arc<OwnerProcess>,
    rules: Arc<Rules>,
    root: Root,
    layout: Layout,
    acl: Acl,
    key_prefix: usize,
    session_timeout: Duration,
}

impl EnsembleBackend {
    /// Prepares the connection; makes none yet.
    ///
    /// # Errors
    ///
    /// The operating system refuses a poll, or a thread for the connection.
    pub(crate) fn new(
        ensemble: &EnsembleSettings,
        settings: &Settings,
        shared: SharedParts<'_>,
    ) -> Result<Self, ConfigError> {
        let rules = &settings.rules;
        let servers = ensemble.servers.iter().map(|server| {
            let address = server.address.clone();
            let tls = server.tls.clone();
            let endpoint = Endpoint {
                address,
                tls,
                auth: LookupAuth::default(),
            };
            (Arc::clone(&server.name), endpoint)
        });
        // Without random numbers now, the servers are tried in an order that others may have too.
        let seed = draw().map_or(0, |entropy| entropy.seed);
        let mut session = EnsembleSessionOptions::new(ensemble.servers.len(), seed);
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
            shared.changes,
            rules.node_timeout,
        );
        Ok(Self {
            driver: Driver::new(None, shared.owner_process),
            net: Arc::new(net.map_err(|error| ConfigError::System(Arc::new(error)))?),
            notifier: Arc::downgrade(shared.notifier),
            owner_process: Arc::clone(shared.owner_process),
            rules: Arc::clone(rules),
            root: ensemble.root.clone(),
            layout: ensemble.layout,
            acl: if ensemble.credentials.is_some() {
                Acl::Creator
            } else {
                Acl::Anyone
            },
            key_prefix: settings.key_prefix.len(),
            session_timeout: ensemble.session_timeout,
        })
    }

    /// The directory of the lock with this key.
    fn directory(&self, key: &[u8]) -> Result<Directory, PathError> {
        // A key that another client has made may be shorter.
        let (prefix, name) = key.split_at_checked(self.key_prefix).unwrap_or_default();
        Directory::new(&self.root, prefix, name)
    }

    /// The plan of a contender for the locks with these directories.
    fn plan(&self, directories: Vec<Directory>) -> ContenderPlan {
        let mut plan = ContenderPlan::of_set(&self.root, directories);
        plan.layout = self.layout;
        plan.acl = self.acl;
        plan
    }

    /// Gives up a lock, or the wait for it. In a child that a callback has forked, it does nothing:
    /// the connection is the parent's.
    fn abandon(&self, token: Token) {
        self.post(LockMessage::GiveUp(token));
    }

    fn post(&self, message: LockMessage) {
        if !self.owner_process.is_known_forked() {
            self.net.post(message);
        }
    }

    /// How much of a session's validity is left at any time while the ensemble answers.
    fn longest_validity(&self) -> Duration {
        self.session_timeout() * 3 / 7
    }

    /// The timeout of the session: what was granted, or what is asked for.
    fn session_timeout(&self) -> Duration {
        self.net.granted_timeout().unwrap_or(self.session_timeout)
    }

    /// How long a request may take now.
    fn patience(&self) -> Duration {
        if self.net.is_answering() {
            self.rules.node_timeout
        } else {
            self.rules.node_timeout.max(self.rules.connect_timeout)
        }
    }

    /// Why there was no answer: what each server did last.
    fn reports(&self) -> Vec<NodeReport> {
        let mut reports = self.net.reports();
        for report in &mut reports {
            if report.answer == NodeAnswer::Answered {
                report.answer = NodeAnswer::Failed(NodeError::TimedOut(Phase::Answering));
            }
        }
        reports
    }

    /// Asks about one lock. The ensemble has agreed on the answer.
    fn ask_about(&self, order: OrderKind, began: Time) -> Vote {
        let until = began.after(self.rules.node_timeout);
        vote_of(self.net.submit(order, until).as_ref())
    }

    /// The same for a call that was started.
    async fn ask_about_started(&self, driven: &Driven, order: OrderKind, began: Time) -> Vote {
        let until = began.after(self.rules.node_timeout);
        let outcome = outcome(&self.net, driven, order, until, || false).await;
        vote_of(outcome.as_ref())
    }

    /// What follows for a lock from what the ensemble has said about its extension.
    fn extended(&self, extension: Extension, vote: Vote) -> (Extended, Vec<NodeReport>) {
        let Extension {
            mut held,
            ttl,
            began,
            ..
        } = extension;
        // After the answer: an extension must not look as if it came in time.
        let is_past = clock::now() >= held.valid_until;
        held.ttl_longest = held.ttl_longest.max(ttl);
        match vote {
            Vote::Granted if !is_past => {
                held.ttl = ttl;
                let valid_until = began.after(self.rules.drift.validity(ttl));
                held.valid_until = held.valid_until.max(valid_until);
                (Extended::Confirmed(held), Vec::new())
            }
            Vote::Failed if !is_past => (Extended::Unanswered(held), self.reports()),
            _ => (Extended::Lost(held), self.reports()),
        }
    }

    /// What has become of a lock about whose release the ensemble has said this.
    fn released(&self, release: &Release<'_>, vote: Vote) -> Result<Released, NoQuorum> {
        let held = release.held;
        if let Some(end) = stays_until(release) {
            self.net.post(LockMessage::LetExpire(held.token, end));
        }
        match vote {
            _ if release.began >= held.valid_until => Ok(Released::TooLate),
            Vote::Granted => Ok(Released::InTime),
            Vote::Refused => Ok(Released::TooLate),
            Vote::Failed => Err(NoQuorum::new(self.reports())),
        }
    }
}

/// Is the lock held that is extended? Then until its new end at least.
fn check(extension: &Extension) -> OrderKind {
    let end = extension.began.after(extension.ttl.as_duration());
    OrderKind::Check(extension.held.token, end)
}

/// Was the lock held that is released? Without it, if it is not to stay taken for a time.
fn removal(release: &Release<'_>) -> OrderKind {
    let token = release.held.token;
    match stays_until(release) {
        None => OrderKind::Release(token),
        Some(end) => OrderKind::Check(token, end),
    }
}

/// If given, the lock stays taken until then.
fn stays_until(release: &Release<'_>) -> Option<Time> {
    let keep_for = release.keep_for?;
    Some(release.began.after(keep_for.as_duration()))
}

/// What the ensemble has agreed on. Without an outcome, nothing.
fn vote_of(outcome: Option<&Outcome>) -> Vote {
    match outcome {
        Some(Outcome::Voted(vote)) => *vote,
        _ => Vote::Failed,
    }
}

impl Backend for EnsembleBackend {
    fn acquire(
        &self,
        spec: &LockSpec<'_>,
        start: &mut Start,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<HeldLock>, Error> {
        let caller = Blocking {
            net: &*self.net,
            call: &spec.call,
        };
        let acquire = ZooKeeperAcquire::new(self, spec, caller);
        at_once(pin!(acquire.run(
            start.held.take(),
            start.not_before,
            recorder
        )))
    }

    fn start<'a>(
        &'a self,
        driven: &'a Driven,
        spec: &'a LockSpec<'_>,
        start: &'a mut Start,
        recorder: Option<&'a mut EventRecorder<'_>>,
    ) -> Work<'a, Result<Option<HeldLock>, Error>> {
        Box::pin(async move {
            let caller = Started {
                net: &*self.net,
                driven,
                call: &spec.call,
            };
            let acquire = ZooKeeperAcquire::new(self, spec, caller);
            acquire
                .run(start.held.take(), start.not_before, recorder)
                .await
        })
    }

    fn driver(&self) -> &Driver {
        &self.driver
    }

    fn extend(&self, extension: Extension) -> (Extended, Vec<NodeReport>) {
        let vote = self.ask_about(check(&extension), extension.began);
        self.extended(extension, vote)
    }

    fn start_extension<'a>(
        &'a self,
        driven: &'a Driven,
        held: &'a Arc<GuardedLock>,
        ttl: Ttl,
    ) -> Work<'a, StartedExtension> {
        Box::pin(async move {
            // This is the call's first poll, by which its guard is borrowed: the order is given
            // before that can be given up.
            let extension = held.extension(clock::now(), ttl)?;
            let asked = self.ask_about_started(driven, check(&extension), extension.began);
            let vote = asked.await;
            Ok(self.extended(extension, vote))
        })
    }

    fn release(&self, release: Release<'_>) -> Result<Released, NoQuorum> {
        let vote = self.ask_about(removal(&release), release.began);
        self.released(&release, vote)
    }

    fn start_release<'a>(
        &'a self,
        driven: &'a Driven,
        release: Release<'a>,
    ) -> Work<'a, Result<Released, NoQuorum>> {
        Box::pin(async move {
            let asked = self.ask_about_started(driven, removal(&release), release.began);
            let vote = asked.await;
            self.released(&release, vote)
        })
    }

    fn give_up(&self, held: &HeldLock, keep_for: Option<Ttl>) {
        let end = keep_for.map(|keep_for| clock::now().after(keep_for.as_duration()));
        self.post(match end {
            None => LockMessage::GiveUp(held.token),
            Some(end) => LockMessage::LetExpire(held.token, end),
        });
    }

    fn watch(&self, held: &Arc<GuardedLock>, head: Option<&QueueHead>) {
        let token = held.granted().token;
        let head = head.map(|head| head.handle().clone());
        let held = Arc::downgrade(held);
        let notifier = Weak::clone(&self.notifier);
        let on_loss = Box::new(move |loss| {
            // The next waiter of this client need not wait for the guard to be dropped.
            if let Some(head) = &head {
                head.set_key_expiry(clock::now());
            }
            let Some(held) = held.upgrade() else { return };
            let reason = match loss {
                Loss::Gone => LossReason::Gone,
                Loss::Expired => LossReason::Expired,
            };
            held.end_now(clock::now(), reason);
            if let Some(notifier) = notifier.upgrade() {
                notifier.watch_for_loss(held);
            }
        });
        self.net.post(LockMessage::Watch(token, on_loss));
    }

    fn session_limits(&self) -> Option<SessionLimits> {
        let validity = self.longest_validity();
        let keep_for = self.session_timeout() / 2;
        Some(SessionLimits { validity, keep_for })
    }

    fn has_place_for(&self, key: &[u8]) -> bool {
        self.directory(key).is_ok()
    }

    fn end_waits(&self, waiter: Option<Token>) {
        self.net.end_waits(waiter);
    }

    fn inspect(&self, key: Arc<[u8]>) -> Result<Inspection, Error> {
        let (url, view) = self.look(&key).map_err(Error::NoQuorum)?;
        Ok(Inspection::of_ensemble(key, url, &view))
    }

    fn operator(&self) -> &dyn Operator {
        self
    }
}

/// Random bytes for the name of a znode.
fn random() -> Option<[u8; 16]> {
    let entropy = draw()?;
    entropy.token.as_bytes()[..16].try_into().ok()
}
