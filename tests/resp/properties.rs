//! Random replies and random bytes, compared with the slow decoder.

use proptest::collection::vec;
use proptest::prelude::*;
use redlatch_protocol::resp::{ELEMENTS_MAX, Reply, decode, encode_command};

#[path = "../../fuzz/properties/decoding.rs"]
mod decoding;

use decoding::hold;
use decoding::value::Value;

/// Lines, without line breaks.
fn line() -> impl Strategy<Value = Vec<u8>> {
    vec(
        any::<u8>().prop_filter("no line break", |byte| !b"\r\n".contains(byte)),
        0..40,
    )
}

fn value() -> impl Strategy<Value = Value> {
    let bytes = || vec(any::<u8>(), 0..40);
    let scalar = prop_oneof![
        line().prop_map(Value::Simple),
        line().prop_map(Value::Error),
        any::<i64>().prop_map(Value::Integer),
        bytes().prop_map(Value::Bulk),
        (any::<[u8; 3]>(), bytes()).prop_map(|(format, text)| Value::Verbatim(format, text)),
        Just(Value::Null),
        Just(Value::NullArray),
        any::<bool>().prop_map(Value::Boolean),
        any::<f64>().prop_map(|value| Value::Double(value.to_bits())),
        "([+-]?[1-9][0-9]{0,39}|\\+?0)".prop_map(|digits| Value::BigNumber(digits.into_bytes())),
    ];
    scalar.prop_recursive(6, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            vec([inner.clone(), inner.clone()], 0..3)
                .prop_map(|pairs| Value::Map(pairs.into_iter().flatten().collect())),
            vec(inner, 0..6).prop_map(Value::Set),
        ]
    })
}

/// The bytes that a server sends for `value`, if wanted with an attribute before each aggregate.
fn write(out: &mut Vec<u8>, value: &Value, attributes: bool) {
    let mut line = |type_byte: char, text: &[u8]| {
        out.push(type_byte as u8);
        out.extend_from_slice(text);
        out.extend_from_slice(b"\r\n");
    };
    let body = |type_byte: char, bytes: &[u8]| {
        let header = format!("{type_byte}{}\r\n", bytes.len()).into_bytes();
        [&header[..], bytes, b"\r\n"].concat()
    };
    let (type_byte, count, values) = match value {
        Value::Simple(text) => return line('+', text),
        Value::Error(text) => return line('-', text),
        Value::Integer(value) => return line(':', value.to_string().as_bytes()),
        Value::Null => return line('_', b""),
        Value::NullArray => return line('*', b"-1"),
        Value::Boolean(value) => return line('#', if *value { b"t" } else { b"f" }),
        Value::BigNumber(digits) => return line('(', digits),
        Value::Double(bits) => {
            let text = format!("{:?}", f64::from_bits(*bits)).to_lowercase();
            return line(',', text.as_bytes());
        }
        Value::Bulk(bytes) => return out.extend(body('$', bytes)),
        Value::Verbatim(format, text) => {
            return out.extend(body('=', &[&format[..], b":", text].concat()));
        }
        Value::Array(values) => ('*', values.len(), values),
        Value::Set(values) => ('~', values.len(), values),
        Value::Push(values) => ('>', values.len(), values),
        Value::Map(values) => ('%', values.len() / 2, values),
    };
    if attributes {
        line('|', b"1");
        line('+', b"ttl");
        line(':', b"3600");
    }
    line(type_byte, count.to_string().as_bytes());
    for value in values {
        write(out, value, attributes);
    }
}

/// Bytes that resemble RESP.
fn almost_resp() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        4 => Just(b"\r\n".to_vec()),
        4 => prop::sample::select(b"+-:$*_#,(!=%~|>".to_vec()).prop_map(|byte| vec![byte]),
        4 => "[0-9]{1,2}".prop_map(String::into_bytes),
        1 => "(-1|\\?|inf|nan|txt:|t|f|1e5|0\\.5|-)".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..4),
    ];
    vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn a_decoded_reply_equals_the_encoded_one(
        value in value(),
        attributes in any::<bool>(),
        surplus in line(),
    ) {
        let mut bytes = Vec::new();
        write(&mut bytes, &value, attributes);
        let length = bytes.len();
        bytes.extend(surplus);
        let (reply, used) = decode(&bytes).unwrap().expect("the reply is complete");
        prop_assert_eq!(Value::from(reply), value);
        prop_assert_eq!(used, length);
        hold(&bytes[..length]);
    }

    #[test]
    fn a_damaged_stream_has_the_result_of_the_oracle(
        values in vec(value(), 1..4),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut bytes = Vec::new();
        values.iter().for_each(|value| write(&mut bytes, value, false));
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        hold(&bytes);
    }

    #[test]
    fn bytes_like_resp_have_the_result_of_the_oracle(bytes in almost_resp()) {
        hold(&bytes);
    }

    #[test]
    fn any_bytes_have_the_result_of_the_oracle(bytes in vec(any::<u8>(), 0..200)) {
        hold(&bytes);
    }

    #[test]
    fn a_decoded_command_equals_the_encoded_one(
        args in vec(prop_oneof![9 => vec(any::<u8>(), 0..30), 1 => vec(any::<u8>(), 0..4000)],
            0..=ELEMENTS_MAX),
    ) {
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let mut command = Vec::new();
        encode_command(&mut command, &args);
        let decoded = decode(&command).unwrap();
        let Some((Reply::Array(elements), used)) = decoded else { panic!("{decoded:?}") };
        prop_assert_eq!(used, command.len());
        prop_assert!(elements.iter().eq(args.into_iter().map(Reply::Bulk)));
    }
}
