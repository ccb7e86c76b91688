//! What the scripts of registers have in common: their keys and arguments, and their answers.

use super::{Call, Name};
use crate::engine::register::{
    Accepted, RegisterCommand, RegisterKeys, RegisterReply, RegisterRequest,
};
use crate::engine::{Action, Request};
use crate::node::command::Meaning;
use crate::resp::Reply;
use std::sync::Arc;

/// The script that carries out this command.
pub(super) fn name(command: &RegisterCommand) -> Name {
    match command {
        RegisterCommand::Read { .. } => Name::ReadRegister,
        RegisterCommand::Prepare(_) => Name::Prepare,
        RegisterCommand::Accept { .. } => Name::Accept,
        RegisterCommand::Collect(_) => Name::Collect,
        RegisterCommand::Copy => Name::Copy,
        RegisterCommand::Install { .. } => Name::Install,
        RegisterCommand::Mark(_) => Name::Mark,
    }
}

/// The request about a register.
pub(super) fn register(request: &Request) -> &RegisterRequest {
    let Action::Register(register) = &request.action else { unreachable!("{request:?}") };
    register
}

/// Appends the call with the keys of the register, the mark that is expected, and these arguments.
pub(super) fn call(
    request: &RegisterRequest,
    call: Call<'_>,
    arguments: &[&[u8]],
    out: &mut Vec<u8>,
) {
    let RegisterKeys { value, promise, mark, floor } = &request.keys;
    let expected = [&request.epoch, request.run_id.as_bytes(), b" "].concat();
    let arguments = [&[&expected[..]], arguments].concat();
    call.run_on(&[value, promise, mark, floor], &arguments, out);
}

/// The meaning of an answer: of one that carries the request out, by `read`, and of a refusal.
pub(super) fn meaning<'a>(
    number: i64,
    reply: &Reply<'a>,
    read: impl FnOnce(&[Reply<'a>]) -> Option<RegisterReply>,
) -> Option<Meaning> {
    let Reply::Array(list) = reply else { return None };
    let elements: Vec<Reply<'a>> = list.iter().collect();
    let (first, rest) = elements.split_first()?;
    let reply = match (first, rest) {
        (Reply::Integer(first), _) if *first == number => read(rest)?,
        (Reply::Integer(first), [Reply::Integer(least), value, Reply::Integer(floor)])
            if *first == -number =>
        {
            let (least, floor) = (u64::try_from(*least).ok()?, u64::try_from(*floor).ok()?);
            accepted(value, |accepted| RegisterReply::Outbid { least, accepted, floor })?
        }
        (Reply::Integer(first), [mark]) if *first == -number => {
            RegisterReply::NoMember(optional(mark)?.map(Arc::from))
        }
        _ => return None,
    };
    Some(Meaning::Register(reply))
}

/// The answer that says what was accepted, and the floor.
pub(super) fn promise(_: &Request, number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    meaning(number, reply, |rest| match rest {
        [value, Reply::Integer(floor)] => {
            let floor = u64::try_from(*floor).ok()?;
            accepted(value, |accepted| RegisterReply::Promise { accepted, floor })
        }
        _ => None,
    })
}

/// The answer to a request that is only carried out.
pub(super) fn done(_: &Request, number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    meaning(number, reply, |rest| rest.is_empty().then_some(RegisterReply::Done))
}

/// A string that a key may have.
pub(super) fn optional<'a>(reply: &Reply<'a>) -> Option<Option<&'a [u8]>> {
    match reply {
        Reply::Null => Some(None),
        Reply::Bulk(bytes) => Some(Some(bytes)),
        _ => None,
    }
}

/// What the node has accepted, and what answer that makes.
pub(super) fn accepted(
    reply: &Reply<'_>,
    make: impl FnOnce(Option<Accepted>) -> RegisterReply,
) -> Option<RegisterReply> {
    let accepted = optional(reply)?.map(Accepted::read).transpose();
    Some(accepted.map_or_else(RegisterReply::Invalid, make))
}
