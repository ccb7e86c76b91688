//! The meaning of answers to a handoff.

use super::*;

#[test]
fn a_handoff_distinguishes_our_key_from_a_missing_key_and_counts_the_waiters() {
    let handoff = request(Verb::Handoff, 7, at(0));
    for (state, is_new) in [(0, false), (1, true)] {
        for waiting in [0, 1, 70] {
            let bytes = format!("*4\r\n:57\r\n:{state}\r\n:0\r\n:{waiting}\r\n");
            let expected = NodeReply {
                is_awaited: waiting > 0,
                ..claimed(is_new, 0)
            };
            assert_eq!(meaning(&handoff, bytes), Ok(expected));
        }
    }
    assert_eq!(meaning(&handoff, ":-57\r\n"), Ok(no()));
    let others = [
        ":57\r\n",
        ":1\r\n",
        "*4\r\n:57\r\n:2\r\n:0\r\n:0\r\n",
        "*4\r\n:57\r\n:-1\r\n:0\r\n:0\r\n",
        "*4\r\n:56\r\n:1\r\n:0\r\n:0\r\n",
        "*4\r\n:-57\r\n:1\r\n:0\r\n:0\r\n",
        "*4\r\n:57\r\n:1\r\n:0\r\n:-1\r\n",
        "*4\r\n:57\r\n:1\r\n:0\r\n$1\r\n0\r\n",
        "*1\r\n:57\r\n",
        "*2\r\n:57\r\n:1\r\n",
        "*3\r\n:57\r\n:1\r\n:1\r\n",
        "*5\r\n:57\r\n:1\r\n:0\r\n:1\r\n:1\r\n",
        "+OK\r\n",
    ];
    others.iter().for_each(|bytes| is_nonsense(&handoff, bytes));
}
