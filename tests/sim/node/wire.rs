//! Commands as they arrive on a connection: arrays of strings, split anywhere. A parser of its own,
//! so that the library's output is not only checked with the library's own decoder.

/// The maximum number of words of a command: a script with several keys and their counters, or with
/// all shares of a lock that an operator has seen.
const WORDS_MAX: usize = 128;

/// The words of one command.
#[derive(Debug)]
pub(super) struct Words<'a> {
    words: [&'a [u8]; WORDS_MAX],
    count: usize,
}

impl<'a> Words<'a> {
    pub(super) fn as_slice(&self) -> &[&'a [u8]] {
        &self.words[..self.count]
    }
}

/// Removes the first command from `bytes`, if it is complete.
pub(super) fn next<'a>(bytes: &mut &'a [u8]) -> Option<Words<'a>> {
    let mut rest = *bytes;
    let count = header(&mut rest, b'*')?;
    assert!(
        (1..=WORDS_MAX).contains(&count),
        "a command of {count} words"
    );
    let mut words = [&[][..]; WORDS_MAX];
    for word in &mut words[..count] {
        let size = header(&mut rest, b'$')?;
        if rest.len() < size + 2 {
            return None;
        }
        let (text, after) = rest.split_at(size);
        assert!(
            after.starts_with(b"\r\n"),
            "a string that goes on behind its end"
        );
        (*word, rest) = (text, &after[2..]);
    }
    *bytes = rest;
    Some(Words { words, count })
}

/// Are these whole commands, and none of them a plain `SET`?
pub(crate) fn are_scripts(mut bytes: &[u8]) -> bool {
    while let Some(words) = next(&mut bytes) {
        if words.as_slice()[0] == b"SET" {
            return false;
        }
    }
    bytes.is_empty()
}

/// A line of `kind` and a number.
fn header(bytes: &mut &[u8], kind: u8) -> Option<usize> {
    let (first, _) = bytes.split_first()?;
    assert_eq!(*first, kind, "a client sends arrays of strings");
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let digits = &bytes[1..end - 1];
    assert!(
        bytes[end - 1] == b'\r' && !digits.is_empty(),
        "a number ends with CRLF"
    );
    let number = digits.iter().fold(0, |number, digit| {
        assert!(digit.is_ascii_digit(), "{digit} in a number");
        number * 10 + usize::from(digit - b'0')
    });
    *bytes = &bytes[end + 1..];
    Some(number)
}

#[test]
fn a_command_is_read_when_its_last_byte_has_arrived() {
    let whole = b"*2\r\n$3\r\nGET\r\n$12\r\nlock\r\nlock:1\r\n*1\r\n";
    for end in 0..whole.len() {
        let mut bytes = &whole[..end];
        let words = next(&mut bytes);
        assert_eq!(words.is_some(), end >= whole.len() - 4, "{end}");
    }
    let mut bytes = &whole[..];
    let words = next(&mut bytes).expect("it is there");
    assert_eq!(words.as_slice(), [&b"GET"[..], b"lock\r\nlock:1"]);
    assert_eq!(bytes, b"*1\r\n");
}
