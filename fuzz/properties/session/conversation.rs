//! One session.

use super::{Input, PUSHES, QUEUE_REPLIES, REPLIES, SHARE_REPLIES};
use super::{is_token, pause, push, reply, request};
use redlatch_protocol::engine::Vote;
use redlatch_protocol::node::{
    Answer, IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX, NodeError, PENDING_MAX, Phase, Session,
    SessionEvent, SessionOptions, Ticket,
};
use redlatch_protocol::resp::{Reply, decode};
use redlatch_protocol::time::Time;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// A session, and its state as seen from outside.
struct Conversation {
    session: Session,
    now: Time,
    serial: u64,
    /// The requests that wait.
    waiting: BTreeSet<u64>,
    /// Cancelled requests that may still get a reply, because they were sent.
    released: BTreeSet<u64>,
    /// The commands on this connection without a reply, in order: their requests, and the numbers
    /// for the replies of scripts. `None` after bytes that are not a whole reply.
    written: Option<VecDeque<(Option<u64>, i64)>>,
    /// The rest of a command that was written in part.
    rest: Vec<u8>,
    /// The maximum number of pending releases: those at the end of the last connection, with those
    /// in flight.
    pending_max: usize,
}

pub(super) fn check(mut input: Input<'_>) {
    let mut options = SessionOptions::new("node", 7);
    options.quarantine = Some(Duration::from_secs(60));
    let mut it = Conversation {
        session: Session::new(options),
        now: Time::ZERO,
        serial: 0,
        waiting: BTreeSet::new(),
        released: BTreeSet::new(),
        written: None,
        rest: Vec::new(),
        pending_max: PENDING_MAX,
    };
    while let Some(what) = input.byte() {
        it.happen(what, &mut input);
        it.write(usize::from(what));
        it.take_answers();
        it.check_limits();
    }
    it.end();
}

impl Conversation {
    fn happen(&mut self, what: u8, input: &mut Input<'_>) {
        match what % 9 {
            0 => self.send(input.byte().unwrap_or(0), 1 + u64::from(what / 32).pow(3)),
            1 => self.hear_reply(REPLIES[usize::from(what / 9) % REPLIES.len()]),
            2 => {
                self.written = None;
                let bytes = input.bytes(usize::from(what / 9));
                self.session.received(self.now, bytes);
            }
            3 => self.connect(what / 9),
            4 => self
                .session
                .closed(self.now, NodeError::Disconnected("gone".to_owned())),
            5 => {
                self.now = self.now.after(pause(what / 9));
                self.session.tick(self.now);
            }
            6 => {
                let undo = request(3, u64::MAX, self.now);
                self.session.send(self.now, None, undo);
            }
            7 => self.cancel(usize::from(what / 9)),
            _ => match what / 9 % 3 {
                0 => self.hear_push(PUSHES[usize::from(what / 27) % PUSHES.len()].as_bytes()),
                1 => {
                    let which = usize::from(what / 27);
                    let replies = QUEUE_REPLIES.iter().chain(&SHARE_REPLIES);
                    self.hear_reply(replies.copied().nth(which).expect("there are eleven"));
                }
                _ => self.hear_push(&push(self.serial.saturating_sub(u64::from(what / 27)))),
            },
        }
    }

    /// The peer sends an unsolicited message: it must not count as a reply to any command.
    fn hear_push(&mut self, push: &[u8]) {
        let is_between_replies = self.written.is_some();
        let is_ready = self.session.phase() == Phase::Answering;
        self.session.received(self.now, push);
        if is_between_replies && is_ready {
            assert_eq!(
                self.session.phase(),
                Phase::Answering,
                "a push cost the connection"
            );
            assert!(self.next_answer().is_none(), "a push is an answer");
        }
    }

    fn send(&mut self, kind: u8, times: u64) {
        for _ in 0..times {
            self.serial += 1;
            let request = request(kind, self.serial, self.now);
            if request.is_answered() {
                self.waiting.insert(self.serial);
                let ticket = Ticket::new(0, self.serial);
                self.session.send(self.now, Some(ticket), request);
            } else {
                self.session.send(self.now, None, request);
            }
        }
    }

    fn connect(&mut self, how: u8) {
        if !self.session.is_down() {
            return;
        }
        self.session.connecting(self.now, Phase::Connecting);
        if how > 1 {
            self.session.connected(self.now);
            self.written = Some(VecDeque::new());
            self.rest.clear();
        }
        if how > 4 {
            // Most replies are valid.
            self.write(0);
            let info = REPLIES[10 + usize::from(how % 2)];
            self.session.received(self.now, b"%0\r\n");
            self.session.received(self.now, info.as_bytes());
            assert_eq!(self.session.phase(), Phase::Answering, "greeted");
        }
    }

