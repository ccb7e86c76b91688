//! Captured replies of a redis-server 7.0.15.

use super::Outcome::Is;
use super::decoding::value::Value;
use super::{Row, bulk, integers, row};

/// The replies to HELLO 3 and to DEBUG PROTOCOL with each of its arguments.
pub(super) fn live_rows() -> Vec<Row> {
    let hello = "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n\
        $5\r\nproto\r\n:3\r\n$2\r\nid\r\n:3\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n\
        $4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";
    let mut fields = ["server", "redis", "version", "7.0.15", "proto"]
        .map(bulk)
        .to_vec();
    fields.push(Value::Integer(3));
    fields.extend([bulk("id"), Value::Integer(3)]);
    fields.extend(["mode", "standalone", "role", "master", "modules"].map(bulk));
    fields.push(Value::Array(Vec::new()));
    let map = [0, 1, 2]
        .map(|key| [Value::Integer(key), Value::Boolean(key == 1)])
        .concat();
    let verbatim = b"This is a verbatim\nstring".to_vec();
    let number = b"1234567999999999999999999999999999999".to_vec();
    let after_attribute = "Some real reply following the attribute";
    vec![
        row(hello, Is(Value::Map(fields), 0)),
        row("$11\r\nHello World\r\n", Is(bulk("Hello World"), 0)),
        row(":12345\r\n", Is(Value::Integer(12345), 0)),
        row(
            ",3.141\r\n",
            Is(Value::Double((3141.0_f64 / 1000.0).to_bits()), 0),
        ),
        row("_\r\n", Is(Value::Null, 0)),
        row(
            "*3\r\n:0\r\n:1\r\n:2\r\n",
            Is(Value::Array(integers(0..3)), 0),
        ),
        row(
            "~3\r\n:0\r\n:1\r\n:2\r\n",
            Is(Value::Set(integers(0..3)), 0),
        ),
        row(
            "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n",
            Is(Value::Map(map), 0),
        ),
        row(
            "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n\
             $39\r\nSome real reply following the attribute\r\n",
            Is(bulk(after_attribute), 0),
        ),
        row(
            ">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n\
             $40\r\nSome real reply following the push reply\r\n",
            Is(
                Value::Push(vec![bulk("server-cpu-usage"), Value::Integer(42)]),
                47,
            ),
        ),
        row(
            "=29\r\ntxt:This is a verbatim\nstring\r\n",
            Is(Value::Verbatim(*b"txt", verbatim), 0),
        ),
        row("#t\r\n", Is(Value::Boolean(true), 0)),
        row("#f\r\n", Is(Value::Boolean(false), 0)),
        row(
            "(1234567999999999999999999999999999999\r\n",
            Is(Value::BigNumber(number), 0),
        ),
    ]
}
