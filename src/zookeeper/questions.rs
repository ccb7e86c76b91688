//! What is asked of an ensemble that changes no lock of this client: who holds a lock and who waits
//! for it, which locks there are, and the removal of what others hold.

use super::EnsembleBackend;
use crate::backend::{KeyListing, Operator};
use crate::clock::{self, Time, WallTime, wall_time};
use crate::config::is_reserved;
use crate::error::{Error, NoQuorum};
use crate::inspect::{Holder, Inspection, Label, LockState, NodeView, OwnThreads};
use crate::inspect::{QueuedWaiter, Seen};
use crate::net::{OrderKind, refusal};
use crate::node::command::KEY_MAX;
use crate::node::{NodeAnswer, NodeError, NodeStatus, Standards};
use redlatch_zookeeper::lock_table::Outcome;
use redlatch_zookeeper::message::{EnsembleError, EnsembleReply, EnsembleRequest};
use redlatch_zookeeper::path;
use redlatch_zookeeper::queue_listing::{ListedClient, LockView, QueueListing};
use redlatch_zookeeper::session::{EnsembleAnswer, Failure};
use std::sync::Arc;

/// How often a lock is looked at whose holder goes meanwhile.
const LOOKS: u32 = 3;

/// The answers of one server.
struct Answers {
    server: usize,
    answers: Vec<EnsembleAnswer>,
}

/// A directory that may be a lock's.
#[derive(Debug)]
struct FoundDirectory {
    /// The lock's key.
    key: Vec<u8>,
    path: Arc<str>,
}

impl EnsembleBackend {
    /// Who holds the lock with this key, and who waits for it; with the URL of the server that says
    /// so.
    ///
    /// # Errors
    ///
    /// No server answered, or it refused.
    pub(super) fn look(&self, key: &[u8]) -> Result<(Arc<str>, LockView), NoQuorum> {
        let until = self.deadline();
        let directory = self
            .directory(key)
            .expect("the key was checked when the request was made");
        let mut looks = 1;
        loop {
            let asked = self.ask(QueueListing::requests(&directory), until)?;
            let listing = QueueListing::of(self.layout, &directory, &asked.answers)
                .map_err(|failure| self.no_answer(asked.server, &failure))?;
            let Answers { server, answers } = match listing.details() {
                details if details.is_empty() => Answers {
                    answers: Vec::new(),
                    ..asked
                },
                details => self.ask(details, until)?,
            };
            let view = listing
                .view(&answers)
                .map_err(|failure| self.no_answer(server, &failure))?;
            if !view.has_changed || looks == LOOKS {
                return Ok((self.url(server), view));
            }
            looks += 1;
        }
    }

    /// Deletes the znodes with these paths, if they are those of holders of the lock with this key.
    /// Returns whether any was there.
    ///
    /// # Errors
    ///
    /// No server answered, or it refused. Some of them may be deleted, or all.
    fn remove(&self, key: &[u8], paths: &[Vec<u8>]) -> Result<bool, NoQuorum> {
        let Ok(directory) = self.directory(key) else {
            return Ok(false);
        };
        let folders = [Arc::clone(&directory.path), directory.shares()];
        let mut deletes = Vec::new();
        for path in paths {
            let Ok(path) = std::str::from_utf8(path) else {
                continue;
            };
            let folder = path.rsplit_once('/').map(|(folder, _)| folder);
            if folders.iter().any(|known| folder == Some(known)) {
                deletes.push(EnsembleRequest::Delete(Arc::from(path)));
            }
        }
        if deletes.is_empty() {
            return Ok(false);
        }
        let Answers { server, answers } = self.ask(deletes, self.deadline())?;
        let mut was_there = false;
        for answer in &answers {
            match answer.reply() {
                Ok(_) => was_there = true,
                Err(Failure::Server(EnsembleError::NoNode)) => {}
                Err(failure) => return Err(self.no_answer(server, failure)),
            }
        }
        Ok(was_there)
    }

    /// The directories that may be those of locks, in no order. Each lock may have two.
    ///
    /// # Errors
    ///
    /// No server answered, or it refused.
    fn directories(&self) -> Result<Vec<FoundDirectory>, NoQuorum> {
        let root: Arc<str> = self.root.path().into();
        let list = EnsembleRequest::GetChildren {
            path: Arc::clone(&root),
            watch: false,
        };
        let asked = self.ask(vec![EnsembleRequest::Sync(root), list], self.deadline())?;
        let names = match asked.answers.last().map(EnsembleAnswer::reply) {
            Some(Ok(EnsembleReply::Children { names, .. })) => names,
            Some(Err(Failure::Server(EnsembleError::NoNode))) => return Ok(Vec::new()),
            Some(Err(failure)) => return Err(self.no_answer(asked.server, failure)),
            _ => unreachable!("a list is answered by a list"),
        };
        Ok(names
            .iter()
            .filter_map(|element| self.found(element))
            .collect())
    }

    /// The directory that is this element of the root, if it may be a lock's.
    fn found(&self, element: &[u8]) -> Option<FoundDirectory> {
        let key = path::lock_of(element)?;
        let path = self.root.child(std::str::from_utf8(element).ok()?);
        Some(FoundDirectory { key, path })
    }

