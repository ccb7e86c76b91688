//! The incremental decoder.
//!
//! A reply is first scanned to its end, then read. The scan goes through the values in the order
//! of their bytes and keeps only the state it needs to continue later:
//!
//! ```text
//!             header of a string              body and CRLF are there
//!   HEADER ────────────────────────► BODY ────────────────────────────┐
//!   │ ▲ ▲                                                             │
//!   │ │ └── header of an aggregate: one more level is open            │
//!   │ └──── a value is done, and others of its level are not ◄────────┤
//!   └─────── a value is done that is complete with its line ──────────┤
//!                                                                     ▼
//!                                     no level is open any more: the reply is there
//! ```

use super::header::{Header, check_type, header};
use super::{CRLF, DEPTH_MAX, Elements, LINE_MAX, ProtocolError, REPLY_MAX, Reply};

/// Decodes the replies of one stream of bytes, one by one, as the bytes come in.
///
/// The caller keeps the bytes. The decoder remembers how many of them it has scanned already.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Bytes of the reply that are scanned: whole lines and whole bodies.
    scanned: usize,
    /// The current line has no carriage return or line feed before this byte: the search for the
    /// CRLF continues here.
    searched: usize,
    /// Where the reply itself starts, behind its attributes.
    value: usize,
    /// The string whose header has been scanned and whose body has not.
    body: Option<Body>,
    levels: Levels,
    /// The error that ended the stream.
    failed: Option<ProtocolError>,
}

impl Decoder {
    pub fn new() -> Self {
        Self::default()
    }

    /// The next reply and the number of bytes that it takes, or `None` if it is not complete.
    ///
    /// `input` starts at the first byte of the first reply that was not returned yet, and extends
    /// the `input` of the call before. After a reply is returned, the caller drops its bytes.
    ///
    /// # Errors
    ///
    /// The bytes are not RESP, or exceed a limit. Every further call returns the same error,
    /// because the rest of the stream cannot be understood.
    pub fn decode<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<Option<(Reply<'a>, usize)>, ProtocolError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.next(input);
        match &result {
            Ok(None) => {}
            // No level is open any more, and no body is missing.
            Ok(Some(_)) => (self.scanned, self.searched, self.value) = (0, 0, 0),
            Err(error) => self.failed = Some(error.clone()),
        }
        result
    }

    /// The first byte of the value that has begun and is not complete, or of the attribute before
    /// it; `None` if nothing has begun. `input` is the one for which [`decode`](Self::decode) has
    /// just returned `None`.
    pub fn begun(&self, input: &[u8]) -> Option<u8> {
        let is_within = self.body.is_some() || !self.levels.is_outermost();
        input
            .get(if is_within { self.value } else { self.scanned })
            .copied()
    }

