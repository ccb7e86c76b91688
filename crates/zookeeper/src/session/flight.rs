//! The requests of one connection that are not answered, and the bytes that are not written.

use crate::jute::JuteError;
use crate::message::{AUTH_XID, EnsembleRequest, MultiOperation, RequestForm, RequestKind};
use crate::validity::{Probe, Validity};
use redlatch_protocol::time::Time;
use redlatch_protocol::write_buffer::WriteBuffer;
use std::collections::VecDeque;
use std::sync::Arc;

/// Who a request is from.
#[derive(Debug)]
pub(super) enum Owner<T> {
    /// A caller, who gets the answer.
    Caller(T),
    /// A delete, which is repeated until it is answered.
    Delete(PendingDelete<T>),
    /// The session itself, to stay alive; with the checks of a transaction.
    Beat(Arc<[MultiOperation]>),
    /// The session itself: the credentials.
    Auth,
    /// The session itself: its end.
    End,
}

impl<T: Copy> Owner<T> {
    /// The ticket of the caller that waits for the answer, if one does.
    pub(super) fn ticket(&self) -> Option<T> {
        match self {
            Self::Caller(ticket) => Some(*ticket),
            Self::Delete(delete) => delete.ticket,
            Self::Beat(_) | Self::Auth | Self::End => None,
        }
    }
}

/// A delete that is not answered yet.
#[derive(Debug)]
pub(super) struct PendingDelete<T> {
    pub(super) ticket: Option<T>,
    pub(super) path: Arc<str>,
    /// Was it written on a connection that has ended?
    pub(super) may_be_done: bool,
}

/// A request that was written, or will be before those behind it.
#[derive(Debug)]
pub(super) struct Sent<T> {
    pub(super) xid: i32,
    pub(super) owner: Owner<T>,
    pub(super) kind: RequestKind,
    /// What its answer says about the session, if anything.
    pub(super) probe: Option<Probe>,
    sent_at: Time,
    /// How many bytes it has.
    length: usize,
}

/// A request of this many bytes may be too long for a server whose limit was lowered.
const LONG: usize = 4 * 1024;

/// How often in a row a connection may end at such a request.
const CLOSED_MAX: u32 = 3;

/// The requests in flight on one connection, in the order of their replies.
#[derive(Debug)]
pub(super) struct RequestsInFlight<T> {
    pub(super) requests: VecDeque<Sent<T>>,
    /// The xid of the last request; it goes on over connections.
    xid: i32,
    pub(super) output: WriteBuffer,
    /// When the last bytes came.
    pub(super) heard_at: Time,
    /// The length of the request at which the server closed the last connections, and how many.
    suspect: (usize, u32),
    /// The longest request that servers accept, if there is reason to believe in one.
    length_max: Option<usize>,
}

impl<T> Default for RequestsInFlight<T> {
    fn default() -> Self {
        Self {
            requests: VecDeque::new(),
            xid: 0,
            output: WriteBuffer::default(),
            heard_at: Time::ZERO,
            suspect: (0, 0),
            length_max: None,
        }
    }
}

impl<T> RequestsInFlight<T> {
    /// Writes a request behind the others. `now` is read before its first byte is written.
    pub(super) fn write(
        &mut self,
        now: Time,
        owner: Owner<T>,
        request: &EnsembleRequest,
        validity: Option<&mut Validity>,
    ) -> Result<(), (Owner<T>, JuteError)> {
        let xid = match request {
            EnsembleRequest::Auth(_) => AUTH_XID,
            _ => self.next_xid(),
        };
        let before = self.output.end().len();
        if let Err(error) = request.encode(xid, self.output.end()) {
            return Err((owner, error));
        }
        let length = self.output.end().len() - before;
        if self.length_max.is_some_and(|most| length > most) {
            self.output.end().truncate(before);
            return Err((owner, JuteError::Unaccepted(length)));
        }
        let RequestForm { kind, reach, .. } = request.form();
        let probe = validity
            .zip(reach)
            .map(|(validity, reach)| validity.sent(now, reach));
        self.requests.push_back(Sent {
            xid,
            owner,
            kind,
            probe,
            sent_at: now,
            length,
        });
        Ok(())
    }

    /// From 1 on, and around: negative ones have meanings of their own.
    fn next_xid(&mut self) -> i32 {
        self.xid = self.xid.checked_add(1).unwrap_or(1);
        self.xid
    }

    /// The server has closed the connection. Servers do that without a word if a request is longer
    /// than their `jute.maxbuffer`. After some times in a row at a long request of one length, no
    /// such request is sent any more: it would cost the client all its locks.
    pub(super) fn closed_by_server(&mut self) {
        let length = self.requests.front().map_or(0, |oldest| oldest.length);
        let times = if length == self.suspect.0 {
            self.suspect.1 + 1
        } else {
            1
        };
        self.suspect = (length, times);
        if length >= LONG && times == CLOSED_MAX {
            self.length_max = Some(length - 1);
        }
    }

    /// The connection has ended. Returns its requests, oldest first.
    pub(super) fn clear(&mut self) -> VecDeque<Sent<T>> {
        self.output.clear();
        std::mem::take(&mut self.requests)
    }

    /// Since when nothing has come although something should.
    pub(super) fn silent_since(&self) -> Option<Time> {
        self.requests
            .front()
            .map(|oldest| oldest.sent_at.max(self.heard_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xids_begin_with_one_and_go_around_without_zero_and_negative_ones() {
        let mut flight = RequestsInFlight::<u64>::default();
        assert_eq!((flight.next_xid(), flight.next_xid()), (1, 2));
        flight.xid = i32::MAX - 1;
        assert_eq!((flight.next_xid(), flight.next_xid()), (i32::MAX, 1));
    }

    #[test]
    fn the_output_is_what_was_not_written() {
        let mut flight = RequestsInFlight::<u64>::default();
        flight
            .write(Time::ZERO, Owner::End, &EnsembleRequest::CloseSession, None)
            .unwrap();
        assert_eq!(
            flight.output.unwritten(),
            [0, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5]
        );
        flight.output.wrote(11);
        assert_eq!(flight.output.unwritten(), [0xf5]);
        flight.output.wrote(1);
        assert_eq!(flight.output.unwritten(), []);
        let sent = flight.clear();
        assert_eq!((sent.len(), sent[0].xid), (1, 1));
    }
}
