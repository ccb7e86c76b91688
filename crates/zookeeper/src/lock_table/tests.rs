//! The table against a server that says what the test wants, in literal times.

mod asking;
mod holding;
mod waiting;

use super::*;
use crate::jute::{FrameWriter, Reader, frame};
use crate::message::EnsembleRequest;
use crate::path::{Directory, Root};

/// The timeout of the session, in milliseconds.
const TIMEOUT: u64 = 7_000;

/// A table whose session has begun, and who has said what.
struct Talk {
    table: LockTable<u32>,
    millis: u64,
    /// The xid of the latest request.
    xid: i32,
}

fn token(number: u8) -> Token {
    Token::new([number; Token::LEN])
}

fn plan(waits: bool) -> ContenderPlan {
    let root = Root::new("/locks").unwrap();
    let mut plan = ContenderPlan::of_set(&root, vec![Directory::new(&root, b"", b"a").unwrap()]);
    plan.waits = waits;
    plan
}

impl Talk {
    fn new() -> Self {
        Self::with_random(true)
    }

    fn with_random(has_random: bool) -> Self {
        Self::with(
            1,
            if has_random {
                || Some([1; 16])
            } else {
                || None
            },
        )
    }

    /// With this number of servers.
    fn of(servers: usize) -> Self {
        Self::with(servers, || Some([1; 16]))
    }

    fn with(servers: usize, random: Random) -> Self {
        let mut options = EnsembleSessionOptions::new(servers, 7);
        options.drift_parts_per_billion = 0;
        let table = LockTable::new(options, random);
        Self {
            table,
            millis: 1_000,
            xid: 0,
        }
    }

    fn time(&self) -> Time {
        Time::from_millis(self.millis)
    }

    fn later(&self, millis: u64) -> Time {
        Time::from_millis(self.millis + millis)
    }

    fn pass(&mut self, millis: u64) {
        self.millis += millis;
        self.table.tick(self.time());
    }

    /// Contends for the lock, for 2 s, and waits for 1 s.
    fn contend(&mut self, number: u8, waits: bool) {
        let until = self.later(1_000);
        let hold = Duration::from_secs(2);
        let call = (u32::from(number), until);
        self.table
            .contend(self.time(), token(number), plan(waits), hold, call);
    }

    /// A connection is made, and the server accepts the session.
    fn connect(&mut self) {
        let now = self.time();
        assert!(self.table.session.wants_connection(now));
        self.table.session.connecting(now);
        self.table.session.connected(now);
        let length = self.table.session.output().len();
        self.table.session.wrote(length);
        self.hear(|frame| {
            frame
                .int(0)
                .int(TIMEOUT as i32)
                .long(0x77)
                .buffer(&[9; 16])
                .boolean(false);
        });
    }

    fn hear(&mut self, write: impl FnOnce(&mut FrameWriter<'_>)) {
        let mut bytes = Vec::new();
        let mut frame = FrameWriter::begin(&mut bytes);
        write(&mut frame);
        frame.finish().unwrap();
        let now = self.time();
        self.table.session.received(now, &bytes);
        self.table.settle(now);
    }

    /// The types of the requests in the output.
    fn written(&mut self) -> Vec<i32> {
        let output = self.table.session.output().to_vec();
        self.table.session.wrote(output.len());
        let mut rest = &output[..];
        let mut kinds = Vec::new();
        while let Some((body, used)) = frame(rest).unwrap() {
            let mut reader = Reader::new(body);
            reader.int().unwrap();
            kinds.push(reader.int().unwrap());
            rest = &rest[used..];
        }
        kinds
    }

    /// The next reply, without an error.
    fn reply(&mut self, write: impl FnOnce(&mut FrameWriter<'_>)) {
        self.xid += 1;
        let xid = self.xid;
        self.hear(|frame| {
            frame.int(xid).long(50 + i64::from(xid)).int(0);
            write(frame);
        });
    }

    fn refuse(&mut self, error: i32) {
        self.xid += 1;
        let xid = self.xid;
        self.hear(|frame| {
            frame.int(xid).long(50).int(error);
        });
    }

    fn name(number: u32) -> String {
        format!("_c_01010101-0101-4101-8101-010101010101-lock-{number:010}")
    }

    /// The create is answered: this number.
    fn created(&mut self, number: u32) {
        let path = format!("/locks/a/{}", Self::name(number));
        self.reply(|frame| {
            frame.text(&path);
            stat(frame);
        });
    }

    fn listed(&mut self, names: &[&str]) {
        self.reply(|frame| {
            frame.int(i32::try_from(names.len()).unwrap());
            for name in names {
                frame.text(name);
            }
            stat(frame);
        });
    }

    /// The results of a transaction of one check.
    fn checked(&mut self) {
        self.reply(|frame| {
            frame
                .int(13)
                .boolean(false)
                .int(0)
                .int(-1)
                .boolean(true)
                .int(-1);
        });
    }

    /// A lock is held until 2 s later, by the first call.
    fn held() -> Self {
        let mut talk = Self::new();
        talk.contend(1, true);
        talk.connect();
        assert_eq!(talk.written(), [15, 12, 12]);
        talk.created(1);
        talk.listed(&[&Self::name(1)]);
        talk.refuse(-101);
        assert_eq!(talk.told(), ["1 granted"]);
        talk
    }

    /// The losses and the outcomes, in few words.
    fn told(&mut self) -> Vec<String> {
        let losses = std::iter::from_fn(|| self.table.poll_loss());
        let mut told: Vec<String> = losses.map(|(_, loss)| format!("lost {loss:?}")).collect();
        let outcomes = std::iter::from_fn(|| self.table.poll());
        told.extend(outcomes.map(|(waiter, outcome)| match outcome {
            Outcome::Granted(_) => format!("{waiter} granted"),
            Outcome::Waiting { place } => format!("{waiter} waits {place:?}"),
            Outcome::Voted(vote) => format!("{waiter} {vote:?}"),
            Outcome::Answered { answers, .. } => {
                format!("{waiter} {} answers", answers.iter().flatten().count())
            }
            other => format!("{waiter} {other:?}"),
        }));
        told
    }
}

fn stat(frame: &mut FrameWriter<'_>) {
    for _ in 0..17 {
        frame.int(0);
    }
}
