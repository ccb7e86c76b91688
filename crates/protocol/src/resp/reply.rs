//! A decoded reply and its elements.

use std::fmt;

use super::decode;

/// A reply, borrowed from the bytes it was decoded from.
///
/// Doubles compare as `f64` does: a reply that holds a NaN is not equal to itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reply<'a> {
    /// A simple string, `+OK`. It never contains a carriage return or line feed.
    Simple(&'a [u8]),
    /// An error, simple (`-ERR no`) or bulk (`!6`). May be empty, and need not be UTF-8.
    Error(&'a [u8]),
    /// An integer, `:1`.
    Integer(i64),
    /// A bulk string, `$2`.
    Bulk(&'a [u8]),
    /// A verbatim string, `=6`.
    Verbatim {
        /// The format of the text: `txt`, `mkd` (Markdown) or another.
        format: [u8; 3],
        /// The text after the format and its colon.
        text: &'a [u8],
    },
    /// No value: `$-1` in RESP2, `_` in RESP3.
    Null,
    /// No array: `*-1`, RESP2 only.
    NullArray,
    /// A boolean, `#t` or `#f`.
    Boolean(bool),
    /// A double, `,1.5`.
    Double(f64),
    /// An integer of any size, `(123`: its sign, if it has one, and its digits.
    BigNumber(&'a [u8]),
    /// An array, `*2`.
    Array(Elements<'a>),
    /// A map, `%1`: keys and values alternate, so the number of elements is even.
    Map(Elements<'a>),
    /// A set, `~2`. That its elements differ is not checked.
    Set(Elements<'a>),
    /// A push, `>2`: a message that is not a reply to a command. It is never inside another value,
    /// and has at least one element.
    Push(Elements<'a>),
}

/// The elements of an aggregate, still encoded.
///
/// They were checked together with their reply. Each is decoded when the iteration reaches it,
/// without allocation.
#[derive(Clone, Copy)]
pub struct Elements<'a> {
    bytes: &'a [u8],
    count: usize,
}

impl<'a> Elements<'a> {
    /// The `count` values that `bytes` consists of. They must have been checked.
    pub(super) fn new(bytes: &'a [u8], count: usize) -> Self {
        Self { bytes, count }
    }

    /// The number of elements. A map has two for each pair.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The elements in the order in which they arrived.
    pub fn iter(&self) -> Iter<'a> {
        Iter { left: *self }
    }
}

impl PartialEq for Elements<'_> {
    /// Compares values, not bytes: `:1` and `:+1` are equal, and attributes are ignored.
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Elements<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[derive(Clone, Debug)]
pub struct Iter<'a> {
    left: Elements<'a>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Reply<'a>;

    fn next(&mut self) -> Option<Reply<'a>> {
        let count = self.left.count.checked_sub(1)?;
        let Ok(Some((reply, used))) = decode(self.left.bytes) else {
            // The elements of a checked reply are valid, so this is a bug. A short iteration does
            // less harm than a panic.
            debug_assert!(false, "the elements of a reply were not checked");
            self.left.count = 0;
            return None;
        };
        self.left = Elements::new(&self.left.bytes[used..], count);
        Some(reply)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.count, Some(self.left.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(bytes: &[u8]) -> Elements<'_> {
        match decode(bytes) {
            Ok(Some((Reply::Array(elements) | Reply::Map(elements), _))) => elements,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn elements_are_read_in_order_through_nesting_and_attributes() {
        let array = elements(b"*3\r\n*2\r\n:1\r\n$2\r\nab\r\n|1\r\n+k\r\n*1\r\n_\r\n+v\r\n*-1\r\n");
        assert_eq!(array.len(), 3);
        let mut iter = array.iter();
        assert_eq!(iter.left.len(), 3);
        let Some(Reply::Array(inner)) = iter.next() else {
            panic!("not an array")
        };
        assert!(inner.iter().eq([Reply::Integer(1), Reply::Bulk(b"ab")]));
        assert_eq!(iter.next(), Some(Reply::Simple(b"v")));
        assert_eq!(iter.next(), Some(Reply::NullArray));
        assert_eq!((iter.next(), iter.next(), iter.left.len()), (None, None, 0));
    }

    #[test]
    fn a_map_has_two_elements_for_every_pair() {
        let map = elements(b"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n");
        assert_eq!(
            (map.len(), map.iter().count(), map.is_empty()),
            (4, 4, false)
        );
        assert!(elements(b"%0\r\n").is_empty());
    }

    #[test]
    fn elements_compare_by_value_and_not_by_bytes() {
        assert_eq!(
            elements(b"*1\r\n:1\r\n"),
            elements(b"*1\r\n|1\r\n+k\r\n+v\r\n:+1\r\n")
        );
        assert_ne!(elements(b"*1\r\n:1\r\n"), elements(b"*1\r\n:2\r\n"));
        assert_ne!(elements(b"*1\r\n:1\r\n"), elements(b"*2\r\n:1\r\n:1\r\n"));
        assert_ne!(elements(b"*1\r\n$2\r\nOK\r\n"), elements(b"*1\r\n+OK\r\n"));
    }

    #[test]
    fn debug_shows_the_values() {
        let shown = format!("{:?}", elements(b"*2\r\n:1\r\n*1\r\n#t\r\n"));
        assert_eq!(shown, "[Integer(1), Array([Boolean(true)])]");
    }
}
