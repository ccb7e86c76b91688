//! The meaning of answers to a handoff.

use super::*;

#[test]
fn a_handoff_distinguishes_our_key_from_a_missing_key_and_counts_the_waiters() {
    let read = |bytes: &str| {
        let (reply, _) = decode(bytes.as_bytes()).expect("RESP").expect("a whole reply");
        meaning(&request(Verb::Handoff, 7, at(0)), NUMBER, &reply, None)
    };
    for (state, is_new) in [(0, false), (1, true)] {
        for waiting in [0, 1, 70] {
            let found = read(&format!("*4\r\n:57\r\n:{state}\r\n:0\r\n:{waiting}\r\n"));
            assert_eq!(found, Meaning::Claimed { is_new, counter: 0, waiting, permit: None });
        }
    }
    assert_eq!(read(":-57\r\n"), Meaning::Vote(Vote::Refused));
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
    for bytes in others {
        assert!(matches!(read(bytes), Meaning::Nonsense(_)), "{bytes:?}");
    }
}