    fn next<'a>(&mut self, input: &'a [u8]) -> Result<Option<(Reply<'a>, usize)>, ProtocolError> {
        loop {
            let step = match self.body {
                Some(body) => self.scan_body(input, body)?,
                None => self.scan_header(input)?,
            };
            match step {
                Scanned::Starved => return Ok(None),
                Scanned::Opened => {}
                // Most replies are one line, and need not be read again.
                Scanned::Value(reply) if self.levels.is_outermost() => {
                    return Ok(Some((reply, self.scanned)));
                }
                Scanned::Value(_) | Scanned::Done if self.levels.value_done() => {}
                Scanned::Value(_) | Scanned::Done => {
                    let reply = read(&input[self.value..self.scanned])?;
                    return Ok(Some((reply, self.scanned)));
                }
            }
        }
    }

    fn scan_header<'a>(&mut self, input: &'a [u8]) -> Result<Scanned<'a>, ProtocolError> {
        if self.scanned >= REPLY_MAX {
            return Err(ProtocolError::ReplyTooLarge);
        }
        let start = self.scanned;
        let Some(&type_byte) = input.get(start) else {
            return Ok(Scanned::Starved);
        };
        check_type(type_byte)?;
        if self.levels.is_outermost() {
            // The header of an attribute too; that of the value it prefixes overwrites it.
            self.value = start;
        } else if type_byte == b'>' {
            return Err(ProtocolError::NestedPush);
        }
        let Some(line) = self.scan_line(input, start + 1)? else {
            return Ok(Scanned::Starved);
        };
        match header(type_byte, line)? {
            Header::Value(reply) => Ok(Scanned::Value(reply)),
            Header::Body(length) => {
                // Limited by BULK_MAX, so this cannot overflow.
                if self.scanned + length + CRLF.len() > REPLY_MAX {
                    return Err(ProtocolError::ReplyTooLarge);
                }
                self.body = Some(Body {
                    length,
                    verbatim: type_byte == b'=',
                });
                Ok(Scanned::Opened)
            }
            Header::Items(count) => self.levels.enter(count, type_byte == b'|'),
        }
    }

    /// The line that starts at `start`, without its CRLF, if it is complete. A single carriage
    /// return or line feed is an error at once: waiting for a CRLF after it would make a server
    /// that sends none look slow.
    fn scan_line<'a>(
        &mut self,
        input: &'a [u8],
        start: usize,
    ) -> Result<Option<&'a [u8]>, ProtocolError> {
        // The line and its CRLF must end at or before this limit. Nothing after it is looked at, so
        // the result does not depend on how much has arrived.
        let (limit, fault) = match start + LINE_MAX + CRLF.len() {
            limit @ 0..=REPLY_MAX => (limit, ProtocolError::LineTooLong),
            _ => (REPLY_MAX, ProtocolError::ReplyTooLarge),
        };
        let window = &input[..limit.min(input.len())];
        let from = self.searched.max(start);
        let unseen = window.get(from..).unwrap_or_default();
        let found = unseen.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        // A carriage return as the last byte so far may be the first half of the CRLF.
        let end = found.map_or(window.len(), |found| from + found);
        match window.get(end..).unwrap_or_default() {
            [] | [b'\r'] if window.len() == limit => Err(fault),
            [] | [b'\r'] => {
                self.searched = end;
                Ok(None)
            }
            [b'\r', b'\n', ..] => {
                self.scanned = end + CRLF.len();
                Ok(Some(&window[start..end]))
            }
            [b'\r', ..] => Err(ProtocolError::BareCarriageReturn),
            _ => Err(ProtocolError::BareLineFeed),
        }
    }

    fn scan_body(&mut self, input: &[u8], body: Body) -> Result<Scanned<'static>, ProtocolError> {
        let end = self.scanned + body.length;
        let Some(rest) = input.get(end..) else {
            return Ok(Scanned::Starved);
        };
        let tail = &rest[..CRLF.len().min(rest.len())];
        if !CRLF.starts_with(tail) {
            return Err(ProtocolError::MissingCrlf);
        }
        if tail.len() < CRLF.len() {
            return Ok(Scanned::Starved);
        }
        // The header of a verbatim string with fewer than four bytes has been refused.
        if body.verbatim && input[self.scanned + 3] != b':' {
            return Err(ProtocolError::BadVerbatim);
        }
        self.scanned = end + CRLF.len();
        self.body = None;
        Ok(Scanned::Done)
    }
}

/// Decodes the first reply of `input` with a new [`Decoder`].
///
/// # Errors
///
/// The bytes are not RESP, or exceed a limit.
pub fn decode(input: &[u8]) -> Result<Option<(Reply<'_>, usize)>, ProtocolError> {
    Decoder::new().decode(input)
}

