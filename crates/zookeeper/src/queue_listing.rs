//! Who holds a lock and who waits for it, read from its directories.
//!
//! ```text
//!   QueueListing::requests()   sync, list the queue, list the shares
//!   QueueListing::of()         who is there, in their order
//!   QueueListing::details()    the data of those that are shown
//!   QueueListing::view()       holders and waiters, with their owners
//! ```
//!
//! The queue is listed before the shares: a contender that gets a share between the two is in both
//! lists then, and not in neither. Its data is read last, so it is known to have left the queue.

use super::message::{EnsembleError, EnsembleReply, EnsembleRequest, Names, Stat};
use super::path::{Directory, Layout, Number};
use super::session::{EnsembleAnswer, Failure};
use super::shares::GrantedShare;
use std::sync::Arc;

/// The most holders of shares, and the most contenders in a queue, whose data is read.
pub const SHOWN_MAX: usize = 100;

/// Who is at a lock, by the names of their znodes.
#[derive(Debug)]
pub struct QueueListing {
    /// The contenders, in the order of their numbers.
    queue: Vec<(Number, Arc<str>)>,
    /// The shares, readers first and then permits by their numbers.
    shares: Vec<(Option<u32>, Arc<str>)>,
}

/// Who holds a lock, and who waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockView {
    /// The holder of the whole lock, or those of shares: a hundred at most.
    pub holders: Vec<ListedClient>,
    /// Do these have shares?
    pub is_shared: bool,
    /// How many hold the lock.
    pub holder_count: usize,
    /// Who waits, from the first to the last, as far as it was read.
    pub waiters: Vec<ListedClient>,
    /// How many wait.
    pub waiter_count: usize,
    /// Did a holder go while the lock was looked at? Then somebody else may hold it now.
    pub has_changed: bool,
}

/// Someone who holds a lock or waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedClient {
    /// The path of the znode, which is never used twice.
    pub path: Arc<str>,
    pub owner: Arc<[u8]>,
    /// When the znode was created, in milliseconds since 1970 by the leader's clock.
    pub created_at_ms: u64,
    /// The number of its permit.
    pub slot: Option<u32>,
}

impl QueueListing {
    /// What must be asked first. The sync shows what was agreed on before, through whatever server.
    pub fn requests(directory: &Directory) -> Vec<EnsembleRequest> {
        vec![
            EnsembleRequest::Sync(Arc::clone(&directory.path)),
            EnsembleRequest::GetChildren {
                path: Arc::clone(&directory.path),
                watch: false,
            },
            EnsembleRequest::GetChildren {
                path: directory.shares(),
                watch: false,
            },
        ]
    }

    /// Who is there, by the answers to [`requests`](Self::requests). A directory that is not there
    /// is an empty one.
    pub fn of(
        layout: Layout,
        directory: &Directory,
        answers: &[EnsembleAnswer],
    ) -> Result<Self, Failure> {
        let queue = names_in(answers.get(1))?;
        let shares = names_in(answers.get(2))?;
        Ok(Self::of_names(layout, directory, queue, shares))
    }

    fn of_names(
        layout: Layout,
        directory: &Directory,
        queue: Option<Names<'_>>,
        shares: Option<Names<'_>>,
    ) -> Self {
        let mut listing = Self {
            queue: Vec::new(),
            shares: Vec::new(),
        };
        for name in queue.iter().flat_map(Names::iter) {
            if let Some(number) = layout.number(name) {
                let path = directory.child(&String::from_utf8_lossy(name));
                listing.queue.push((number, path));
            }
        }
        let shares_path = directory.shares();
        for name in shares.iter().flat_map(Names::iter) {
            if let Some(share) = GrantedShare::of_name(name) {
                let path = format!("{shares_path}/{}", String::from_utf8_lossy(name));
                listing.shares.push((share.slot(), path.into()));
            }
        }
        listing.shares.sort_unstable();
        // Numbers past their end are in no order.
        if !listing.is_undated() {
            let queue = &mut listing.queue;
            queue.sort_by(|(one, _), (other, _)| one.order(*other));
        }
        listing
    }