    /// Those of these directories in which there is somebody.
    ///
    /// # Errors
    ///
    /// No server answered, or it refused.
    fn inhabited(&self, directories: Vec<FoundDirectory>) -> Result<Vec<FoundDirectory>, NoQuorum> {
        if directories.is_empty() {
            return Ok(directories);
        }
        let requests = directories.iter().map(|it| EnsembleRequest::Exists {
            path: Arc::clone(&it.path),
            watch: false,
        });
        let Answers { server, answers } = self.ask(requests.collect(), self.deadline())?;
        let mut found = Vec::new();
        for (directory, answer) in directories.into_iter().zip(&answers) {
            match answer.reply() {
                Ok(EnsembleReply::Found(stat)) if stat.children > 0 => found.push(directory),
                Ok(_) | Err(Failure::Server(EnsembleError::NoNode)) => {}
                Err(failure) => return Err(self.no_answer(server, failure)),
            }
        }
        Ok(found)
    }

    fn deadline(&self) -> Time {
        clock::now().after(self.patience())
    }

    /// Sends requests, and returns the answers. If they change nothing and the connection is lost,
    /// the table asks another server.
    fn ask(&self, requests: Vec<EnsembleRequest>, until: Time) -> Result<Answers, NoQuorum> {
        match self.net.submit(OrderKind::Ask(requests), until) {
            Some(Outcome::Answered { server, answers }) => {
                let all: Option<Vec<EnsembleAnswer>> = answers.into_iter().collect();
                let answers = all.ok_or_else(|| NoQuorum::new(self.reports()))?;
                Ok(Answers { server, answers })
            }
            _ => Err(NoQuorum::new(self.reports())),
        }
    }

    fn url(&self, server: usize) -> Arc<str> {
        let reports = self.net.reports();
        Arc::clone(&reports[server].url)
    }

    /// Why a request was not carried out.
    fn no_answer(&self, server: usize, failure: &Failure) -> NoQuorum {
        let mut reports = self.reports();
        if let Failure::Server(error) = failure {
            reports[server].answer = NodeAnswer::Failed(refusal(*error));
        }
        NoQuorum::new(reports)
    }
}

impl Operator for EnsembleBackend {
    fn force_release(&self, seen: &Seen) -> Result<bool, Error> {
        self.remove(&seen.key, &seen.locks).map_err(Error::NoQuorum)
    }

    fn list(&self, pattern: Arc<[u8]>, _: bool) -> Box<dyn KeyListing + '_> {
        Box::new(LockDirectories::new(self, pattern))
    }

    fn statuses(&self) -> Vec<NodeStatus> {
        self.net.examine(self.deadline())
    }

    fn unreachable(&self, error: &NodeError) -> Vec<NodeStatus> {
        self.net.unreachable(error)
    }

    /// Of all that the warnings depend on, ensembles have the machine alone.
    fn standards(&self) -> Standards {
        Standards {
            restart_guard: true,
            allowed: self.session_timeout,
        }
    }
}

/// In how many directories a server is asked at a time whether somebody is there.
const BATCH: usize = 200;

/// The locks that somebody holds or waits for, whose keys match a pattern. The queue of a lock and
/// its shares are two directories.
struct LockDirectories<'a> {
    ensemble: &'a EnsembleBackend,
    pattern: Arc<[u8]>,
    /// Those that were not looked at yet. `None` before they are listed.
    directories: Option<Vec<FoundDirectory>>,
}

impl<'a> LockDirectories<'a> {
    fn new(ensemble: &'a EnsembleBackend, pattern: Arc<[u8]>) -> Self {
        Self {
            ensemble,
            pattern,
            directories: None,
        }
    }

    /// Does it match, and can it be the lock of a client?
    fn is_listed(&self, key: &[u8]) -> bool {
        redlatch_protocol::glob::is_listed(&self.pattern, key)
            && key.len() <= KEY_MAX
            && !is_reserved(key)
            && self.ensemble.directory(key).is_ok()
    }
}

impl KeyListing for LockDirectories<'_> {
    fn next_keys(&mut self) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let Some(directories) = &mut self.directories else {
            let mut all = self.ensemble.directories().map_err(Error::NoQuorum)?;
            all.retain(|directory| self.is_listed(&directory.key));
            self.directories = Some(all);
            return Ok(Some(Vec::new()));
        };
        let batch = directories.split_off(directories.len().saturating_sub(BATCH));
        if batch.is_empty() {
            return Ok(None);
        }
        let inhabited = self.ensemble.inhabited(batch).map_err(Error::NoQuorum)?;
        Ok(Some(
            inhabited
                .into_iter()
                .map(|directory| directory.key)
                .collect(),
        ))
    }
}

// What the server with this URL has shown, as an inspection.

