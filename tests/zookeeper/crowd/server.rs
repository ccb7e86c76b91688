//! The server of the model: what it replies, as bytes, and whom it tells of changes.

use super::Mistake;
use super::tree::{Change, NO_NODE, Tree};
use crate::random::Random;
use redlatch_zookeeper::jute::{FrameWriter, frame};
use redlatch_zookeeper::message::{EnsembleRequest, MultiOperation};
use std::collections::BTreeSet;
use std::slice;

pub(super) struct Server {
    pub(super) mistake: Mistake,
    pub(super) tree: Tree,
    /// Who watches which path, and whether its children.
    watches: Vec<(usize, String, bool)>,
    changes: Vec<(usize, String)>,
    /// What was removed by force.
    removed: BTreeSet<String>,
}

/// What the server says to a request: an error and a body.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) zxid: i64,
    pub(super) error: i32,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) const NO_NODE: Self = Self {
        zxid: 0,
        error: NO_NODE,
        body: Vec::new(),
    };
}

impl Server {
    pub(super) fn new(random: &mut Random, mistake: Mistake) -> Self {
        let tree = Tree::new(random);
        let watches = Vec::new();
        let changes = Vec::new();
        let removed = BTreeSet::new();
        Self {
            mistake,
            tree,
            watches,
            changes,
            removed,
        }
    }

    /// The watches that have ended: whose, and of which path.
    pub(super) fn take_changes(&mut self) -> Vec<(usize, String)> {
        self.end_watches();
        std::mem::take(&mut self.changes)
    }

    fn end_watches(&mut self) {
        for (path, change) in self.tree.take_changes() {
            let ends = |(_, watched, children): &(usize, String, bool)| {
                *watched == path && (*children || change == Change::Deleted)
            };
            let (ended, kept) = std::mem::take(&mut self.watches)
                .into_iter()
                .partition::<Vec<_>, _>(ends);
            self.watches = kept;
            self.changes
                .extend(ended.into_iter().map(|(client, path, _)| (client, path)));
        }
    }

    /// Somebody removes a znode by force. Returns its path.
    pub(super) fn remove_any(&mut self, random: &mut Random) -> Option<String> {
        let mut paths = self.tree.paths();
        let nth = random.below(paths.len().max(1) as u64) as usize;
        let path = (nth < paths.len()).then(|| paths.swap_remove(nth))?;
        self.tree.delete(&path).expect("it is there");
        self.removed.insert(path.clone());
        Some(path)
    }

    pub(super) fn was_removed(&self, path: &str) -> bool {
        self.removed.contains(path)
    }

    pub(super) fn end_session(&mut self, session: i64) {
        for path in self.tree.of_session(session) {
            self.tree.delete(&path).expect("it is there");
        }
    }

    pub(super) fn forget_watches(&mut self, client: usize) {
        self.watches.retain(|(other, ..)| *other != client);
    }

    pub(super) fn execute(
        &mut self,
        client: usize,
        session: i64,
        request: &EnsembleRequest,
    ) -> Answer {
        let mut body = Vec::new();
        let mut writer = FrameWriter::begin(&mut body);
        let error = self.carry_out(client, session, request, &mut writer);
        writer.finish().expect("it is short");
        // A watch that is set is not ended by what happened before.
        self.end_watches();
        let (bytes, _) = frame(&body).expect("a frame").expect("all of it");
        let body = if error == 0 { bytes.to_vec() } else { vec![] };
        Answer {
            zxid: self.tree.zxid,
            error,
            body,
        }
    }

    fn carry_out(
        &mut self,
        client: usize,
        session: i64,
        request: &EnsembleRequest,
        writer: &mut FrameWriter<'_>,
    ) -> i32 {
        match request {
            EnsembleRequest::Create(create) => {
                let operation = MultiOperation::Create(create.clone());
                match self.tree.transact(session, slice::from_ref(&operation)) {
                    Ok(created) => {
                        writer.text(created[0].as_ref().expect("it was created"));
                        write_stat(writer, self.tree.zxid);
                        0
                    }
                    Err((_, error)) => error,
                }
            }
            EnsembleRequest::Delete(path) => {
                self.tree.zxid += 1;
                let path = match self.mistake {
                    Mistake::PermitsHaveNoId => self.same_number(path),
                    _ => path.to_string(),
                };
                self.tree.delete(&path).err().unwrap_or(0)
            }
            EnsembleRequest::Multi(operations) => {
                let result = self.tree.transact(session, operations);
                write_results(writer, operations, &result);
                0
            }
            EnsembleRequest::Sync(path) => {
                writer.text(path);
                0
            }
            EnsembleRequest::GetChildren { path, watch } => {
                let Some(names) = self.tree.children(path) else {
                    return NO_NODE;
                };
                writer.int(i32::try_from(names.len()).expect("they are few"));
                for name in names {
                    writer.text(&name);
                }
                write_stat(writer, 0);
                if *watch && self.mistake != Mistake::NoWatchesOfShares {
                    self.watches.push((client, path.to_string(), true));
                }
                0
            }
            EnsembleRequest::Exists { path, .. } | EnsembleRequest::GetData { path, .. } => {
                let Some(znode) = self.tree.znode(path) else {
                    return NO_NODE;
                };
                if let EnsembleRequest::GetData { watch: true, .. } = request {
                    writer.buffer(b"owner");
                    if self.mistake != Mistake::NoWatches {
                        self.watches.push((client, path.to_string(), false));
                    }
                }
                write_stat(writer, znode.created_by);
                0
            }
            other => panic!("{other:?}"),
        }
    }

    /// Of a permit, the path of any with its number.
    fn same_number(&self, path: &str) -> String {
        let Some((number, _)) = path.split_once('-').filter(|_| path.contains("~shares/p")) else {
            return path.to_owned();
        };
        let number = format!("{number}-");
        let found = self
            .tree
            .paths()
            .into_iter()
            .find(|other| other.starts_with(&number));
        found.unwrap_or_else(|| path.to_owned())
    }
}

fn write_results(
    writer: &mut FrameWriter<'_>,
    operations: &[MultiOperation],
    result: &Result<Vec<Option<String>>, (usize, i32)>,
) {
    for place in 0..operations.len() {
        match result {
            Ok(created) => match &created[place] {
                Some(path) => writer.int(1).boolean(false).int(0).text(path),
                None => writer.int(2).boolean(false).int(0),
            },
            Err((failed, error)) => {
                let error = if place < *failed {
                    0
                } else if place == *failed {
                    *error
                } else {
                    -2
                };
                writer.int(-1).boolean(false).int(error).int(error)
            }
        };
    }
    writer.int(-1).boolean(true).int(-1);
}

fn write_stat(writer: &mut FrameWriter<'_>, created_by: i64) {
    writer.long(created_by);
    for _ in 0..15 {
        writer.int(0);
    }
}
