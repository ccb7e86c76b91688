//! Numbers: valid forms, and forms that are refused although their value is clear.

use super::Outcome::{Fails, Is};
use super::decoding::value::Value;
use super::{Fault, Row, row};

/// Valid and invalid integers.
pub(super) fn integer_rows() -> Vec<Row> {
    vec![
        row(":\r\n", Fails(Fault::BadInteger)),
        row(":-\r\n", Fails(Fault::BadInteger)),
        row(":--1\r\n", Fails(Fault::BadInteger)),
        row(":+1\r\n", Is(Value::Integer(1), 0)),
        row(":+0\r\n", Is(Value::Integer(0), 0)),
        row(":0\r\n", Is(Value::Integer(0), 0)),
        row(":-1\r\n", Is(Value::Integer(-1), 0)),
        row(":10\r\n", Is(Value::Integer(10), 0)),
        row(":-0\r\n", Fails(Fault::BadInteger)),
        row(":00\r\n", Fails(Fault::BadInteger)),
        row(":01\r\n", Fails(Fault::BadInteger)),
        row(":-01\r\n", Fails(Fault::BadInteger)),
        row(":+01\r\n", Fails(Fault::BadInteger)),
        row(": 1\r\n", Fails(Fault::BadInteger)),
        row(":1 \r\n", Fails(Fault::BadInteger)),
        row(":1.0\r\n", Fails(Fault::BadInteger)),
        row(":1e3\r\n", Fails(Fault::BadInteger)),
        row(":0x1\r\n", Fails(Fault::BadInteger)),
        row(":9223372036854775807\r\n", Is(Value::Integer(i64::MAX), 0)),
        row(":-9223372036854775808\r\n", Is(Value::Integer(i64::MIN), 0)),
        row(":-9223372036854775809\r\n", Fails(Fault::BadInteger)),
        row(
            ":".to_owned() + &"7".repeat(10_000_000),
            Fails(Fault::LineTooLong),
        ),
        // As a reply to a release script: well formed, so the session must reject it.
        row(":2\r\n", Is(Value::Integer(2), 0)),
    ]
}

/// Lengths, counts, doubles and big numbers with a shorter form.
pub(super) fn written_in_two_ways() -> Vec<Row> {
    vec![
        row("$+5\r\nhello\r\n", Fails(Fault::BadLength(b'$'))),
        row("$05\r\nhello\r\n", Fails(Fault::BadLength(b'$'))),
        row("$00\r\n\r\n", Fails(Fault::BadLength(b'$'))),
        row("$-01\r\n", Fails(Fault::BadLength(b'$'))),
        row("$0536870913\r\n", Fails(Fault::BadLength(b'$'))),
        row("*01\r\n:1\r\n", Fails(Fault::BadLength(b'*'))),
        row("*00\r\n", Fails(Fault::BadLength(b'*'))),
        row("*+1\r\n:1\r\n", Fails(Fault::BadLength(b'*'))),
        row("*-0\r\n", Fails(Fault::BadLength(b'*'))),
        row("*-01\r\n", Fails(Fault::BadLength(b'*'))),
        row("%01\r\n:1\r\n:2\r\n", Fails(Fault::BadLength(b'%'))),
        row("|00\r\n:1\r\n", Fails(Fault::BadLength(b'|'))),
        row("=04\r\ntxt:\r\n", Fails(Fault::BadLength(b'='))),
        row("!02\r\nno\r\n", Fails(Fault::BadLength(b'!'))),
        // The grammar of doubles allows leading zeros, and a zero with a sign.
        row(",-0\r\n", Is(Value::Double((-0.0_f64).to_bits()), 0)),
        row(",007.50e+01\r\n", Is(Value::Double(75.0_f64.to_bits()), 0)),
        row("(0\r\n", Is(Value::BigNumber(b"0".to_vec()), 0)),
        row("(+1\r\n", Is(Value::BigNumber(b"+1".to_vec()), 0)),
        row("(-10\r\n", Is(Value::BigNumber(b"-10".to_vec()), 0)),
        row("(-0\r\n", Fails(Fault::BadBigNumber)),
        row("(01\r\n", Fails(Fault::BadBigNumber)),
        row("(-01\r\n", Fails(Fault::BadBigNumber)),
    ]
}
