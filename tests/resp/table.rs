//! A table of hostile bytes in the order of the fault catalogue, followed by replies of a real
//! server.
//!
//! Each row is also checked with the decode property: whole, byte by byte, cut in two at each byte,
//! and as each prefix, compared with the oracle each time. Where the catalogue's result depends on
//! the command or the end of the stream, the row has the decoder's part of it.

use redlatch_protocol::resp::{BULK_MAX, ELEMENTS_MAX, LINE_MAX, ProtocolError, REPLY_MAX, decode};

#[path = "../../fuzz/properties/decoding.rs"]
mod decoding;

mod live;
mod numbers;

use ProtocolError as Fault;
use decoding::hold;
use decoding::value::Value;

/// The expected result of decoding.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// Incomplete.
    Incomplete,
    /// The first reply, and the number of bytes left after it.
    Is(Value, usize),
    /// An error, which is final.
    Fails(Fault),
}

use Outcome::{Fails, Incomplete, Is};

struct Row {
    bytes: Vec<u8>,
    outcome: Outcome,
}

fn row(bytes: impl AsRef<[u8]>, outcome: Outcome) -> Row {
    Row {
        bytes: bytes.as_ref().to_vec(),
        outcome,
    }
}

fn simple(text: &str) -> Value {
    Value::Simple(text.into())
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.into())
}

fn integers(integers: impl IntoIterator<Item = i64>) -> Vec<Value> {
    integers.into_iter().map(Value::Integer).collect()
}

fn lines() -> Vec<Row> {
    vec![
        row("", Incomplete),
        row("+", Incomplete),
        row("+OK", Incomplete),
        row("+OK\r", Incomplete),
        row("+OK\r\n", Is(simple("OK"), 0)),
        // An error at once, whether or not a CRLF follows.
        row("+OK\n", Fails(Fault::BareLineFeed)),
        row("+OK\n\r\n", Fails(Fault::BareLineFeed)),
        row("+\n", Fails(Fault::BareLineFeed)),
        row("+O\rK", Fails(Fault::BareCarriageReturn)),
        row("+O\rK\r\n", Fails(Fault::BareCarriageReturn)),
        row("+OK\r\r", Fails(Fault::BareCarriageReturn)),
        row("+OK\r\r\n", Fails(Fault::BareCarriageReturn)),
        row("$\n", Fails(Fault::BareLineFeed)),
        row(":1\r2", Fails(Fault::BareCarriageReturn)),
        row("*2\r\n+a\r\n:1\r:", Fails(Fault::BareCarriageReturn)),
        // The first of the two counts.
        row("+a\nb\rc\r\n", Fails(Fault::BareLineFeed)),
        row("+a\rb\nc\r\n", Fails(Fault::BareCarriageReturn)),
        // The caller sees the extra bytes: they are the reply to no command.
        row("+OK\r\n+OK\r\n", Is(simple("OK"), 5)),
        row("@foo\r\n", Fails(Fault::UnknownType(b'@'))),
        row("\r\n", Fails(Fault::UnknownType(b'\r'))),
        row(" +OK\r\n", Fails(Fault::UnknownType(b' '))),
        // Other programs that may listen on the port.
        row(
            "HTTP/1.1 400 Bad Request\r\n",
            Fails(Fault::UnknownType(b'H')),
        ),
        row("SSH-2.0-OpenSSH_9.2\r\n", Fails(Fault::UnknownType(b'S'))),
        row(
            b"\x15\x03\x03\x00\x02\x02\x32",
            Fails(Fault::UnknownType(0x15)),
        ),
    ]
}

fn bulk_rows() -> Vec<Row> {
    vec![
        row("$-1\r\n", Is(Value::Null, 0)),
        row("$-2\r\n", Fails(Fault::BadLength(b'$'))),
        row("$-0\r\n", Fails(Fault::BadLength(b'$'))),
        row("$\r\n", Fails(Fault::BadLength(b'$'))),
        row("$3\r\nab", Incomplete),
        row("$3\r\nabc", Incomplete),
        row("$3\r\nabcXY", Fails(Fault::MissingCrlf)),
        row("$3\r\nabc\rY", Fails(Fault::MissingCrlf)),
        row("$3\r\nab\r\n+OK\r\n", Fails(Fault::MissingCrlf)),
        row("$0\r\n\r\n", Is(bulk(""), 0)),
        row("$0\r\n", Incomplete),
        row("$2\r\nOK\r\n", Is(bulk("OK"), 0)),
        row(
            "$536870913\r\n",
            Fails(Fault::BulkTooLong {
                length: 536_870_913,
            }),
        ),
        row(
            "$18446744073709551615\r\n",
            Fails(Fault::BulkTooLong { length: u64::MAX }),
        ),
        row(
            "$18446744073709551616\r\n",
            Fails(Fault::BulkTooLong { length: u64::MAX }),
        ),
        row("$?\r\n", Fails(Fault::Streamed(b'$'))),
    ]
}

