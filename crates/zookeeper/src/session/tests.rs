//! One session, in literal bytes and times.

mod ending;
mod servers;
mod staying;

use super::*;
use crate::jute::{FrameWriter, Reader};
use crate::message::{Acl, ConnectRequest, Create, CreateKind};
use std::time::Duration;

/// A session with a server that says what the test wants.
struct Talk {
    session: EnsembleSession<u64>,
    now: Time,
}

const SESSION: i64 = 0x77;
/// Granted, in milliseconds: a beat is every second.
const TIMEOUT: i32 = 7_000;

impl Talk {
    fn new(credentials: Option<&[u8]>) -> Self {
        let mut options = EnsembleSessionOptions::new(2, 7);
        options.credentials = credentials.map(Arc::from).map(Secret);
        options.drift_parts_per_billion = 0;
        Self {
            session: EnsembleSession::new(options),
            now: Time::from_millis(1_000),
        }
    }

    /// One whose session has begun. All that it has told and written is read.
    fn ready() -> Self {
        let mut talk = Self::new(None);
        talk.get(1);
        talk.connect();
        talk.grant(SESSION);
        assert_eq!(talk.told(), ["connected"]);
        assert_eq!(talk.written(), ["4 xid 1"]);
        talk.reply(1, 1, -101);
        assert_eq!(talk.told(), ["1 NoNode (-101)"]);
        talk
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
        self.session.tick(self.now);
    }

    fn connect(&mut self) -> Vec<u8> {
        assert!(self.session.wants_connection(self.now));
        self.session.connecting(self.now);
        self.session.connected(self.now);
        self.take_output()
    }

    fn take_output(&mut self) -> Vec<u8> {
        let output = self.session.output().to_vec();
        self.session.wrote(output.len());
        output
    }

    /// The types and xids of the requests in the output.
    fn written(&mut self) -> Vec<String> {
        let output = self.take_output();
        let mut rest = &output[..];
        let mut found = Vec::new();
        while let Some((body, used)) = frame(rest).unwrap() {
            let mut reader = Reader::new(body);
            let xid = reader.int().unwrap();
            let kind = reader.int().unwrap();
            found.push(format!("{kind} xid {xid}"));
            rest = &rest[used..];
        }
        found
    }

