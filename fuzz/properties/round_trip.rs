//! Encoding: the decoder returns the arguments of an encoded command.

use redlatch_protocol::resp::{ELEMENTS_MAX, ProtocolError, Reply, decode, encode_command};

/// Splits `data` into arguments: a byte with the length, that many bytes, and so on.
fn arguments(mut data: &[u8]) -> Vec<&[u8]> {
    let mut arguments = Vec::new();
    while let [length, rest @ ..] = data {
        let (argument, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        arguments.push(argument);
        data = rest;
    }
    arguments
}

/// Panics unless `decode` returns the arguments in `data` that `encode_command` has encoded.
pub(crate) fn check(data: &[u8]) {
    let arguments = arguments(data);
    let mut out = b"before".to_vec();
    encode_command(&mut out, &arguments);
    let command = out.strip_prefix(b"before").expect("a command is appended");
    if arguments.len() > ELEMENTS_MAX {
        let count = arguments.len() as u64;
        assert_eq!(
            decode(command),
            Err(ProtocolError::TooManyElements { count })
        );
        return;
    }
    match decode(command) {
        Ok(Some((Reply::Array(elements), used))) => {
            assert_eq!(used, command.len());
            assert_eq!(elements.len(), arguments.len());
            assert!(elements.iter().eq(arguments.into_iter().map(Reply::Bulk)));
        }
        other => panic!("{other:?}"),
    }
}