impl Inspection {
    /// What the server with this URL has shown.
    pub(crate) fn of_ensemble(key: Arc<[u8]>, url: Arc<str>, view: &LockView) -> Self {
        let locks = view.holders.iter().map(path_of).collect();
        let held = view.holders.first().filter(|_| !view.is_shared);
        let seen = Seen {
            key,
            locks,
            others: Vec::new(),
            held: held.map(path_of),
        };
        let holders: Vec<Holder> = view.holders.iter().map(holder).collect();
        let state = match &*holders {
            [] if view.has_changed => LockState::Undecided,
            [] => LockState::Free,
            holders if view.is_shared => LockState::Shared(holders.to_vec()),
            [holder, ..] => LockState::Held(holder.clone()),
        };
        let (shares, whole) = if view.is_shared {
            (holders, None)
        } else {
            (Vec::new(), Some(holders))
        };
        let node = NodeView {
            url,
            holder: Ok(whole.and_then(|holders| holders.into_iter().next())),
            shares,
            is_reserved: false,
            not_a_lock: None,
            quarantine: None,
            former_reign: None,
            agrees: matches!(state, LockState::Held(_) | LockState::Shared(_)),
        };
        Self {
            state,
            nodes: vec![node],
            quarantine: None,
            holder_count: view.holder_count,
            waiter_count: view.waiter_count,
            waiters: view.waiters.iter().map(waiter).collect(),
            own_threads: OwnThreads::default(),
            seen,
        }
    }
}

fn path_of(member: &ListedClient) -> Vec<u8> {
    member.path.as_bytes().to_vec()
}

fn holder(member: &ListedClient) -> Holder {
    let since = Some(since(member));
    let slot = member.slot;
    let owner = label(member);
    Holder {
        slot,
        owner,
        remaining: None,
        since,
        other_program: None,
    }
}

fn waiter(member: &ListedClient) -> QueuedWaiter {
    let since = since(member);
    QueuedWaiter {
        owner: label(member),
        is_for_share: false,
        since,
        nodes: 1,
    }
}

fn label(member: &ListedClient) -> Option<Label> {
    Some(&member.owner)
        .filter(|owner| !owner.is_empty())
        .map(|owner| Label(owner.to_vec()))
}

fn since(member: &ListedClient) -> WallTime {
    wall_time(member.created_at_ms.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(path: &str, owner: &str, slot: Option<u32>) -> ListedClient {
        let path = Arc::from(path);
        let owner = Arc::from(owner.as_bytes());
        ListedClient {
            path,
            owner,
            created_at_ms: 1_500,
            slot,
        }
    }

    fn inspected(
        holders: Vec<ListedClient>,
        waiters: Vec<ListedClient>,
        is_shared: bool,
        has_changed: bool,
    ) -> Inspection {
        let holder_count = holders.len();
        let waiter_count = waiters.len();
        let view = LockView {
            holders,
            is_shared,
            holder_count,
            waiters,
            waiter_count,
            has_changed,
        };
        Inspection::of_ensemble(Arc::from(*b"key"), "zk://a:2181".into(), &view)
    }

    #[test]
    fn the_first_holds_the_lock_and_the_others_wait() {
        let waiters = vec![member("/b/2", "w", None), member("/b/3", "", None)];
        let seen = inspected(vec![member("/b/1", "h", None)], waiters, false, false);
        let LockState::Held(holder) = &seen.state else {
            panic!("{seen:?}")
        };
        assert_eq!(
            holder.owner().map(|owner| owner.to_string()).as_deref(),
            Some("h")
        );
        assert_eq!(
            (holder.remaining, holder.since),
            (None, Some(wall_time(1_500_000)))
        );
        assert_eq!(seen.nodes[0].holder, Ok(Some(holder.clone())));
        assert!(seen.nodes[0].agrees && seen.nodes[0].shares.is_empty());
        assert_eq!(
            (seen.holder_count, seen.waiter_count, seen.waiters.len()),
            (1, 2, 2)
        );
        assert_eq!(seen.waiters[0].since, wall_time(1_500_000));
        assert_eq!(seen.waiters[1].owner(), None);
        assert_eq!(&*seen.seen.locks, [b"/b/1".to_vec()]);
    }

    #[test]
    fn shares_have_many_holders() {
        let holders = vec![member("/s/r1", "r", None), member("/s/p2", "p", Some(2))];
        let seen = inspected(holders, vec![], true, false);
        let LockState::Shared(holders) = &seen.state else {
            panic!("{seen:?}")
        };
        assert_eq!(
            holders.iter().map(|it| it.slot).collect::<Vec<_>>(),
            [None, Some(2)]
        );
        assert_eq!(
            (&seen.nodes[0].shares, &seen.nodes[0].holder),
            (holders, &Ok(None))
        );
        assert_eq!(seen.seen.locks.len(), 2);
    }

    #[test]
    fn nobody_is_free_unless_somebody_has_just_gone() {
        assert_eq!(
            inspected(vec![], vec![], false, false).state,
            LockState::Free
        );
        assert_eq!(
            inspected(vec![], vec![], true, true).state,
            LockState::Undecided
        );
        let waiters = vec![member("/b/2", "w", None)];
        assert_eq!(
            inspected(vec![], waiters, false, true).state,
            LockState::Undecided
        );
    }
}
