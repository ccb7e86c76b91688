//! A session and a contender whose server says anything at all: they end in no panic, every request
//! has one answer, and nothing is taken for a session that lives.

use super::random::Random;
use redlatch_protocol::engine::Share;
use redlatch_protocol::time::Time;
use redlatch_zookeeper::contender::{Contender, ContenderPlan, ContenderStep};
use redlatch_zookeeper::jute::{FrameWriter, Reader, frame as frame_of};
use redlatch_zookeeper::path::{Directory, Root};
use redlatch_zookeeper::session::{EnsembleSession, EnsembleSessionOptions, Problem, SessionEvent};
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
    assert!(
        answered > CONVERSATIONS,
        "the server is understood now and then: {answered}"
    );
}

/// Returns how many requests had a reply.
fn converse(random: &mut Random) -> u64 {
    let mut session = EnsembleSession::new(EnsembleSessionOptions::new(2, random.below(100)));
    let mut contender = Contender::new(some_plan(random));
    let mut asked = BTreeMap::new();
    let mut requests = VecDeque::new();
    let mut millis = 1_000;
    let mut number = 0;
    let mut answered = 0;
    for _ in 0..FRAMES {
        millis += random.below(300);
        let now = Time::from_millis(millis);
        while let Some(step) = contender.poll(now, session.valid_until()) {
            number += 1;
            let ticket = number;
            match step {
                ContenderStep::Begin => contender.begin([random.below(4) as u8; 16]),
                ContenderStep::Send(serial, request) => {
                    asked.insert(number, serial);
                    session.send(now, ticket, request);
                }
                ContenderStep::Keep(path) => session.keep(path),
                ContenderStep::Forget(path) => session.forget(&path),
                ContenderStep::Delete(serial, path) => {
                    let ticket = serial.map(|serial| {
                        asked.insert(number, serial);
                        ticket
                    });
                    session.delete(now, ticket, path);
                }
                ContenderStep::Held(_) if random.one_in(2) => contender.give_up(),
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
                SessionEvent::Answer(ticket, answer) => {
                    let serial = asked.remove(&ticket).expect("one answer");
                    answered += u64::from(answer.reply().is_ok());
                    contender.answered(serial, answer.zxid, answer.reply());
                }
                SessionEvent::Changed { path } => contender.changed(&path),
                SessionEvent::Connected => contender.connected(),
                SessionEvent::Removed { path } => contender.removed(&path),
                SessionEvent::SessionLost => contender.session_lost(),
                _ => {}
            }
        }
        if session.id().is_none() {
            assert_eq!(session.valid_until(), Time::ZERO);
        }
    }
    answered
}

/// A writer's, a reader's, a permit's, or that of a set.
fn some_plan(random: &mut Random) -> ContenderPlan {
    let root = Root::new("/locks").expect("a path");
    let directory = |name| Directory::new(&root, b"", name).expect("a path");
    let mut plan = ContenderPlan::of_set(&root, vec![directory(b"a")]);
    match random.below(4) {
        0 => plan = ContenderPlan::of_set(&root, vec![directory(b"a"), directory(b"b")]),
        1 => plan.share = Some(Share::Reader),
        2 => {
            plan.share = Some(Share::Permit {
                of: 2,
                number: None,
            });
        }
        _ => {}
    }
    plan
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
    let length = if random.one_in(20) {
        random.below(20) as usize
    } else {
        16
    };
    frame
        .int(0)
        .int(timeout)
        .long(random.below(2) as i64 + 1)
        .buffer(&vec![1; length]);
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
            frame.text(&format!("/locks/a/{}", contender_name(random)));
            write_stat(frame);
        }
        12 => {
            let name = match random.below(3) {
                0 => contender_name(random),
                1 => format!("r{}", uuid(random)),
                _ => format!("lock-{:010}", random.below(3)),
            };
            frame.int(1).text(&name);
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
            for lock in ["a", "b"].into_iter().take(random.below(3) as usize) {
                match random.below(4) {
                    0 => frame.int(13).boolean(false).int(0),
                    1 => frame.int(-1).boolean(false).int(0).int(-101),
                    _ => {
                        let path = format!("/locks/{lock}/{}", contender_name(random));
                        frame.int(1).boolean(false).int(0).text(&path)
                    }
                };
            }
            frame.int(-1).boolean(true).int(-1);
        }
        _ => {}
    }
}

/// The id of one of a few contenders.
fn uuid(random: &mut Random) -> String {
    let byte = format!("{:02x}", random.below(4));
    let two = byte.repeat(2);
    let four = byte.repeat(4);
    format!("{four}-{two}-4{0}{byte}-8{0}{byte}-{four}{two}", &byte[1..])
}

fn contender_name(random: &mut Random) -> String {
    format!("_c_{}-lock-{:010}", uuid(random), random.below(3))
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
