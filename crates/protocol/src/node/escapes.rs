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
        let mut unescaped = Self { bytes: Vec::new(), starts: Vec::new() };
        let mut at = 0;
        while at < text.len() {
            let (character, length) = escape(&text[at..]).unwrap_or((Code::Byte(text[at]), 1));
            match character {
                Code::Byte(byte) => unescaped.bytes.push(byte),
                Code::Character(character) => {
                    let mut buffer = [0; 4];
                    let encoded = character.encode_utf8(&mut buffer);
                    unescaped.bytes.extend_from_slice(encoded.as_bytes());
                }
            }
            unescaped.starts.resize(unescaped.bytes.len(), at);
            at += length;
        }
        unescaped
    }
}

/// What an escape stands for.
enum Code {
    Byte(u8),
    Character(char),
}

/// The escape at the beginning of the text, and its length.
fn escape(text: &[u8]) -> Option<(Code, usize)> {
    match text {
        [b'%', rest @ ..] => Some((Code::Byte(number(rest.get(..2)?, 16)?.try_into().ok()?), 3)),
        [b'\\', b'x', rest @ ..] if number(rest.get(..2)?, 16).is_some() => {
            Some((Code::Byte(number(&rest[..2], 16)?.try_into().ok()?), 4))
        }
        [b'\\', b'u', b'{', rest @ ..] => {
            let length = rest.iter().take(7).position(|byte| *byte == b'}')?;
            let code = number(&rest[..length], 16)?;
            Some((Code::Character(char::from_u32(code)?), length + 4))
        }
        [b'\\', b'u', rest @ ..] => {
            let code = number(rest.get(..4)?, 16)?;
            Some((Code::Character(char::from_u32(code)?), 6))
        }
        [b'\\', b'0'..=b'3', ..] => {
            Some((Code::Byte(number(text.get(1..4)?, 8)?.try_into().ok()?), 4))
        }
        [b'\\', b'n', ..] => Some((Code::Byte(b'\n'), 2)),
        [b'\\', b'r', ..] => Some((Code::Byte(b'\r'), 2)),
        [b'\\', b't', ..] => Some((Code::Byte(b'\t'), 2)),
        [b'\\', byte, ..] if byte.is_ascii_punctuation() => Some((Code::Byte(*byte), 2)),
        _ => None,
    }
}

/// A number of digits only.
fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
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