fn aggregate_rows() -> Vec<Row> {
    let count = |count| Fails(Fault::TooManyElements { count });
    vec![
        row("*-1\r\n", Is(Value::NullArray, 0)),
        row("*-2\r\n", Fails(Fault::BadLength(b'*'))),
        row("*1\r\n", Incomplete),
        row("*4294967295\r\n", count(4_294_967_295)),
        row("*2305843009213693955\r\n", count(2_305_843_009_213_693_955)),
        row("*1\r\n".repeat(9), Fails(Fault::TooDeep)),
        row("*1\r\n".repeat(1025), Fails(Fault::TooDeep)),
        row("*1\r\n".repeat(1_000_000), Fails(Fault::TooDeep)),
        row("*2\r\n+a\r\n@", Fails(Fault::UnknownType(b'@'))),
        row("*2\r\n:1\r\n", Incomplete),
        // A late reply to another command becomes the element: only a deadline helps.
        row("*2\r\n:1\r\n+late\r\n", {
            Is(Value::Array(vec![Value::Integer(1), simple("late")]), 0)
        }),
        row("%-1\r\n", Fails(Fault::BadLength(b'%'))),
        row("%4294967295\r\n", count(4_294_967_295)),
        row("%4611686018427387904\r\n", count(4_611_686_018_427_387_904)),
        row("%1\r\n+k\r\n", Incomplete),
        row("|1\r\n+a\r\n:1\r\n", Incomplete),
        row("|1\r\n+a\r\n:1\r\n+OK\r\n", Is(simple("OK"), 0)),
        row(
            "*1\r\n|1\r\n+a\r\n:1\r\n:2\r\n",
            Is(Value::Array(integers([2])), 0),
        ),
        // The caller must skip it; the reply after it follows.
        row(">1\r\n+x\r\n+OK\r\n", Is(Value::Push(vec![simple("x")]), 5)),
        row("*1\r\n>1\r\n+x\r\n", Fails(Fault::NestedPush)),
        row(">0\r\n", Fails(Fault::EmptyPush)),
        row(">-1\r\n", Fails(Fault::BadLength(b'>'))),
        row("*?\r\n", Fails(Fault::Streamed(b'*'))),
    ]
}

fn resp3_rows() -> Vec<Row> {
    let doubles = [
        "",
        "1.2.3",
        "1e",
        "+",
        ".",
        "1,5",
        "abc",
        "3.14x",
        "3.14\u{0}159",
    ];
    let doubles = doubles.map(|text| row(format!(",{text}\r\n"), Fails(Fault::BadDouble)));
    let mut rows = vec![
        row("=3\r\ntxt\r\n", Fails(Fault::BadVerbatim)),
        row("=4\r\ntxtX\r\n", Fails(Fault::BadVerbatim)),
        row(
            "=4\r\ntxt:\r\n",
            Is(Value::Verbatim(*b"txt", Vec::new()), 0),
        ),
        row("_x\r\n", Fails(Fault::BadNull)),
        row("_nil\r\n", Fails(Fault::BadNull)),
        row("#\r\n", Fails(Fault::BadBoolean)),
        row("#x\r\n", Fails(Fault::BadBoolean)),
        row("#true\r\n", Fails(Fault::BadBoolean)),
    ];
    rows.extend(doubles);
    rows.extend([
        row(",inf\r\n", Is(Value::Double(f64::INFINITY.to_bits()), 0)),
        row(
            ",-inf\r\n",
            Is(Value::Double(f64::NEG_INFINITY.to_bits()), 0),
        ),
        row(",nan\r\n", Is(Value::Double(f64::NAN.to_bits()), 0)),
        row(
            ",-1.5e-3\r\n",
            Is(Value::Double((-0.0015_f64).to_bits()), 0),
        ),
        row("(12a\r\n", Fails(Fault::BadBigNumber)),
        row("(\r\n", Fails(Fault::BadBigNumber)),
        row("(-\r\n", Fails(Fault::BadBigNumber)),
    ]);
    rows
}

