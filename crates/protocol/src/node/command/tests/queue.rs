//! The queue: the encoding of its requests, and the meaning of their answers.

use super::*;
use crate::engine::{
    Channel, Command, Listen, ListenStep, PermitSet, QueueView, WAITER_NUMBER_MAX,
};
use crate::node::command::{Notification, is_reservation, read_notification};
use crate::node::fixture::{WAITER, fenced};
use crate::node::script;
use std::time::Duration;

const TOKEN: &[u8] = &[7; Token::LEN];
const OTHER: &[u8] = &[WAITER; Token::LEN];

/// A request about a lock with an owner's label and these keys after its first.
fn labelled(verb: Verb, more_keys: Vec<Arc<[u8]>>) -> Request {
    let owner = b"host-3 \xff".to_vec();
    let attributes = LockAttributes {
        owner,
        more_keys,
        ..LockAttributes::default()
    };
    about(
        verb,
        LockId {
            attributes: Some(Arc::new(attributes)),
            ..lock(7)
        },
        at(0),
    )
}

/// A removal that takes a waiter out of the queue.
fn leaving(mut request: Request) -> Request {
    request.removal_mut().waiter = Some(Token::new([WAITER; Token::LEN]));
    request
}

#[test]
fn a_waiter_sends_its_name_its_number_the_attempt_to_withdraw_and_its_lease() {
    let queue = script::QUEUE;
    let mut request = request(Verb::Queue, 7, at(0));
    let entry = request.entry_mut();
    (entry.waiter, entry.number) = (Token::new([WAITER; Token::LEN]), 41);
    let expected: &[&[u8]] = &[
        b"EVALSHA",
        queue.sha1.as_bytes(),
        b"1",
        b"key",
        OTHER,
        b"41",
        TOKEN,
        b"7 350 1000  ",
        b"1000",
        b"57",
    ];
    assert_eq!(encoded(&request, Form::Digest), words(expected));
    let request = labelled(Verb::Queue, Vec::new());
    let value = [TOKEN, b"host-3 \xff"].concat();
    let expected: &[&[u8]] = &[
        b"EVAL",
        queue.source.as_bytes(),
        b"1",
        b"key",
        TOKEN,
        b"0",
        &value,
        b"7 350 1000  host-3 \xff",
        b"1000",
        b"57",
    ];
    assert_eq!(encoded(&request, Form::Source), words(expected));
}

#[test]
fn a_turn_sends_the_waiter_and_a_new_token() {
    // It is a claim in place of the waiter's reservation.
    let claim = script::CLAIM.sha1.as_bytes();
    let reserved = [RESERVED, OTHER].concat();
    let plain = request(Verb::Turn, 7, at(0));
    let call: &[&[u8]] = &[
        b"EVALSHA", claim, b"1", b"key", b"1", &reserved, TOKEN, b"1000",
    ];
    let expected = [call, &[b"50", b"0", OTHER, b"57"]].concat();
    assert_eq!(encoded(&plain, Form::Digest), words(&expected));
    let expected: &[&[u8]] = &[
        b"EVALSHA",
        claim,
        b"2",
        b"key",
        b"key:redlatch:fence",
        b"1",
        &reserved,
        TOKEN,
        b"1000",
        b"50",
        b"3600000",
        OTHER,
        b"57",
    ];
    assert_eq!(
        encoded(&fenced(Verb::Turn, 7, at(0)), Form::Digest),
        words(expected)
    );
}

#[test]
fn a_waiter_leaves_with_the_removal_of_its_token() {
    let source = script::GIVE.source.as_bytes();
    for verb in [Verb::Release, Verb::Undo] {
        let expected: &[&[u8]] = &[b"EVAL", source, b"1", b"key", TOKEN, OTHER, b"", b"57"];
        for leave in [
            leaving(request(verb, 7, at(0))),
            leaving(fenced(verb, 7, at(0))),
        ] {
            assert_eq!(encoded(&leave, Form::Source), words(expected), "{verb:?}");
            assert_eq!(meaning(&leave, ":57\r\n"), Ok(yes()));
            assert_eq!(meaning(&leave, ":-57\r\n"), Ok(no()));
        }
    }
}

#[test]
fn a_lock_that_stays_taken_for_a_while_loses_its_waiter_and_so_does_a_set_of_keys() {
    let mut lingering = leaving(request(Verb::Release, 7, at(0)));
    lingering.removal_mut().keep_for = Some(ttl(29_000));
    let source = script::GIVE.source.as_bytes();
    let expected: &[&[u8]] = &[b"EVAL", source, b"1", b"key", TOKEN, OTHER, b"29000", b"57"];
    assert_eq!(encoded(&lingering, Form::Source), words(expected));

    let several = leaving(labelled(Verb::Undo, vec![Arc::from(&b"more"[..])]));
    let value = [TOKEN, b"host-3 \xff"].concat();
    let expected: &[&[u8]] = &[
        b"EVAL", source, b"2", b"key", b"more", &value, OTHER, b"", b"57",
    ];
    assert_eq!(encoded(&several, Form::Source), words(expected));
}

