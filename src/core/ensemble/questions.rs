//! What is asked of an ensemble that changes no lock of this client: who holds a lock and who waits
//! for it, which locks there are, and the removal of what others hold.

use super::Ensemble;
use crate::clock::{self, Time};
use crate::error::NoQuorum;
use crate::net::{OrderKind, refusal};
use crate::node::{NodeAnswer, NodeError, NodeStatus, Standards, judge};
use crate::zookeeper::lock_table::Outcome;
use crate::zookeeper::message::{Reply, Request, ServerError};
use crate::zookeeper::path;
use crate::zookeeper::session::{Answer, Failure};
use crate::zookeeper::survey::{LockView, Survey};
use std::sync::Arc;

/// How often a lock is looked at whose holder goes meanwhile.
const LOOKS: u32 = 3;

/// The answers of one server.
struct Answers {
    server: usize,
    answers: Vec<Answer>,
}

/// A directory that may be a lock's.
#[derive(Debug)]
pub(crate) struct FoundDirectory {
    /// The lock's key.
    pub(crate) key: Vec<u8>,
    path: Arc<str>,
}

impl Ensemble {
    /// Who holds the lock with this key, and who waits for it; with the URL of the server that says
    /// so.
    ///
    /// # Errors
    ///
    /// No server answered, or it refused.
    pub(crate) fn look(&self, key: &[u8]) -> Result<(Arc<str>, LockView), NoQuorum> {
        let until = self.deadline();
        let directory = self.directory(key);
        let directory = directory.expect("the key was checked when the request was made");
        let mut looks = 1;
        loop {
            let asked = self.ask(Survey::requests(&directory), until)?;
            let survey = Survey::of(self.layout, &directory, &asked.answers)
                .map_err(|failure| self.no_answer(asked.server, &failure))?;
            let Answers { server, answers } = match survey.details() {
                details if details.is_empty() => Answers { answers: Vec::new(), ..asked },
                details => self.ask(details, until)?,
            };
            let view = survey.view(&answers).map_err(|failure| self.no_answer(server, &failure))?;
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
    pub(crate) fn remove(&self, key: &[u8], paths: &[Vec<u8>]) -> Result<bool, NoQuorum> {
        let Ok(directory) = self.directory(key) else { return Ok(false) };
        let folders = [Arc::clone(&directory.path), directory.shares()];
        let paths = paths.iter().filter_map(|path| std::str::from_utf8(path).ok());
        let is_of_lock = |path: &&str| {
            let folder = path.rsplit_once('/').map(|(folder, _)| folder);
            folders.iter().any(|known| folder == Some(known))
        };
        let deletes: Vec<_> =
            paths.filter(is_of_lock).map(|path| Request::Delete(Arc::from(path))).collect();
        if deletes.is_empty() {
            return Ok(false);
        }
        let Answers { server, answers } = self.ask(deletes, self.deadline())?;
        let mut was_there = false;
        for answer in &answers {
            match answer.reply() {
                Ok(_) => was_there = true,
                Err(Failure::Server(ServerError::NoNode)) => {}
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
    pub(crate) fn directories(&self) -> Result<Vec<FoundDirectory>, NoQuorum> {
        let root: Arc<str> = self.root.path().into();
        let list = Request::GetChildren { path: Arc::clone(&root), watch: false };
        let asked = self.ask(vec![Request::Sync(root), list], self.deadline())?;
        let names = match asked.answers.last().map(Answer::reply) {
            Some(Ok(Reply::Children { names, .. })) => names,
            Some(Err(Failure::Server(ServerError::NoNode))) => return Ok(Vec::new()),
            Some(Err(failure)) => return Err(self.no_answer(asked.server, failure)),
            _ => unreachable!("a list is answered by a list"),
        };
        let directory = |element: &[u8]| {
            let key = path::lock_of(element)?;
            let path = self.root.child(std::str::from_utf8(element).ok()?);
            Some(FoundDirectory { key, path })
        };
        Ok(names.iter().filter_map(directory).collect())
    }

    /// Those of these directories in which there is somebody.
    ///
    /// # Errors
    ///
    /// No server answered, or it refused.
    pub(crate) fn inhabited(
        &self,
        directories: Vec<FoundDirectory>,
    ) -> Result<Vec<FoundDirectory>, NoQuorum> {
        if directories.is_empty() {
            return Ok(directories);
        }
        let exists =
            |it: &FoundDirectory| Request::Exists { path: Arc::clone(&it.path), watch: false };
        let requests: Vec<_> = directories.iter().map(exists).collect();
        let Answers { server, answers } = self.ask(requests, self.deadline())?;
        let mut found = Vec::new();
        for (directory, answer) in directories.into_iter().zip(&answers) {
            match answer.reply() {
                Ok(Reply::Found(stat)) if stat.children > 0 => found.push(directory),
                Ok(_) | Err(Failure::Server(ServerError::NoNode)) => {}
                Err(failure) => return Err(self.no_answer(server, failure)),
            }
        }
        Ok(found)
    }

    /// The status of each server, asked over a connection of its own.
    pub(crate) fn statuses(&self) -> Vec<NodeStatus> {
        let mut statuses = self.net.examine(self.deadline());
        // Of all that the warnings depend on, ensembles have the machine alone.
        let standards = Standards { restart_guard: true, allowed: self.session_timeout };
        judge(&mut statuses, standards, clock::now(), clock::wall_micros());
        statuses
    }

    /// The statuses of the servers, none of which can be asked.
    pub(crate) fn unreachable(&self, error: &NodeError) -> Vec<NodeStatus> {
        self.net.unreachable(error)
    }

    fn deadline(&self) -> Time {
        clock::now().after(self.patience())
    }

    /// Sends requests, and returns the answers. If they change nothing and the connection is lost,
    /// the table asks another server.
    fn ask(&self, requests: Vec<Request>, until: Time) -> Result<Answers, NoQuorum> {
        match self.net.submit(OrderKind::Ask(requests), until) {
            Some(Outcome::Answered { server, answers }) => {
                let answers: Option<Vec<Answer>> = answers.into_iter().collect();
                let answers = answers.map(|answers| Answers { server, answers });
                answers.ok_or_else(|| NoQuorum::new(self.reports()))
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