fn error_rows() -> Vec<Row> {
    let error = |text: &[u8]| {
        row(
            [b"-", text, b"\r\n"].concat(),
            Is(Value::Error(text.to_vec()), 0),
        )
    };
    let mut rows = vec![
        error(b""),
        error(b"ERR"),
        error(b"ERR  two  spaces"),
        error(b"err lower"),
        row(
            "-".to_owned() + &"x".repeat(1_000_000),
            Fails(Fault::LineTooLong),
        ),
        error(b"ERR \xff\xfe"),
        row("!6\r\nERR no\r\n", Is(Value::Error(b"ERR no".to_vec()), 0)),
    ];
    let codes = "NOSCRIPT READONLY LOADING MISCONF OOM NOAUTH WRONGPASS NOPERM BUSY CLUSTERDOWN \
        MOVED ASK TRYAGAIN CROSSSLOT MASTERDOWN NOREPLICAS DENIED NOPROTO UNKILLABLE EXECABORT \
        WRONGTYPE";
    rows.extend(codes.split(' ').flat_map(|code| {
        [
            error(code.as_bytes()),
            error(format!("{code} 1 10.0.0.1:6379").as_bytes()),
        ]
    }));
    rows
}

fn limit_rows() -> Vec<Row> {
    let text = |length| "x".repeat(length);
    let longest = format!("${BULK_MAX}\r\n{}\r\n", text(BULK_MAX));
    let widest = format!("*{ELEMENTS_MAX}\r\n{}", ":1\r\n".repeat(ELEMENTS_MAX));
    // An array of exactly REPLY_MAX bytes: the line at its end fills the rest.
    let part = format!("$65000\r\n{}\r\n", text(65_000)).repeat(4);
    let left = REPLY_MAX - "*5\r\n".len() - part.len() - "+\r\n".len();
    let largest = format!("*5\r\n{part}+{}\r\n", text(left));
    let mut parts = vec![bulk(&text(65_000)); 4];
    parts.push(simple(&text(left)));
    // The same with a string at its end, whose header and CRLF take nine bytes.
    let string = left + "+\r\n".len() - 9;
    let body = format!("{string}\r\n{}\r\n", text(string));
    let mut strings = parts.clone();
    strings[4] = bulk(&text(string));
    vec![
        row(
            format!("+{}\r\n", text(LINE_MAX)),
            Is(simple(&text(LINE_MAX)), 0),
        ),
        row(
            format!("+{}\r\n", text(LINE_MAX + 1)),
            Fails(Fault::LineTooLong),
        ),
        row(longest, Is(bulk(&text(BULK_MAX)), 0)),
        row(widest, Is(Value::Array(integers([1; ELEMENTS_MAX])), 0)),
        row(largest, Is(Value::Array(parts), 0)),
        row(
            format!("*5\r\n{part}+{}\r\n", text(left + 1)),
            Fails(Fault::ReplyTooLarge),
        ),
        row(
            format!("*6\r\n{part}+{}\r\n:", text(left)),
            Fails(Fault::ReplyTooLarge),
        ),
        row(format!("*5\r\n{part}${body}"), Is(Value::Array(strings), 0)),
        row(
            format!("*5\r\n{part}${}\r\n", string + 1),
            Fails(Fault::ReplyTooLarge),
        ),
        row("|0\r\n".repeat(REPLY_MAX / 4), Fails(Fault::ReplyTooLarge)),
    ]
}

fn all_rows() -> Vec<Row> {
    [
        lines(),
        numbers::integer_rows(),
        numbers::written_in_two_ways(),
        bulk_rows(),
        aggregate_rows(),
        resp3_rows(),
        error_rows(),
        live::live_rows(),
        limit_rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_row_has_its_outcome_however_it_is_split() {
    for Row { bytes, outcome } in all_rows() {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        let decoded = match decode(&bytes) {
            Ok(None) => Incomplete,
            Ok(Some((reply, used))) => Is(reply.into(), bytes.len() - used),
            Err(fault) => Fails(fault),
        };
        // Long values would make the message unreadable.
        let shown: String = format!("{decoded:?}").chars().take(200).collect();
        assert!(decoded == outcome, "{start:?} yields {shown}");
        hold(&bytes);
    }
}

#[test]
fn a_reply_cut_at_any_byte_is_incomplete() {
    for Row { bytes, outcome } in all_rows() {
        let Is(_, surplus) = outcome else { continue };
        let whole = bytes.len() - surplus;
        let step = 1 + whole / 1000;
        for length in (0..whole).step_by(step).chain([whole - 1]) {
            assert_eq!(
                decode(&bytes[..length]),
                Ok(None),
                "{length} bytes of {bytes:?}"
            );
        }
    }
}