    /// The peer replies to the oldest command.
    fn hear_reply(&mut self, text: &str) {
        let is_ready = self.session.phase() == Phase::Answering;
        self.write(0);
        let next = self.written.as_mut().and_then(VecDeque::pop_front);
        let number = next.map_or(1, |(_, number)| number);
        self.session
            .received(self.now, reply(text, number).as_bytes());
        let Some((serial, _)) = next else { return };
        if !is_ready || self.session.is_down() {
            return;
        }
        while let Some(answer) = self.next_answer() {
            if let (Some(serial), true) = (serial, answer.reply.vote != Vote::Failed) {
                assert_eq!(answer.ticket.serial(), serial, "a vote for another command");
            }
            self.answered(answer.ticket.serial());
        }
    }

    fn cancel(&mut self, nth: usize) {
        let Some(serial) = self.waiting.iter().nth(nth).copied() else {
            return;
        };
        self.take_answers();
        let was_unsent = self.session.cancel(Ticket::new(0, serial));
        if self.waiting.remove(&serial) && !was_unsent {
            self.released.insert(serial);
        }
    }

    /// Writes the output in two pieces, and checks it.
    fn write(&mut self, first: usize) {
        self.session.about_to_write();
        for most in [first, usize::MAX] {
            let output = self.session.output();
            let count = output.len().min(most);
            self.rest.extend_from_slice(&output[..count]);
            self.session.wrote(count);
        }
        let may_command = self.session.phase() == Phase::Answering;
        let mut used = 0;
        while let Ok(Some((Reply::Array(words), length))) = decode(&self.rest[used..]) {
            let words: Vec<&[u8]> = words
                .iter()
                .filter_map(|w| {
                    if let Reply::Bulk(w) = w {
                        Some(w)
                    } else {
                        None
                    }
                })
                .collect();
            used += length;
            let is_listening = [&b"TRACKING"[..], b"CACHING"].contains(&words[1 % words.len()]);
            let is_greeting = [&b"HELLO"[..], b"CLIENT"].contains(&words[0]) && !is_listening;
            if is_greeting || words == [&b"INFO"[..], b"server"] {
                continue;
            }
            assert!(
                may_command,
                "{:?} before the greeting is answered",
                words[0]
            );
            // A PING or a question has no token; a handoff has the token of the former lock, and
            // then its own.
            let token = words.iter().rfind(|word| is_token(word));
            let serial = token
                .map(|token| u64::from_be_bytes(token[..8].try_into().expect("a token is longer")));
            if let Some(written) = &mut self.written {
                let last = words.last().and_then(|word| std::str::from_utf8(word).ok());
                let number = last.and_then(|word| word.parse().ok()).unwrap_or(0);
                written.push_back((serial, number));
            }
        }
        self.rest.drain(..used);
        if self.session.is_down() {
            self.rest.clear();
            self.written = None;
        }
    }

    fn take_answers(&mut self) {
        while let Some(answer) = self.next_answer() {
            self.answered(answer.ticket.serial());
        }
    }

    fn next_answer(&mut self) -> Option<Answer> {
        loop {
            if let SessionEvent::Answer(answer) = self.session.poll()? {
                return Some(answer);
            }
        }
    }

    fn answered(&mut self, serial: u64) {
        let was_expected = self.waiting.remove(&serial) || self.released.remove(&serial);
        assert!(
            was_expected,
            "{serial} was answered twice, or was cancelled"
        );
    }

    fn check_limits(&mut self) {
        let (in_flight, pending_releases) = self.session.load();
        if !self.session.is_down() {
            // There is one for each lock, and the input may have any number of locks.
            self.pending_max = self.pending_max.max(pending_releases + IN_FLIGHT_MAX);
        }
        assert!(in_flight <= IN_FLIGHT_MAX && pending_releases <= self.pending_max);
        assert!(self.session.output().len() <= 2 * IN_FLIGHT_BYTES_MAX);
    }

    /// At the end, each waiting request gets an error.
    fn end(mut self) {
        if self.session.is_down() {
            self.session.connecting(self.now, Phase::Connecting);
        }
        self.session
            .closed(self.now, NodeError::Disconnected("the end".to_owned()));
        self.take_answers();
        assert!(
            self.waiting.is_empty(),
            "never answered: {:?}",
            self.waiting
        );
    }
}
