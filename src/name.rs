//! Names that a user has chosen: bytes that are usually text and need not be.

use crate::node::is_unseen;
use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};

/// Bytes chosen by a user: the name of a resource, or the label of an owner. It compares with
/// `str`, `[u8]` and everything else that is bytes.
///
/// Usually they are text, and [`as_str`](Self::as_str) returns it. `Display` shows them on one
/// line, so that they can be written to a log or a terminal: control characters, marks of
/// bidirectional text, characters of no width, quotation marks and backslashes are escaped as in
/// Rust (`\n`, `\u{202e}`, `\'`), and bytes that are not UTF-8 as `\xff`. Two different names are
/// never shown the same.
#[derive(Clone, Copy)]
pub struct Name<'a>(&'a [u8]);

impl<'a> Name<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The text, if the bytes are UTF-8. It may contain control characters: to show it, use
    /// `Display`.
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        std::str::from_utf8(self.0).ok()
    }
}

impl AsRef<[u8]> for Name<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Name<'_> {
    fn eq(&self, other: &T) -> bool {
        self.0 == other.as_ref()
    }
}

impl Eq for Name<'_> {}

impl PartialEq<Name<'_>> for str {
    fn eq(&self, other: &Name<'_>) -> bool {
        self.as_bytes() == other.0
    }
}

impl PartialEq<Name<'_>> for &str {
    fn eq(&self, other: &Name<'_>) -> bool {
        self.as_bytes() == other.0
    }
}

impl PartialEq<Name<'_>> for [u8] {
    fn eq(&self, other: &Name<'_>) -> bool {
        self == other.0
    }
}

impl PartialEq<Name<'_>> for &[u8] {
    fn eq(&self, other: &Name<'_>) -> bool {
        *self == other.0
    }
}

impl PartialOrd for Name<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// In the order of the bytes.
impl Ord for Name<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(other.0)
    }
}

impl Hash for Name<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if is_unseen(character) || matches!(character, '\'' | '"' | '\\') {
                    write!(f, "{}", character.escape_default())?;
                } else {
                    f.write_char(character)?;
                }
            }
            write!(f, "{}", chunk.invalid().escape_ascii())?;
        }
        Ok(())
    }
}

/// As `Display`, in quotation marks.
impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> String {
        Name::new(bytes).to_string()
    }

    #[test]
    fn text_is_shown_as_it_is() {
        for text in ["orders:42", "", "größe", "注文 42", "a b/c{d}"] {
            assert_eq!(shown(text.as_bytes()), text);
            assert_eq!(Name::new(text.as_bytes()).as_str(), Some(text));
        }
        assert_eq!(format!("{:?}", Name::new(b"orders")), "\"orders\"");
    }

    #[test]
    fn quotation_marks_and_backslashes_are_escaped() {
        assert_eq!(shown(b"it's"), "it\\'s");
        assert_eq!(format!("{:?}", Name::new(b"a\"b")), "\"a\\\"b\"");
        // A backslash and the escape of a line break are told apart.
        assert_eq!(
            (shown(b"a\\n"), shown(b"a\n")),
            ("a\\\\n".to_owned(), "a\\n".to_owned())
        );
        assert_eq!(
            (shown(b"\\xff"), shown(b"\xff")),
            ("\\\\xff".to_owned(), "\\xff".to_owned())
        );
    }

    #[test]
    fn nothing_in_a_name_acts_on_a_terminal_or_a_log() {
        for (bytes, expected) in [
            (&b"a\r\nb\tc"[..], "a\\r\\nb\\tc"),
            (
                b"\x1b[2J\x07\x08\x7f\0",
                "\\u{1b}[2J\\u{7}\\u{8}\\u{7f}\\u{0}",
            ),
            // C1: a terminal may take U+009B for the beginning of a sequence.
            ("\u{9b}31m".as_bytes(), "\\u{9b}31m"),
            // A byte of C1 that is not UTF-8.
            (b"\x9b31m", "\\x9b31m"),
            (
                "a\u{202e}b\u{200b}\u{2028}\u{feff}".as_bytes(),
                "a\\u{202e}b\\u{200b}\\u{2028}\\u{feff}",
            ),
        ] {
            assert_eq!(shown(bytes), expected);
            let is_plain = |text: &str| !text.chars().any(is_unseen);
            assert!(is_plain(&shown(bytes)) && is_plain(&format!("{:?}", Name::new(bytes))));
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_shown_one_by_one() {
        for (bytes, expected) in [
            (&b"a\xffb"[..], "a\\xffb"),
            (b"\xe6\xb3", "\\xe6\\xb3"),
            (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
            (b"\xc3\xbc\xc3", "\u{fc}\\xc3"),
        ] {
            assert_eq!(shown(bytes), expected);
            assert_eq!(Name::new(bytes).as_str(), None);
            assert_eq!(Name::new(bytes).as_bytes(), bytes);
        }
    }

    #[test]
    fn a_name_compares_with_text_and_bytes_on_either_side() {
        let name = Name::new(b"job");
        let string = String::from("job");
        let bytes = b"job".to_vec();
        let slice = &b"job"[..];
        assert!(name == "job" && name == *"job" && name == b"job" && name == *slice);
        assert!(name == string && name == bytes && name == Name::new(b"job"));
        assert!("job" == name && *"job" == name && slice == name && *slice == name);
        assert!(name != "jobs" && name != Name::new(b"jo"));
        assert!(Name::new(b"a") < Name::new(b"b"));
        let names: std::collections::HashSet<Name<'_>> = [name, Name::new(b"job")].into();
        assert_eq!(names.len(), 1);
    }
}