    fn hear(&mut self, write: impl FnOnce(&mut FrameWriter<'_>)) {
        let mut bytes = Vec::new();
        let mut frame = FrameWriter::begin(&mut bytes);
        write(&mut frame);
        frame.finish().unwrap();
        self.session.received(self.now, &bytes);
    }

    fn grant(&mut self, session: i64) {
        self.grant_timeout(session, TIMEOUT);
    }

    fn grant_timeout(&mut self, session: i64, timeout: i32) {
        self.hear(|frame| {
            frame
                .int(0)
                .int(timeout)
                .long(session)
                .buffer(&[9; 16])
                .boolean(false);
        });
    }

    /// A reply without a body.
    fn reply(&mut self, xid: i32, zxid: i64, error: i32) {
        self.hear(|frame| {
            frame.int(xid).long(zxid).int(error);
        });
    }

    /// The results of a transaction of checks, each with its error.
    fn results(&mut self, xid: i32, errors: &[i32]) {
        self.hear(|frame| {
            frame.int(xid).long(5).int(0);
            for error in errors {
                if errors.iter().all(|error| *error == 0) {
                    frame.int(13).boolean(false).int(0);
                } else {
                    frame.int(-1).boolean(false).int(*error).int(*error);
                }
            }
            frame.int(-1).boolean(true).int(-1);
        });
    }

    fn get(&mut self, ticket: u64) {
        let request = EnsembleRequest::GetData {
            path: "/a".into(),
            watch: false,
        };
        self.session.send(self.now, ticket, request);
    }

    fn create(&mut self, ticket: u64) {
        let kind = CreateKind::Ephemeral;
        let acl = Acl::Anyone;
        let create = Create {
            path: "/a".into(),
            data: Arc::from([]),
            acl,
            kind,
        };
        self.session
            .send(self.now, ticket, EnsembleRequest::Create(create));
    }

    /// The outcomes, in few words.
    fn told(&mut self) -> Vec<String> {
        let text = |outcome| match outcome {
            SessionEvent::Answer(ticket, answer) => match answer.reply() {
                Ok(_) => format!("{ticket} ok"),
                Err(Failure::Server(error)) => format!("{ticket} {error}"),
                Err(failure) => format!("{ticket} {failure:?}"),
            },
            SessionEvent::Changed { path } => format!("changed {path}"),
            SessionEvent::Connected => "connected".to_owned(),
            SessionEvent::Removed { path } => format!("removed {path}"),
            SessionEvent::SessionLost => "lost".to_owned(),
            SessionEvent::Ended => "ended".to_owned(),
            SessionEvent::Unreached => "unreached".to_owned(),
        };
        std::iter::from_fn(|| self.session.poll())
            .map(text)
            .collect()
    }

    fn lose(&mut self) {
        self.session.closed(self.now, Problem::Disconnected);
    }
}

#[test]
fn nothing_is_written_before_the_session_has_begun() {
    let mut talk = Talk::new(Some(b"user:password"));
    assert!(!talk.session.wants_connection(talk.now), "nobody needs it");
    talk.get(1);
    talk.create(2);
    let mut expected = Vec::new();
    ConnectRequest::new(10_000, 0).encode(&mut expected);
    assert_eq!(talk.connect(), expected);
    talk.session.delete(talk.now, None, "/old".into());
    assert_eq!((talk.written(), talk.told()), (vec![], vec![]));
    talk.grant(SESSION);
    assert_eq!(talk.told(), ["connected"]);
    // The credentials, then deletes, then the requests in their order.
    assert_eq!(
        talk.written(),
        ["100 xid -4", "2 xid 1", "4 xid 2", "15 xid 3"]
    );
    assert_eq!(talk.session.id(), Some(SESSION));
}

#[test]
fn replies_belong_to_requests_by_their_order_and_events_to_nobody() {
    let mut talk = Talk::ready();
    talk.get(7);
    talk.get(8);
    assert_eq!(talk.written(), ["4 xid 2", "4 xid 3"]);
    talk.hear(|frame| {
        frame.int(-1).long(-1).int(0).int(2).int(3).text("/b");
    });
    talk.reply(2, 3, -101);
    assert_eq!(talk.told(), ["changed /b", "7 NoNode (-101)"]);
    talk.reply(4, 3, 0);
    assert_eq!(talk.told(), ["8 Unanswered"]);
    assert!(talk.session.is_down());
    assert_eq!(talk.session.problem(), Some(&Problem::WrongXid(4)));
}

#[test]
fn bytes_are_taken_one_by_one() {
    let mut bytes = Vec::new();
    for _ in 0..3 {
        let mut frame = FrameWriter::begin(&mut bytes);
        frame.int(-1).long(-1).int(0).int(2).int(3).text("/b");
        frame.finish().unwrap();
    }
    for size in 1..=bytes.len() {
        let mut talk = Talk::ready();
        for piece in bytes.chunks(size) {
            talk.session.received(talk.now, piece);
        }
        assert_eq!(talk.told(), ["changed /b"; 3], "pieces of {size}");
    }
}

#[test]
fn bytes_that_cannot_be_end_the_connection() {
    for bytes in [
        &[0xff; 4][..],
        &[1, 0, 0, 1],
        &[0, 0, 0, 3, 1, 2, 3],
        b"HTTP/1.1 400",
    ] {
        let mut talk = Talk::ready();
        talk.get(7);
        talk.session.received(talk.now, bytes);
        assert!(talk.session.is_down(), "{bytes:?}");
        assert_eq!(talk.told(), ["7 Unanswered"]);
        let problem = talk.session.problem();
        assert!(matches!(problem, Some(Problem::Protocol(_))), "{problem:?}");
    }
    // A body of another kind than the request's.
    let mut talk = Talk::ready();
    talk.get(7);
    talk.reply(2, 3, 0);
    assert_eq!(talk.told(), ["7 Unanswered"]);
    assert!(talk.session.is_down());
}

#[test]
fn a_request_that_is_too_long_is_not_sent() {
    let mut talk = Talk::ready();
    let path = "/".repeat(1_000_000).into();
    talk.session.send(talk.now, 7, EnsembleRequest::Sync(path));
    assert_eq!(talk.written(), [""; 0]);
    assert_eq!(talk.told(), ["7 TooLong(SentTooLong(1000012))"]);
    talk.get(8);
    assert_eq!(talk.written(), ["4 xid 3"]);
}

#[test]
fn another_connection_continues_the_session_from_the_largest_zxid() {
    let mut talk = Talk::ready();
    talk.get(7);
    talk.reply(2, 900, -101);
    talk.session.keep("/a".into());
    talk.get(8);
    talk.lose();
    assert_eq!(talk.told(), ["7 NoNode (-101)", "8 Unanswered"]);
    assert_eq!(
        talk.session.output(),
        [],
        "nothing of the former connection"
    );
    talk.pass(20);
    let request = talk.connect();
    let mut reader = Reader::new(&request[4..]);
    assert_eq!((reader.int(), reader.long()), (Ok(0), Ok(900)));
    assert_eq!((reader.int(), reader.long()), (Ok(TIMEOUT), Ok(SESSION)));
    assert_eq!(reader.buffer(), Ok(Some(&[9; 16][..])));
    talk.grant(SESSION);
    assert_eq!(talk.told(), ["connected"]);
}

#[test]
fn servers_have_their_turns_and_attempts_their_time() {
    let mut talk = Talk::new(None);
    talk.get(1);
    let first = talk.session.server();
    talk.session.connecting(talk.now);
    talk.pass(1_999);
    assert!(!talk.session.is_down());
    talk.pass(1);
    assert_eq!(talk.session.problem(), Some(&Problem::TimedOut));
    assert_eq!(talk.told(), ["unreached", "1 Unanswered"]);
    assert_ne!(talk.session.server(), first);
    talk.get(2);
    talk.connect();
    let deadline = talk.session.next_deadline().unwrap();
    assert_eq!(deadline, talk.now.after(Duration::from_secs(2)));
    talk.pass(2_000);
    assert!(
        talk.session.is_down(),
        "a server that accepts and says nothing"
    );
    talk.get(3);
    assert!(!talk.session.wants_connection(talk.now), "all have failed");
    let retry_at = talk.session.next_deadline().unwrap();
    assert!(talk.session.wants_connection(retry_at));
}
