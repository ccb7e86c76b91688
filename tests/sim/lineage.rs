//! Where the data of a server of a replicated group comes from, as it says itself: which reign it
//! is a part of, and of which one it was before, with the offset from which on it was not.

use crate::clock::SECONDS;
use redlatch_protocol::node::history::History;
use std::time::Duration;

/// For how long the servers of a history have been up when it begins.
const BEFORE: Duration = Duration::from_secs(86_400);

#[derive(Clone, Debug, Default)]
pub(crate) struct Lineage {
    run_id: String,
    /// When it was started, if that was not before the history.
    started: Option<u64>,
    is_up: bool,
    is_master: bool,
    id: String,
    former: Option<(String, u64)>,
}

impl Lineage {
    /// A server that begins with this run, in a reign of its own or of a group.
    pub(crate) fn first(run_id: &str, id: &str, is_master: bool) -> Self {
        Self {
            run_id: run_id.to_owned(),
            started: None,
            is_up: true,
            is_master,
            id: id.to_owned(),
            former: None,
        }
    }

    /// It is started again: whatever data it has, its history begins anew.
    pub(crate) fn restart(&mut self, now: u64, run_id: &str, is_master: bool) {
        *self = Self {
            started: Some(now),
            ..Self::first(run_id, run_id, is_master)
        };
    }

    pub(crate) fn crash(&mut self) {
        self.is_up = false;
    }

    /// It is the master in a reign of this name, and had come so far in the one before. Returns the
    /// name of that.
    pub(crate) fn promote(&mut self, id: &str, offset: u64) -> String {
        let before = std::mem::replace(&mut self.id, id.to_owned());
        self.former = Some((before.clone(), offset + 1));
        self.is_master = true;
        before
    }

    pub(crate) fn demote(&mut self) {
        self.is_master = false;
    }

    /// It follows this master from now on, having come so far before: it is continued if its data
    /// is a part of the master's history, and is copied anew otherwise.
    pub(crate) fn follow(&mut self, master: &Self, offset: u64) {
        if self.id == master.id {
            return;
        }
        let is_continued = master
            .former
            .as_ref()
            .is_some_and(|(id, fork)| *id == self.id && offset < *fork);
        let before = std::mem::replace(&mut self.id, master.id.clone());
        self.former = is_continued.then_some((before, offset + 1));
    }

    /// What it says when it is asked now, if it runs.
    pub(crate) fn history(&self, now: u64) -> Option<History> {
        let uptime = match self.started {
            None => BEFORE,
            Some(started) => Duration::from_secs((now - started) / SECONDS),
        };
        self.is_up.then(|| History {
            run_id: self.run_id.clone(),
            uptime,
            is_master: self.is_master,
            id: self.id.clone(),
            former: self.former.clone(),
        })
    }
}