/// Reads a reply whose bytes, without attributes before it, were scanned. Errors that it could
/// return were already returned by the scan.
fn read(bytes: &[u8]) -> Result<Reply<'_>, ProtocolError> {
    let line_end = bytes
        .windows(CRLF.len())
        .position(|pair| pair == CRLF)
        .unwrap_or(bytes.len());
    let type_byte = bytes[0];
    let line = &bytes[1..line_end];
    let rest = bytes.get(line_end + CRLF.len()..).unwrap_or_default();
    Ok(match (type_byte, header(type_byte, line)?) {
        (_, Header::Value(reply)) => reply,
        (b'$', Header::Body(length)) => Reply::Bulk(&rest[..length]),
        (b'!', Header::Body(length)) => Reply::Error(&rest[..length]),
        (_, Header::Body(length)) => Reply::Verbatim {
            format: [rest[0], rest[1], rest[2]],
            text: &rest[4..length],
        },
        (b'%', Header::Items(count)) => Reply::Map(Elements::new(rest, count)),
        (b'~', Header::Items(count)) => Reply::Set(Elements::new(rest, count)),
        (b'>', Header::Items(count)) => Reply::Push(Elements::new(rest, count)),
        (_, Header::Items(count)) => Reply::Array(Elements::new(rest, count)),
    })
}

#[derive(Clone, Copy, Debug)]
struct Body {
    length: usize,
    verbatim: bool,
}

// The decoder's position in a nested reply: how many values each open aggregate still needs.

/// The result of scanning one header or body.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scanned<'a> {
    /// More bytes are needed.
    Starved,
    /// A header was scanned; its body or its elements follow.
    Opened,
    /// This value is complete with its line.
    Value(Reply<'a>),
    /// A value is complete.
    Done,
}

/// The aggregates around the current position, outermost first. Their number is limited, so
/// decoding needs neither the heap nor recursion.
#[derive(Debug, Default)]
struct Levels {
    open: usize,
    levels: [OpenLevel; DEPTH_MAX],
}

#[derive(Clone, Copy, Debug, Default)]
struct OpenLevel {
    /// Values that are not complete; at least one while the level is open.
    missing: usize,
    /// An attribute is not a value: the value that it prefixes follows it.
    attribute: bool,
}

impl Levels {
    fn is_outermost(&self) -> bool {
        self.open == 0
    }

