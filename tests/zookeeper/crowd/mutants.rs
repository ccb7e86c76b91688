//! Clients that do wrong what the contender relies on: its requests are carried out otherwise than
//! it has asked for.

use super::server::{Answer, Server};
use super::{Client, Mistake};
use redlatch_zookeeper::jute::{FrameWriter, frame};
use redlatch_zookeeper::message::{EnsembleRequest, MultiOperation};
use std::collections::VecDeque;

/// What a wrong client has done too early.
#[derive(Debug, Default)]
pub(super) struct Wrong {
    /// The shares that were read before the queue.
    pub(super) early: VecDeque<Answer>,
    /// The first znode of a set.
    first: Option<String>,
}

impl Client {
    /// Does something else with the oldest request, if there is a mistake that applies to it.
    pub(super) fn exchange_wrongly(&mut self, server: &mut Server) -> bool {
        match server.mistake {
            Mistake::SharesInTwoSteps => self.share_in_two_steps(server),
            Mistake::WritersIgnoreShares => self.ignore_shares(),
            Mistake::SharesAreReadFirst => self.read_shares_first(server),
            Mistake::SetsOneByOne => self.join_one_by_one(server),
            _ => false,
        }
    }

    /// Leaves the queue, and makes its share with the next request.
    fn share_in_two_steps(&mut self, server: &mut Server) -> bool {
        let Some((_, EnsembleRequest::Multi(operations))) = self.requests.front_mut() else {
            return false;
        };
        let [
            create @ MultiOperation::Create(_),
            MultiOperation::Delete(own),
        ] = &operations[..]
        else {
            return false;
        };
        let create = create.clone();
        let own = own.clone();
        let (directory, _) = own.rsplit_once('/').expect("a path has a slash");
        *operations = [create, MultiOperation::Check(directory.into())].into();
        let delete = EnsembleRequest::Delete(own);
        server.execute(self.number, self.session, &delete).error == 0
    }

    /// A writer takes the lock whatever shares there are.
    fn ignore_shares(&mut self) -> bool {
        if !self.wish.is_whole() || !self.requests.front().is_some_and(|(_, r)| is_shares(r)) {
            return false;
        }
        let (serial, request) = self.requests.pop_front().expect("it is the oldest");
        self.hear(serial, &request, &Answer::NO_NODE);
        true
    }

    /// Reads the shares of a lock before its queue.
    fn read_shares_first(&mut self, server: &mut Server) -> bool {
        let front = self.requests.front().map(|(_, request)| request);
        match (front, self.requests.get(1).map(|(_, request)| request)) {
            (Some(EnsembleRequest::GetChildren { .. }), Some(next))
                if is_shares(next) && self.wrong.early.is_empty() =>
            {
                let next = next.clone();
                self.wrong
                    .early
                    .push_back(server.execute(self.number, self.session, &next));
                true
            }
            (Some(front), _) if is_shares(front) => {
                let Some(answer) = self.wrong.early.pop_front() else {
                    return false;
                };
                let (serial, request) = self.requests.pop_front().expect("it is the oldest");
                self.hear(serial, &request, &answer);
                true
            }
            _ => false,
        }
    }

    /// Joins the queues of a set one after the other.
    fn join_one_by_one(&mut self, server: &mut Server) -> bool {
        let Some((_, EnsembleRequest::Multi(operations))) = self.requests.front() else {
            return false;
        };
        let [
            first @ MultiOperation::Create(_),
            second @ MultiOperation::Create(_),
        ] = &operations[..]
        else {
            return false;
        };
        let first = first.clone();
        let second = second.clone();
        let created = |result: Result<Vec<Option<String>>, _>| result.ok()?.pop().flatten();
        match self.wrong.first.take() {
            None => {
                self.wrong.first = created(server.tree.transact(self.session, &[first]));
                self.wrong.first.is_some()
            }
            Some(first) => {
                let second = created(server.tree.transact(self.session, &[second]));
                let Some(second) = second else {
                    server.tree.delete(&first).expect("it was created");
                    return false;
                };
                let (serial, request) = self.requests.pop_front().expect("it is the oldest");
                let zxid = server.tree.zxid;
                let body = both(&first, &second);
                self.hear(
                    serial,
                    &request,
                    &Answer {
                        zxid,
                        error: 0,
                        body,
                    },
                );
                true
            }
        }
    }
}

fn is_shares(request: &EnsembleRequest) -> bool {
    matches!(request, EnsembleRequest::GetChildren { path, .. } if path.ends_with("~shares"))
}

/// The results of a transaction that has created these two.
fn both(first: &str, second: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FrameWriter::begin(&mut bytes);
    for path in [first, second] {
        writer.int(1).boolean(false).int(0).text(path);
    }
    writer.int(-1).boolean(true).int(-1);
    writer.finish().expect("it is short");
    let (body, _) = frame(&bytes).expect("a frame").expect("all of it");
    body.to_vec()
}
