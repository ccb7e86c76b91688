//! The meaning of answers about shares.

use super::*;
use crate::engine::FENCE_MAX;
use std::fmt::Display;

/// The answer of a node that grants a share.
fn answer(counter: impl Display, permit: impl Display) -> String {
    format!("*4\r\n:57\r\n:1\r\n:{counter}\r\n:{permit}\r\n")
}

#[test]
fn a_grant_names_the_counter_and_the_permit() {
    let claimed = |counter, permit| {
        Ok(NodeReply {
            permit,
            ..claimed(true, counter)
        })
    };
    for verb in [Verb::Acquire, Verb::Turn] {
        for counter in [0, 1, FENCE_MAX] {
            let reader = meaning(&about_share(verb, READER), answer(counter, -1));
            assert_eq!(reader, claimed(counter, None), "{verb:?}");
            for permit in 0..4 {
                let found = meaning(&about_share(verb, ANY), answer(counter, permit));
                assert_eq!(found, claimed(counter, Some(permit)), "{verb:?}");
            }
        }
        let most = Share::Permit {
            of: PERMITS_MAX,
            number: None,
        };
        let last = meaning(&about_share(verb, most), answer(0, PERMITS_MAX - 1));
        assert_eq!(last, claimed(0, Some(PERMITS_MAX - 1)));
        for of in [READER, ANY] {
            let share = about_share(verb, of);
            assert_eq!(meaning(&share, ":-57\r\n"), Ok(no()), "{verb:?}");
            assert_eq!(meaning(&share, "-WRONGTYPE a list\r\n"), Ok(no()));
            assert_eq!(
                meaning(&share, "-NOSCRIPT No matching\r\n"),
                Err(NoReply::UnknownScript)
            );
        }
    }
}

#[test]
fn a_share_that_was_not_requested_is_nonsense() {
    for verb in [Verb::Acquire, Verb::Turn] {
        let reader = about_share(verb, READER);
        let permit = about_share(verb, ANY);
        for number in [0, 1, 3, 4, -2, i64::MAX, i64::MIN] {
            is_nonsense(&reader, &answer(0, number));
        }
        // A reader's, one that does not exist, and numbers that are not its own when they are cut
        // to 32 bits.
        for number in [-1, -2, 4, 5, 1 << 32, (1 << 32) + 1, i64::MAX, i64::MIN] {
            is_nonsense(&permit, &answer(0, number));
        }
        // The answers to a plain lock.
        for share in [reader, permit] {
            [
                "+OK\r\n",
                "_\r\n",
                "$-1\r\n",
                ":57\r\n",
                "*3\r\n:57\r\n:1\r\n:0\r\n",
            ]
            .iter()
            .for_each(|bytes| is_nonsense(&share, bytes));
        }
    }
    let plain = request(Verb::Acquire, 7, at(0));
    is_nonsense(&plain, &answer(0, -1));
    is_nonsense(&plain, &answer(0, 1));
}

#[test]
fn an_invalid_answer_to_a_share_is_nonsense() {
    for (of, permit) in [(READER, -1), (ANY, 1)] {
        let acquire = about_share(Verb::Acquire, of);
        let valid = answer(9, permit);
        assert_eq!(
            meaning(&acquire, &valid).unwrap().counter,
            Some(9),
            "{of:?}"
        );
        let last = format!(":{permit}\r\n");
        let table = [
            // Another command's number, and a refusal with a list.
            valid.replace(":57", ":56"),
            valid.replace(":57", ":-57"),
            // Not granted.
            valid.replace(":57\r\n:1\r\n", ":57\r\n:0\r\n"),
            valid.replace(":57\r\n:1\r\n", ":57\r\n:2\r\n"),
            valid.replace(":57\r\n:1\r\n", ":57\r\n$1\r\n1\r\n"),
            // No counter that a node can have.
            answer(-1, permit),
            answer(FENCE_MAX + 1, permit),
            answer(i64::MAX, permit),
            valid.replace(":9\r\n", "$1\r\n9\r\n"),
            valid.replace(":9\r\n", "_\r\n"),
            // No permit, and a string.
            valid.replace(&format!(":9\r\n{last}"), ":9\r\n_\r\n"),
            valid.replace(&format!(":9\r\n{last}"), ":9\r\n$1\r\n1\r\n"),
            // Too short, and too long.
            valid
                .replace("*4", "*3")
                .replace(&format!(":9\r\n{last}"), ":9\r\n"),
            "*1\r\n:57\r\n".to_owned(),
            "*0\r\n".to_owned(),
            format!("{}:1\r\n", valid.replace("*4", "*5")),
            ":56\r\n".to_owned(),
            ":-56\r\n".to_owned(),
        ];
        table.iter().for_each(|bytes| is_nonsense(&acquire, bytes));
    }
}

#[test]
fn keeping_and_giving_back_a_share_is_answered_with_yes_or_no() {
    for verb in [Verb::Extend, Verb::Restore, Verb::Release, Verb::Undo] {
        for of in [READER, THIRD] {
            let request = about_share(verb, of);
            assert_eq!(meaning(&request, ":57\r\n"), Ok(yes()), "{verb:?}");
            assert_eq!(meaning(&request, ":-57\r\n"), Ok(no()), "{verb:?}");
            let others = [
                ":1\r\n",
                ":56\r\n",
                "+OK\r\n",
                "_\r\n",
                &answer(0, -1),
                &answer(0, 2),
            ];
            others.iter().for_each(|bytes| is_nonsense(&request, bytes));
        }
    }
}

#[test]
fn only_members_of_the_set_of_holders_are_read_as_such() {
    type Member<'a> = (Option<u32>, &'a [u8]);
    let table: [(&[u8], Option<Member<'_>>); 14] = [
        (b":value", Some((None, b"value"))),
        (b"0:value", Some((Some(0), b"value"))),
        (b"1023:value", Some((Some(1_023), b"value"))),
        // Tokens may have any bytes.
        (b"7::a:b\r\n", Some((Some(7), b":a:b\r\n"))),
        (b":", Some((None, b""))),
        (b"4294967296:value", None),
        (b"-1:value", None),
        (b"+1:value", None),
        (b" 1:value", None),
        (b"a:value", None),
        (b"\xff:value", None),
        (b"value", None),
        (b"12", None),
        (b"", None),
    ];
    for (member, expected) in table {
        assert_eq!(read_member(member), expected, "{}", member.escape_ascii());
    }
}

#[test]
fn a_waiter_that_is_called_for_a_permit_is_answered_which_are_free() {
    let free = |share, digits: &str| {
        let text = ":57 :7 :0 :1 :5 :1".replace(' ', "\r\n");
        let text = format!("*7\r\n{text}\r\n${}\r\n{digits}\r\n", digits.len());
        meaning(&about_share(Verb::Queue, share), &text)
    };
    for (digits, numbers) in [
        ("", &[][..]),
        ("0000", &[]),
        ("0110", &[1, 2]),
        ("1001", &[0, 3]),
    ] {
        let view = free(ANY, digits).unwrap().view.unwrap();
        assert_eq!(view.free.numbers().collect::<Vec<_>>(), numbers);
    }
    for (share, digits) in [(ANY, "00001"), (READER, "1"), (ANY, "x"), (READER, "x")] {
        assert!(
            matches!(free(share, digits), Err(NoReply::Nonsense(_))),
            "{digits}"
        );
    }
}
