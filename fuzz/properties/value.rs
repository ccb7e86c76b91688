//! Replies that own their bytes, to compare the results of different decoders.

use redlatch_protocol::resp::{Elements, Reply};

/// A reply that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    Verbatim([u8; 3], Vec<u8>),
    Null,
    NullArray,
    Boolean(bool),
    /// The bits, so that a NaN is equal to itself.
    Double(u64),
    BigNumber(Vec<u8>),
    Array(Vec<Value>),
    Map(Vec<Value>),
    Set(Vec<Value>),
    Push(Vec<Value>),
}

impl From<Reply<'_>> for Value {
    fn from(reply: Reply<'_>) -> Self {
        match reply {
            Reply::Simple(text) => Self::Simple(text.to_vec()),
            Reply::Error(text) => Self::Error(text.to_vec()),
            Reply::Integer(value) => Self::Integer(value),
            Reply::Bulk(bytes) => Self::Bulk(bytes.to_vec()),
            Reply::Verbatim { format, text } => Self::Verbatim(format, text.to_vec()),
            Reply::Null => Self::Null,
            Reply::NullArray => Self::NullArray,
            Reply::Boolean(value) => Self::Boolean(value),
            Reply::Double(value) => Self::Double(value.to_bits()),
            Reply::BigNumber(digits) => Self::BigNumber(digits.to_vec()),
            Reply::Array(elements) => Self::Array(values(elements)),
            Reply::Map(elements) => Self::Map(values(elements)),
            Reply::Set(elements) => Self::Set(values(elements)),
            Reply::Push(elements) => Self::Push(values(elements)),
        }
    }
}

fn values(elements: Elements<'_>) -> Vec<Value> {
    let values: Vec<Value> = elements.iter().map(Value::from).collect();
    assert_eq!(values.len(), elements.len());
    assert_eq!(values.is_empty(), elements.is_empty());
    values
}