    /// Opens an aggregate of `count` values.
    fn enter(&mut self, count: usize, attribute: bool) -> Result<Scanned<'static>, ProtocolError> {
        // Also refused if it is empty: whether a depth is allowed does not depend on the contents.
        let Some(level) = self.levels.get_mut(self.open) else {
            return Err(ProtocolError::TooDeep);
        };
        if count == 0 {
            return Ok(if attribute {
                Scanned::Opened
            } else {
                Scanned::Done
            });
        }
        *level = OpenLevel {
            missing: count,
            attribute,
        };
        self.open += 1;
        Ok(Scanned::Opened)
    }

    /// Counts a complete value, and the aggregates that it completes. Returns whether the reply
    /// needs more values.
    fn value_done(&mut self) -> bool {
        while let Some(innermost) = self.open.checked_sub(1) {
            let level = &mut self.levels[innermost];
            level.missing -= 1;
            if level.missing > 0 {
                return true;
            }
            self.open = innermost;
            if level.attribute {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_decoded_one_after_the_other() {
        let mut decoder = Decoder::new();
        let stream = b"+OK\r\n:1\r\n$2\r\nab\r\n*1\r\n_\r\n+late";
        let mut rest = &stream[..];
        let mut replies = Vec::new();
        while let Some((reply, used)) = decoder.decode(rest).unwrap() {
            replies.push(format!("{reply:?}"));
            rest = &rest[used..];
        }
        assert_eq!(rest, b"+late");
        assert_eq!(replies.len(), 4, "{replies:?}");
        assert_eq!(replies[3], "Array([Null])");
    }

    #[test]
    fn a_stream_that_failed_stays_failed() {
        let mut decoder = Decoder::new();
        let error = decoder.decode(b"@foo\r\n").unwrap_err();
        assert_eq!(error, ProtocolError::UnknownType(b'@'));
        assert_eq!(decoder.decode(b"+OK\r\n"), Err(error));
    }

    #[test]
    fn attributes_before_a_reply_count_as_bytes_used() {
        let bytes = b"|1\r\n+a\r\n:1\r\n|0\r\n:7\r\n+next\r\n";
        assert_eq!(decode(bytes), Ok(Some((Reply::Integer(7), 20))));
        assert_eq!(decode(&bytes[..16]), Ok(None));
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let mut line = vec![b'x'; 1 + LINE_MAX];
        line[0] = b'+';
        assert_eq!(decode(&line), Ok(None));
        let fits = [&line[..], CRLF].concat();
        assert!(
            matches!(decode(&fits), Ok(Some((Reply::Simple(text), _))) if text.len() == LINE_MAX)
        );
        line.push(b'x');
        let too_long = [&line[..], CRLF].concat();
        assert_eq!(decode(&too_long), Err(ProtocolError::LineTooLong));
    }

    #[test]
    fn a_bare_carriage_return_or_line_feed_is_an_error_before_the_line_ends() {
        assert_eq!(
            decode(b"+O\r"),
            Ok(None),
            "it may be the first half of the CRLF"
        );
        assert_eq!(decode(b"+O\rK"), Err(ProtocolError::BareCarriageReturn));
        assert_eq!(decode(b"+O\r\r"), Err(ProtocolError::BareCarriageReturn));
        assert_eq!(decode(b"+O\n"), Err(ProtocolError::BareLineFeed));
        let mut decoder = Decoder::new();
        assert_eq!(decoder.decode(b"+O\r"), Ok(None));
        assert_eq!(
            decoder.decode(b"+O\rK"),
            Err(ProtocolError::BareCarriageReturn)
        );
    }

    #[test]
    fn a_line_at_the_limit_has_the_same_result_whether_or_not_more_follows() {
        let line = |end: &[u8]| [b"+", &[b'x'; LINE_MAX][..], end].concat();
        for (end, fault) in [
            (&b"x\r"[..], ProtocolError::LineTooLong),
            (b"xx", ProtocolError::LineTooLong),
            (b"x\n", ProtocolError::BareLineFeed),
            (b"\rx", ProtocolError::BareCarriageReturn),
        ] {
            assert_eq!(decode(&line(end)), Err(fault.clone()), "{end:?}");
            assert_eq!(
                decode(&line(&[end, b"\n"].concat())),
                Err(fault),
                "{end:?} and more"
            );
        }
    }

    #[test]
    fn a_shorter_input_than_before_is_incomplete() {
        let mut decoder = Decoder::new();
        assert_eq!(decoder.decode(b"*2\r\n:1\r\n:"), Ok(None));
        assert_eq!(decoder.decode(b"*2"), Ok(None));
    }

    mod levels {
        use super::super::*;

        #[test]
        fn a_value_completes_each_level_whose_last_value_it_is() {
            let mut levels = Levels::default();
            assert!(
                !levels.value_done(),
                "a value outside any aggregate is the reply"
            );
            assert_eq!(levels.enter(2, false), Ok(Scanned::Opened));
            assert!(levels.value_done());
            assert_eq!(levels.enter(1, false), Ok(Scanned::Opened));
            assert!(!levels.value_done());
            assert!(levels.is_outermost());
        }

        #[test]
        fn an_attribute_completes_nothing() {
            let mut levels = Levels::default();
            assert_eq!(levels.enter(0, true), Ok(Scanned::Opened));
            assert_eq!(levels.enter(1, true), Ok(Scanned::Opened));
            assert!(levels.value_done());
            assert!(levels.is_outermost());
            assert!(!levels.value_done());
        }

        #[test]
        fn the_depth_is_limited_also_for_empty_aggregates() {
            let mut levels = Levels::default();
            for _ in 0..DEPTH_MAX {
                assert_eq!(levels.enter(1, false), Ok(Scanned::Opened));
            }
            assert_eq!(levels.enter(0, false), Err(ProtocolError::TooDeep));
        }
    }
}