#[test]
fn being_notified_takes_four_commands() {
    let mut request = request(Verb::Listen, 7, at(0));
    let mut listen = |step| {
        request.command = Command::Listen(Listen {
            key: Arc::from(&b"key"[..]),
            step,
        });
        request.clone()
    };
    let channel = Channel {
        number: 0xab,
        is_sharded: false,
    };
    let subscribe = listen(ListenStep::Subscribe(channel));
    let expected = words(&[b"SUBSCRIBE", b"redlatch:00000000000000ab"]);
    assert_eq!(encoded(&subscribe, Form::Source), expected);
    let subscribed = ">3\r\n$9\r\nsubscribe\r\n$25\r\nredlatch:00000000000000ab\r\n:1\r\n";
    assert_eq!(meaning(&subscribe, subscribed), Ok(yes()));
    ["+OK\r\n", ":57\r\n", ">1\r\n$1\r\nx\r\n"]
        .iter()
        .for_each(|bytes| is_nonsense(&subscribe, bytes));
    let enable = listen(ListenStep::Enable);
    let expected = words(&[b"CLIENT", b"TRACKING", b"ON", b"OPTIN"]);
    assert_eq!(encoded(&enable, Form::Source), expected);
    let opt_in = listen(ListenStep::OptIn);
    assert_eq!(
        encoded(&opt_in, Form::Source),
        words(&[b"CLIENT", b"CACHING", b"YES"])
    );
    for step in [enable, opt_in] {
        assert_eq!(meaning(&step, "+OK\r\n"), Ok(yes()));
        [":57\r\n", "_\r\n", "$2\r\nOK\r\n"]
            .iter()
            .for_each(|bytes| is_nonsense(&step, bytes));
        assert_eq!(script_of(&step), None);
    }
    let read_key = listen(ListenStep::Read(Token::new([WAITER; Token::LEN])));
    let source = script::LISTEN.source.as_bytes();
    assert_eq!(
        encoded(&read_key, Form::Source),
        words(&[b"EVAL", source, b"1", b"key", b"57"])
    );
    assert_eq!(meaning(&read_key, ":57\r\n"), Ok(yes()));
    assert_eq!(
        meaning(&read_key, ":-57\r\n"),
        Ok(no()),
        "there is no such key"
    );
    ["+OK\r\n", ":56\r\n", "_\r\n"]
        .iter()
        .for_each(|bytes| is_nonsense(&read_key, bytes));
}

#[test]
fn a_waiter_is_answered_with_its_number_its_place_and_the_state_of_the_lock() {
    let queue = request(Verb::Queue, 7, at(0));
    let millis = |it| Some(Duration::from_millis(it));
    let free = PermitSet::default();
    let table = [
        // Number, place, reserved, ttl, length.
        ([1, 0, 0, 1, 1], (0, false, millis(1))),
        ([9, 4, 0, 900, 5], (4, false, millis(900))),
        ([9, 0, 1, 0, 70], (0, true, millis(0))),
        // The sum of 1 for a reservation and 2 for a waiter that was out of the queue.
        ([9, 0, 2, 0, 70], (0, false, millis(0))),
        ([9, 0, 3, 0, 70], (0, true, millis(0))),
        // No key, and a key without a ttl.
        ([9, 0, 0, -2, 1], (0, false, None)),
        ([9, 0, 0, -1, 1], (0, false, None)),
        ([WAITER_NUMBER_MAX as i64, 0, 1, 5, 1], (0, true, millis(5))),
    ];
    for (numbers, (place, is_reserved, left)) in table {
        let was_out = numbers[2] & 2 == 2;
        let lacks = None;
        let is_heard = false;
        let view = QueueView {
            place,
            is_reserved,
            lacks,
            was_out,
            left,
            is_heard,
            free: free.clone(),
        };
        let counter = Some(numbers[0] as u64);
        let view = Some(Box::new(view));
        let expected = NodeReply {
            counter,
            view,
            ..yes()
        };
        let found = meaning(&queue, answer(NUMBER as i64, numbers));
        assert_eq!(found, Ok(expected), "{numbers:?}");
    }
}

fn answer(proof: i64, numbers: [i64; 5]) -> String {
    let numbers: String = numbers
        .iter()
        .map(|number| format!(":{number}\r\n"))
        .collect();
    format!("*7\r\n:{proof}\r\n{numbers}$0\r\n\r\n")
}

