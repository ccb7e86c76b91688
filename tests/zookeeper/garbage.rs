//! A session and a contender whose server says anything at all: they end in no panic, every request
//! has one answer, and nothing is taken for a session that lives.

use super::random::Random;
use redlatch::internal::Time;
use redlatch::internal::zookeeper::contender::{Contender, Plan, Step};
use redlatch::internal::zookeeper::jute::{FrameWriter, Reader, frame as frame_of};
use redlatch::internal::zookeeper::path::{Directory, Root};
use redlatch::internal::zookeeper::session::{Outcome, Problem, Session, SessionOptions, Ticket};
use std::collections::{BTreeMap, VecDeque};

/// Conversations, and the frames of each.
const CONVERSATIONS: u64 = 4_000;
const FRAMES: u64 = 60;

#[test]
fn a_server_may_say_anything() {
    let mut answered = 0;
    for seed in 0..CONVERSATIONS {
        answered += converse(&mut Random::new(seed));
    }
    assert!(answered > CONVERSATIONS, "the server is understood now and then: {answered}");
}

/// Returns how many requests had a reply.
fn converse(random: &mut Random) -> u64 {
    let mut session = Session::new(SessionOptions::new(2, random.below(100)));
    let root = Root::new("/locks").expect("a path");
    let directory = Directory::new(&root, b"", b"a").expect("a path");
    let mut contender = Contender::new(Plan::new(&root, directory));
    let mut asked = BTreeMap::new();
    let mut requests = VecDeque::new();
    let (mut millis, mut number, mut answered) = (1_000, 0, 0);
    for _ in 0..FRAMES {
        millis += random.below(300);
        let now = Time::from_millis(millis);
        while let Some(step) = contender.poll(now, session.valid_until()) {
            number += 1;
            let ticket = Ticket::new(number);
            match step {
                Step::Begin => contender.begin(now, [random.below(4) as u8; 16]),
                Step::Send(serial, request) => {
                    asked.insert(number, serial);
                    session.send(now, ticket, request);
                }
                Step::Keep(path) => session.keep(path),
                Step::Delete(serial, path) => {
                    let ticket = serial.map(|serial| {
                        asked.insert(number, serial);
                        ticket
                    });
                    session.delete(now, ticket, path);
                }
                Step::Held(_) if random.one_in(2) => contender.give_up(),
                _ => {}
            }
        }
        if session.wants_connection(now) {
            session.connecting(now);
            session.connected(now);
            session.wrote(session.output().len());
            requests.clear();
            session.received(now, &frame(|frame| greeting(frame, random)));
        }
        read_requests(session.output(), &mut requests);
        session.wrote(session.output().len());
        let bytes = frame(|frame| reply(frame, &mut requests, random));
        session.received(now, &bytes);
        session.tick(now);
        if random.one_in(20) {
            session.closed(now, Problem::Disconnected);
        }
        while let Some(outcome) = session.poll() {
            match outcome {
                Outcome::Answer(answer) => {
                    let serial = asked.remove(&answer.ticket().number()).expect("one answer");
                    answered += u64::from(answer.reply().is_ok());
                    contender.answered(serial, answer.zxid(), answer.reply());
                }
                Outcome::Changed { path } => contender.changed(&path),
                Outcome::Connected => contender.connected(),
                Outcome::Removed { path } => contender.removed(&path),
                Outcome::SessionLost => contender.session_lost(),
                _ => {}
            }
        }
        if session.id().is_none() {
            assert_eq!(session.valid_until(), Time::ZERO);
        }
    }
    answered
}

fn frame(write: impl FnOnce(&mut FrameWriter<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FrameWriter::begin(&mut bytes);
    write(&mut writer);
    writer.finish().expect("it is short");
    bytes
}

fn greeting(frame: &mut FrameWriter<'_>, random: &mut Random) {
    let timeout = [4_000, 4_000, 4_000, 1, 0, -1, i32::MAX][random.below(7) as usize];
    let length = if random.one_in(20) { random.below(20) as usize } else { 16 };
    frame.int(0).int(timeout).long(random.below(2) as i64 + 1).buffer(&vec![1; length]);
    frame.boolean(false);
}

/// Adds the xids and types of the requests in this output.
fn read_requests(mut output: &[u8], requests: &mut VecDeque<(i32, i32)>) {
    while let Some((body, used)) = frame_of(output).expect("a session writes frames") {
        let mut reader = Reader::new(body);
        let head = (reader.int(), reader.int());
        requests.push_back((head.0.expect("an xid"), head.1.expect("a type")));
        output = &output[used..];
    }
}

/// A reply to the oldest request, as a rule, or an event, or neither.
fn reply(frame: &mut FrameWriter<'_>, requests: &mut VecDeque<(i32, i32)>, random: &mut Random) {
    let (xid, kind) = match random.below(20) {
        0 => (-1, 0),
        1 => (7, 0),
        _ => requests.pop_front().unwrap_or((1, 0)),
    };
    let error = [0, 0, 0, 0, -101, -110, -112, -118, -127, 7][random.below(10) as usize];
    frame.int(xid).long(random.below(1_000) as i64).int(error);
    if error != 0 && !random.one_in(8) {
        return;
    }
    match kind {
        _ if random.one_in(4) => write_garbage(frame, random),
        15 => {
            let id = format!("{:02x}", random.below(4));
            let uuid = format!("{0}-{1}-4{2}-8{2}-{0}{1}", id.repeat(4), id.repeat(2), &id[..1]);
            frame.text(&format!("/locks/a/_c_{uuid}-lock-{:010}", random.below(3)));
            write_stat(frame);
        }
        12 => {
            frame.int(1).text(&format!("lock-{:010}", random.below(3)));
            write_stat(frame);
        }
        9 => {
            frame.text("/locks/a");
        }
        4 => {
            frame.buffer(b"owner");
            write_stat(frame);
        }
        3 => write_stat(frame),
        14 => {
            frame.int(13).boolean(false).int(0).int(-1).boolean(true).int(-1);
        }
        _ => {}
    }
}

fn write_stat(frame: &mut FrameWriter<'_>) {
    for _ in 0..17 {
        frame.int(1);
    }
}

fn write_garbage(frame: &mut FrameWriter<'_>, random: &mut Random) {
    for _ in 0..random.below(4) {
        match random.below(5) {
            0 => {
                frame.text("/locks/a/x-lock-0000000007");
            }
            1 => {
                frame.int(random.below(4) as i32 - 1);
            }
            2 => {
                frame.boolean(random.one_in(2));
            }
            3 => {
                frame.buffer(&[0xff; 3]);
            }
            _ => write_stat(frame),
        }
    }
}
