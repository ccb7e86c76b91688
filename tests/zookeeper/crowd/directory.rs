//! The lock's directory on a server, and the replies as bytes.

use super::Mistake;
use crate::random::Random;
use redlatch::internal::zookeeper::jute::{FrameWriter, frame};
use redlatch::internal::zookeeper::message::{CreateKind, Operation, Request};
use std::collections::BTreeMap;

pub(super) const DIRECTORY: &str = "/locks/a";

const NO_NODE: i32 = -101;
const NODE_EXISTS: i32 = -110;
const NOT_EMPTY: i32 = -111;

/// A server with the paths above the directory, and with it or without.
pub(super) struct Server {
    pub(super) mistake: Mistake,
    zxid: i64,
    /// The number of the next contender, if the directory is there.
    counter: Option<i64>,
    /// The counter of a directory that is made anew.
    first: i64,
    znodes: BTreeMap<String, Znode>,
    watches: Vec<(usize, String)>,
    changes: Vec<(usize, String)>,
}

struct Znode {
    created_by: i64,
    session: i64,
}

/// What the server says to a request: an error and a body.
pub(super) struct Answer {
    pub(super) zxid: i64,
    pub(super) error: i32,
    pub(super) body: Vec<u8>,
}

impl Server {
    pub(super) fn new(random: &mut Random, mistake: Mistake) -> Self {
        // Also close to where directories are renewed, and to where numbers end.
        let starts = [0, (1 << 30) - 4, i64::from(i32::MAX) - 4];
        let first = starts[random.below(3) as usize];
        Self {
            mistake,
            zxid: 100,
            counter: random.one_in(2).then_some(first),
            first,
            znodes: BTreeMap::new(),
            watches: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// The watches that have ended: whose, and of which path.
    pub(super) fn take_changes(&mut self) -> Vec<(usize, String)> {
        std::mem::take(&mut self.changes)
    }

    pub(super) fn names(&self) -> Vec<&String> {
        self.znodes.keys().collect()
    }

    /// Removes the directory if it is empty, as servers do with containers.
    pub(super) fn sweep(&mut self) {
        if self.znodes.is_empty() {
            self.counter = None;
            // Not every directory of this model is an old one.
            self.first = 0;
        }
    }

    /// Somebody removes a znode by force. Returns its path.
    pub(super) fn remove_any(&mut self, random: &mut Random) -> Option<String> {
        let nth = random.below(self.znodes.len().max(1) as u64) as usize;
        let name = self.znodes.keys().nth(nth)?.clone();
        self.delete(&name);
        Some(format!("{DIRECTORY}/{name}"))
    }

    pub(super) fn end_session(&mut self, session: i64) {
        let ends =
            |(name, znode): (&String, &Znode)| (znode.session == session).then(|| name.clone());
        for name in self.znodes.iter().filter_map(ends).collect::<Vec<_>>() {
            self.delete(&name);
        }
    }

    pub(super) fn forget_watches(&mut self, client: usize) {
        self.watches.retain(|(other, _)| *other != client);
    }

    pub(super) fn execute(&mut self, client: usize, session: i64, request: &Request) -> Answer {
        let mut body = Vec::new();
        let mut writer = FrameWriter::begin(&mut body);
        let error = match request {
            Request::Create(create) if create.kind == CreateKind::EphemeralSequential => {
                match self.join(session, &create.path) {
                    Ok(path) => {
                        writer.text(&path);
                        write_stat(&mut writer, self.zxid);
                        0
                    }
                    Err(error) => error,
                }
            }
            Request::Create(create) => {
                self.zxid += 1;
                if &*create.path == DIRECTORY && self.counter.is_none() {
                    self.counter = Some(self.first);
                    writer.text(&create.path);
                    write_stat(&mut writer, self.zxid);
                    0
                } else {
                    NODE_EXISTS
                }
            }
            Request::Delete(path) => {
                self.zxid += 1;
                if self.delete(name_of(path)) { 0 } else { NO_NODE }
            }
            Request::Multi(operations) => {
                self.delete_both(operations, &mut writer);
                0
            }
            Request::Sync(path) => {
                writer.text(path);
                0
            }
            Request::GetChildren { .. } if self.counter.is_none() => NO_NODE,
            Request::GetChildren { .. } => {
                writer.int(i32::try_from(self.znodes.len()).expect("they are few"));
                for name in self.znodes.keys() {
                    writer.text(name);
                }
                write_stat(&mut writer, 0);
                0
            }
            Request::Exists { path, .. } | Request::GetData { path, .. } => {
                self.look_up(client, request, name_of(path), &mut writer)
            }
            other => panic!("{other:?}"),
        };
        writer.finish().expect("it is short");
        let (bytes, _) = frame(&body).expect("a frame").expect("all of it");
        Answer { zxid: self.zxid, error, body: if error == 0 { bytes.to_vec() } else { vec![] } }
    }

    fn join(&mut self, session: i64, path: &str) -> Result<String, i32> {
        self.zxid += 1;
        let counter = self.counter.as_mut().ok_or(NO_NODE)?;
        // At its end the counter stands still.
        let number = (*counter).min(i64::from(i32::MAX));
        *counter += 1;
        let path = format!("{path}{number:010}");
        let znode = Znode { created_by: self.zxid, session };
        self.znodes.insert(name_of(&path).to_owned(), znode);
        Ok(path)
    }

    fn look_up(
        &mut self,
        client: usize,
        request: &Request,
        name: &str,
        writer: &mut FrameWriter<'_>,
    ) -> i32 {
        let Some(znode) = self.znodes.get(name) else { return NO_NODE };
        if let Request::GetData { path, watch: true } = request {
            writer.buffer(b"owner");
            if self.mistake != Mistake::NoWatches {
                self.watches.push((client, path.to_string()));
            }
        }
        write_stat(writer, znode.created_by);
        0
    }

    fn delete_both(&mut self, operations: &[Operation], writer: &mut FrameWriter<'_>) {
        self.zxid += 1;
        let [Operation::Delete(own), Operation::Delete(_)] = operations else {
            panic!("{operations:?}");
        };
        let is_there = self.znodes.contains_key(name_of(own));
        let errors = match self.znodes.len() {
            _ if !is_there => [NO_NODE, -2],
            1 => [0, 0],
            _ => [0, NOT_EMPTY],
        };
        if errors == [0, 0] {
            self.delete(name_of(own));
            self.counter = None;
            self.first = 0;
        }
        for error in errors {
            match errors {
                [0, 0] => writer.int(2).boolean(false).int(0),
                _ => writer.int(-1).boolean(false).int(error).int(error),
            };
        }
        writer.int(-1).boolean(true).int(-1);
    }

    fn delete(&mut self, name: &str) -> bool {
        let path = format!("{DIRECTORY}/{name}");
        let (ended, kept) = std::mem::take(&mut self.watches)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, watched)| *watched == path);
        self.watches = kept;
        self.changes.extend(ended);
        self.znodes.remove(name).is_some()
    }
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn write_stat(writer: &mut FrameWriter<'_>, created_by: i64) {
    writer.long(created_by);
    for _ in 0..15 {
        writer.int(0);
    }
}