#[test]
fn an_invalid_answer_to_a_waiter_is_nonsense() {
    let queue = request(Verb::Queue, 7, at(0));
    let numbers = [
        [0, 0, 0, 5, 1],
        [-1, 0, 0, 5, 1],
        [WAITER_NUMBER_MAX as i64 + 1, 0, 0, 5, 1],
        [i64::MAX, 0, 0, 5, 1],
        // A place that the queue does not have.
        [7, 1, 0, 5, 1],
        [7, -1, 0, 5, 1],
        [7, 0, 0, 5, 0],
        [7, 0, 0, 5, -1],
        [7, 0, 4, 5, 1],
        [7, 0, -1, 5, 1],
    ];
    numbers
        .into_iter()
        .for_each(|numbers| is_nonsense(&queue, &answer(NUMBER as i64, numbers)));
    let valid = answer(NUMBER as i64, [7, 0, 1, 5, 1]);
    assert_eq!(meaning(&queue, &valid).unwrap().counter, Some(7));
    for proof in [56, -57, 0] {
        is_nonsense(&queue, &answer(proof, [7, 0, 1, 5, 1]));
    }
    is_nonsense(
        &queue,
        &valid.replace("*7", "*8").replace(":7\r\n", ":7\r\n:7\r\n"),
    );
    is_nonsense(&queue, &valid.replace("*7", "*6").replace(":7\r\n", ""));
    is_nonsense(&queue, &valid.replace(":7\r\n", "_\r\n"));
    is_nonsense(&queue, &valid.replace(":5\r\n", "$1\r\n5\r\n"));
    [":57\r\n", ":-57\r\n", "+OK\r\n", "_\r\n", "*0\r\n"]
        .iter()
        .for_each(|bytes| is_nonsense(&queue, bytes));
}

#[test]
fn an_answer_to_a_set_says_for_which_of_its_keys_it_waits_if_it_has_others() {
    let set = labelled(Verb::Queue, vec![Arc::from(&b"more"[..])]);
    let answer = |flags| answer(NUMBER as i64, [7, 0, flags, 5, 1]);
    for (flags, expected) in [
        (0, None),
        (1, None),
        (4, Some(0)),
        (8, Some(1)),
        (10, Some(1)),
    ] {
        let view = meaning(&set, answer(flags)).unwrap().view.unwrap();
        assert_eq!(view.lacks, expected, "{flags}");
    }
    // It has two keys, and lacks none if all are reserved for it.
    [12, 16, 5, 9, -4]
        .into_iter()
        .for_each(|flags| is_nonsense(&set, &answer(flags)));
}

#[test]
fn a_turn_is_answered_as_a_claim() {
    let plain = request(Verb::Turn, 7, at(0));
    let expected = Ok(NodeReply {
        is_awaited: true,
        ..claimed(true, 0)
    });
    assert_eq!(meaning(&plain, "*4\r\n:57\r\n:1\r\n:0\r\n:3\r\n"), expected);
    is_nonsense(&plain, "*3\r\n:57\r\n:1\r\n:3\r\n");
    let fenced = fenced(Verb::Turn, 7, at(0));
    let expected = Ok(NodeReply {
        is_awaited: true,
        ..claimed(true, 9)
    });
    assert_eq!(
        meaning(&fenced, "*4\r\n:57\r\n:1\r\n:9\r\n:3\r\n"),
        expected
    );
    is_nonsense(&fenced, "*3\r\n:57\r\n:1\r\n:3\r\n");
    for turn in [plain, fenced] {
        assert_eq!(meaning(&turn, ":-57\r\n"), Ok(no()));
        ["+OK\r\n", ":57\r\n", "_\r\n"]
            .iter()
            .for_each(|bytes| is_nonsense(&turn, bytes));
    }
}

#[test]
fn a_message_names_a_waiter_and_says_one_of_two_things() {
    let waiter = Token::new(TOKEN.try_into().unwrap());
    let ask_in = |millis| Notification::AskIn(Duration::from_millis(millis));
    let table: [(&[&[u8]], Option<Notification>); 8] = [
        (&[TOKEN, b"r"], Some(Notification::Reserved)),
        (&[TOKEN, b"w0"], Some(ask_in(0))),
        (&[TOKEN, b"w1500"], Some(ask_in(1_500))),
        (&[TOKEN], None),
        (&[TOKEN, b"x"], None),
        (&[TOKEN, b"w"], None),
        (&[&TOKEN[1..], b"r"], None),
        (&[b""], None),
    ];
    for (parts, expected) in table {
        let expected = expected.map(|notification| (waiter, notification));
        assert_eq!(read_notification(&parts.concat()), expected, "{parts:?}");
    }
}

#[test]
fn only_reservations_are_none_of_locks() {
    let table: [(&[&[u8]], bool); 6] = [
        (&[RESERVED, TOKEN], true),
        (&[RESERVED, TOKEN, b"1000"], true),
        (&[RESERVED, &TOKEN[1..]], false),
        (&[RESERVED, TOKEN, b"x"], false),
        (&[TOKEN, b"host"], false),
        (&[b""], false),
    ];
    for (parts, expected) in table {
        assert_eq!(is_reservation(&parts.concat()), expected, "{parts:?}");
    }
}
