//! Decodes the escapes in which servers and proxies write bytes that they quote.

/// A text without its escapes, and where each of its bytes begins in the text as it was.
pub(super) struct Unescaped {
    pub(super) bytes: Vec<u8>,
    pub(super) starts: Vec<usize>,
}

impl Unescaped {
    /// Decodes `\x2d`, `\055`, `\u002d`, `\u{2d}`, `%2d`, and a backslash before any other
    /// character.
    pub(super) fn of(text: &[u8]) -> Self {
        let mut unescaped = Self {
            bytes: Vec::new(),
            starts: Vec::new(),
        };
        let mut at = 0;
        while at < text.len() {
            let (bytes, length) = escape(&text[at..]).unwrap_or((vec![text[at]], 1));
            unescaped.bytes.extend(bytes);
            unescaped.starts.resize(unescaped.bytes.len(), at);
            at += length;
        }
        unescaped
    }
}

/// The bytes for which the escape at the beginning of the text stands, and its length.
fn escape(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    Some(match text {
        [b'%', rest @ ..] => (byte(rest.get(..2)?, 16)?, 3),
        [b'\\', b'x', rest @ ..] if number(rest.get(..2)?, 16).is_some() => {
            (byte(&rest[..2], 16)?, 4)
        }
        [b'\\', b'u', b'{', rest @ ..] => {
            let length = rest.iter().take(7).position(|byte| *byte == b'}')?;
            (character(&rest[..length])?, length + 4)
        }
        [b'\\', b'u', rest @ ..] => (character(rest.get(..4)?)?, 6),
        [b'\\', b'0'..=b'3', ..] => (byte(text.get(1..4)?, 8)?, 4),
        [b'\\', b'n', ..] => (vec![b'\n'], 2),
        [b'\\', b'r', ..] => (vec![b'\r'], 2),
        [b'\\', b't', ..] => (vec![b'\t'], 2),
        [b'\\', byte, ..] if byte.is_ascii_punctuation() => (vec![*byte], 2),
        _ => return None,
    })
}

fn byte(digits: &[u8], radix: u32) -> Option<Vec<u8>> {
    let byte = number(digits, radix)?.try_into().ok()?;
    Some(vec![byte])
}

fn character(digits: &[u8]) -> Option<Vec<u8>> {
    let character = char::from_u32(number(digits, 16)?)?;
    Some(character.to_string().into_bytes())
}

/// A number of digits only.
fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let digits = std::str::from_utf8(digits)
        .ok()
        .filter(|digits| !digits.starts_with('+'))?;
    u32::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_and_the_rest_stays() {
        let table: [(&str, &[u8]); 12] = [
            ("plain", b"plain"),
            ("a\\x2db", b"a-b"),
            ("a\\055b", b"a-b"),
            ("a\\u002db\\u{2d}", b"a-b-"),
            ("a%2db%2D", b"a-b-"),
            ("\\\"q\\\"\\\\", b"\"q\"\\"),
            ("\\r\\n\\t", b"\r\n\t"),
            ("\\u{e9}", b"\xc3\xa9"),
            ("100% of %zz %+1 %2", b"100% of %zz %+1 %2"),
            ("\\xz1 \\x", b"\\xz1 \\x"),
            ("\\u{110000} \\u{} \\ud800", b"\\u{110000} \\u{} \\ud800"),
            ("\\", b"\\"),
        ];
        for (text, expected) in table {
            let unescaped = Unescaped::of(text.as_bytes());
            assert_eq!(unescaped.bytes, expected, "{text}");
            assert_eq!(unescaped.starts.len(), expected.len());
            assert!(unescaped.starts.is_sorted() && unescaped.starts[0] == 0);
        }
        assert_eq!(Unescaped::of(b"a\\x2db").starts, [0, 1, 5]);
    }
}