    /// The requests for the data of those that are shown.
    pub fn details(&self) -> Vec<EnsembleRequest> {
        let shares = self.shares.iter().map(|(_, path)| path);
        let queue = self.queue.iter().map(|(_, path)| path);
        let shown = shares.take(SHOWN_MAX).chain(queue.take(self.read_max()));
        let details = shown.map(|path| EnsembleRequest::GetData {
            path: Arc::clone(path),
            watch: false,
        });
        details.collect()
    }

    /// Of how many contenders the data is read: of all, where it gives their order.
    fn read_max(&self) -> usize {
        // The holder of the whole lock is one of the queue.
        if self.is_undated() {
            usize::MAX
        } else {
            SHOWN_MAX + 1
        }
    }

    /// Who holds the lock and who waits, by the answers to [`details`](Self::details). A znode that
    /// does not exist any more is left out.
    pub fn view(&self, answers: &[EnsembleAnswer]) -> Result<LockView, Failure> {
        let mut found = Vec::new();
        for answer in answers {
            found.push(match absent_is_none(answer.reply())? {
                Some(EnsembleReply::Data { data, stat }) => Some((data, stat)),
                _ => None,
            });
        }
        Ok(self.view_of(&found))
    }

    fn view_of(&self, found: &[Option<(&[u8], Stat)>]) -> LockView {
        let shown = self.shares.len().min(SHOWN_MAX).min(found.len());
        let (of_shares, of_queue) = found.split_at(shown);
        let mut holders: Vec<ListedClient> = Vec::new();
        for ((slot, path), found) in self.shares.iter().zip(of_shares) {
            if let Some((data, stat)) = found {
                holders.push(ListedClient::new(path, *slot, data, stat));
            }
        }
        let mut queue = Vec::new();
        for ((_, path), found) in self.queue.iter().zip(of_queue) {
            if let Some((data, stat)) = found {
                let client = ListedClient::new(path, None, data, stat);
                queue.push((stat.created_by, client));
            }
        }
        let is_undated = self.is_undated();
        if is_undated {
            queue.sort_by_key(|(created_by, _)| *created_by);
        }
        let gone = of_queue.len() - queue.len();
        let mut waiter_count = self.queue.len() - gone;
        let mut waiters = queue.into_iter().map(|(_, member)| member);
        let is_shared = !self.shares.is_empty();
        // Which one is the first is not known of those that are gone.
        let is_first_gone = matches!(of_queue, [None, ..]) || is_undated && gone > 0;
        if !is_shared && !is_first_gone {
            holders.extend(waiters.next());
            waiter_count -= holders.len();
        }
        let hidden = self.shares.len() - shown;
        LockView {
            is_shared,
            has_changed: if is_shared {
                holders.len() < shown
            } else {
                is_first_gone
            },
            holder_count: holders.len() + hidden,
            holders,
            waiters: waiters.take(SHOWN_MAX).collect(),
            waiter_count,
        }
    }

    /// Do the numbers in the queue mean nothing any more? Then the transactions give the order.
    fn is_undated(&self) -> bool {
        self.queue.iter().any(|(number, _)| number.is_past_end())
    }
}

impl ListedClient {
    fn new(path: &Arc<str>, slot: Option<u32>, data: &[u8], stat: &Stat) -> Self {
        let created_at_ms = u64::try_from(stat.created_at_ms).unwrap_or(0);
        Self {
            path: Arc::clone(path),
            owner: Arc::from(data),
            created_at_ms,
            slot,
        }
    }
}

/// The names of this answer. `None`: the directory is not there.
fn names_in(answer: Option<&EnsembleAnswer>) -> Result<Option<Names<'_>>, Failure> {
    let answer = answer.ok_or(Failure::Unanswered)?;
    Ok(match absent_is_none(answer.reply())? {
        Some(EnsembleReply::Children { names, .. }) => Some(names),
        _ => None,
    })
}

/// The reply, or nothing about what does not exist.
fn absent_is_none<'a>(
    reply: Result<EnsembleReply<'a>, &Failure>,
) -> Result<Option<EnsembleReply<'a>>, Failure> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(Failure::Server(EnsembleError::NoNode)) => Ok(None),
        Err(failure) => Err(failure.clone()),
    }
}

#[cfg(test)]
mod tests;
