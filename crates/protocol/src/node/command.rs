//! The encoding of requests, and the meaning of replies as votes. No other module knows either.

use super::node_error::NodeError;
use super::script::ScriptCall;
use super::server_error::{ServerError, ServerErrorKind, quoted, refuses};
use super::{GroupOptions, SharedRequest};
use crate::engine::{
    Channel, LockAttributes, LockId, QueueView, Request, Said, Share, Token, Vote,
};
use crate::resp::{BULK_MAX, Reply, encode_number};
use crate::time::Time;
use std::borrow::Cow;
use std::time::Duration;

/// The suffix that turns a lock's key into its counter's key. No lock's key may end with it.
pub const COUNTER_SUFFIX: &[u8] = b":redlatch:fence";

/// The longest key of a lock, in bytes, its prefix included: 63 KiB. A key is the name of a thing,
/// and bytes that wait for a silent node take memory. The keys that belong to a lock, such as its
/// queue, and messages that name it are up to 1 KiB longer, and every one must fit into a reply.
pub const KEY_MAX: usize = BULK_MAX - 1024;

/// How a request names a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// By its digest: short, but the node must know the script.
    Digest,
    /// By its source, which works on every node.
    Source,
}

/// For how long a node is taken to know a script that removes a lock.
const REMOVALS_KNOWN_FOR: Duration = Duration::from_secs(1);

/// How the scripts are named on this connection: those that the node has run there, and therefore
/// knows, by their digest, and others by their source.
///
/// A server may forget a script at any time: by `SCRIPT FLUSH`, and since Redis 7.4 and Valkey 8.1
/// it keeps no more than 500 that came by `EVAL`. It answers so, and the request is sent again. The
/// answer to a removal may be read late, by the client's next call or at its end, because a
/// majority is enough or nobody waits; until then the node keeps the key. So the scripts of
/// removals are taken to be known for [`REMOVALS_KNOWN_FOR`] only: a client that is in use goes by
/// digest and reads its answers soon, and one that is not sends the source.
///
/// A user may have the right to one of `EVAL` and `EVALSHA` only, and a server or a proxy may lack
/// one. What is refused in one form is sent again in the other, which is kept from then on. For the
/// same reason as above, no removal goes by its digest alone before another command did.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownScripts {
    lasting: u32,
    /// Those of removals that were sent since then.
    removing: u32,
    since: Time,
    /// The server has forgotten a script that removes a lock, and may do so again. It may be a
    /// proxy with several servers behind it.
    forgets_removals: bool,
    /// Has the node carried out a command by its digest? `Some(false)` if it refuses that.
    takes_digests: Option<bool>,
    /// A removal was sent in both forms to find that out.
    is_tried: bool,
    /// Why the node refuses sources, and whether it has lacked a script since then: then sources
    /// are tried again, a second later.
    source_refused: Option<(ServerError, bool)>,
}

impl KnownScripts {
    /// The node has carried out this request, by a script if it needs one.
    pub(super) fn learn(&mut self, request: &SharedRequest, form: Form, sent_at: Time) {
        let bit = Self::bit(request);
        if bit != 0 && form == Form::Digest {
            self.takes_digests = Some(true);
        }
        if !request.is_removal() {
            self.lasting |= bit;
        } else if sent_at >= self.since {
            self.removing |= bit;
        }
    }

    /// The form in which a request is sent first. `is_tracked`: the server would forget `CLIENT
    /// CACHING` with a script that it does not know.
    pub(super) fn form(&mut self, now: Time, request: &SharedRequest, is_tracked: bool) -> Form {
        if now.since(self.since) >= REMOVALS_KNOWN_FOR {
            self.removing = 0;
            self.since = now;
            self.source_refused = self.source_refused.take().filter(|(_, lacks)| !lacks);
        }
        if self.takes_digests == Some(false) {
            return Form::Source;
        }
        if self.source_refused.is_some() {
            return Form::Digest;
        }
        let is_removal = request.is_removal();
        let known = if is_removal {
            self.removing
        } else {
            self.lasting
        };
        let bit = Self::bit(request);
        let is_forgotten = is_tracked || is_removal && self.forgets_removals;
        if known & bit == bit && !is_forgotten {
            Form::Digest
        } else {
            Form::Source
        }
    }

    /// The form in which a removal is sent that is about to be sent by its digest, if it is not
    /// known whether the node takes digests; and whether it is to be sent by its digest as well, to
    /// find out: the first one.
    pub(super) fn cautious_form(&mut self, is_removal: bool, form: Form) -> (Form, bool) {
        let is_known = self.takes_digests.is_some() || self.source_refused.is_some();
        if form == Form::Source || !is_removal || is_known {
            return (form, false);
        }
        (Form::Source, !std::mem::replace(&mut self.is_tried, true))
    }

    /// The meaning of an error with this text: a request that was refused for its form is to be
    /// sent again, as one whose script is unknown.
    pub(super) fn read_error(
        &mut self,
        (request, form): (&SharedRequest, Form),
        text: &[u8],
        read: Result<NodeReply, NoReply>,
    ) -> Result<NodeReply, NoReply> {
        let Err(why) = &read else { return read };
        match (form, why) {
            (_, NoReply::UnknownScript) => {
                if let (Form::Digest, Some((error, lacks))) = (form, &mut self.source_refused) {
                    *lacks = true;
                    return Err(NoReply::Failed(NodeError::Server(error.clone())));
                }
                // The server has forgotten all scripts, not only this one.
                self.lasting = 0;
                self.removing = 0;
                self.forgets_removals |= request.is_removal();
                read
            }
            (Form::Digest, NoReply::Failed(_)) if refuses(text, "evalsha") => {
                self.takes_digests = Some(false);
                Err(NoReply::UnknownScript)
            }
            (Form::Source, NoReply::Failed(NodeError::Server(error)))
                if refuses(text, "eval") && self.takes_digests != Some(false) =>
            {
                self.source_refused = Some((error.clone(), false));
                Err(NoReply::UnknownScript)
            }
            _ => read,
        }
    }

    /// The bit of the script that carries out this request. Zero if the request needs no script.
    fn bit(request: &SharedRequest) -> u32 {
        request.script().map_or(0, |number| 1 << number)
    }
}

/// Has the lock one key, no counter, and one holder?
pub(in crate::node) fn is_plain(lock: &LockId) -> bool {
    !lock.has_more_keys() && lock.counters_ttl().is_none() && lock.share().is_none()
}

/// Appends `request` to `out`. A script repeats `number` in its answer, as proof that the answer
/// belongs to this command. `group` is set if the node is one.
pub fn encode(
    request: &Request,
    form: Form,
    number: u64,
    group: Option<&GroupOptions>,
    out: &mut Vec<u8>,
) {
    encode_without_number(request, form, group, out);
    if script_of(request).is_some() {
        encode_number(out, number);
    }
}

/// The same, but the number does not follow yet.
pub(super) fn encode_without_number(
    request: &Request,
    form: Form,
    group: Option<&GroupOptions>,
    out: &mut Vec<u8>,
) {
    let command = request.command.of_node();
    command.encode(ScriptCall { form, group }, out);
}

/// The value of this lock's keys.
pub(in crate::node) fn value_of(lock: &LockId) -> Cow<'_, [u8]> {
    value(&lock.token, lock.attributes.as_deref())
}

/// The value of a lock's keys: the token, followed by the owner's label.
pub(in crate::node) fn value<'a>(
    token: &'a Token,
    attributes: Option<&LockAttributes>,
) -> Cow<'a, [u8]> {
    match attributes {
        Some(attributes) if !attributes.owner.is_empty() => {
            Cow::Owned([token.as_bytes(), &attributes.owner].concat())
        }
        _ => Cow::Borrowed(token.as_bytes()),
    }
}

/// The number of the script that carries out this request, if it takes one.
pub(super) fn script_of(request: &Request) -> Option<u32> {
    request
        .command
        .of_node()
        .script()
        .map(|script| script.number)
}

/// A short description of a reply, for error messages.
pub(super) fn describe(reply: &Reply<'_>, secret: Option<&[u8]>) -> String {
    let quote = |kind: &str, bytes: &[u8]| format!("{kind} {}", quoted(bytes, secret));
    match reply {
        Reply::Simple(text) => quote("the status", text),
        Reply::Error(text) => quote("the error", text),
        Reply::Bulk(bytes) => quote("the string", bytes),
        Reply::Verbatim { text, .. } => quote("the text", text),
        Reply::BigNumber(digits) => quote("the big number", digits),
        Reply::Integer(number) => format!("the integer {number}"),
        Reply::Boolean(value) => format!("the boolean {value}"),
        Reply::Double(number) => format!("the double {number}"),
        Reply::Null => "null".to_owned(),
        Reply::NullArray => "a null array".to_owned(),
        Reply::Array(elements) => format!("an array of {}", elements.len()),
        Reply::Set(elements) => format!("a set of {}", elements.len()),
        Reply::Map(_) => "a map".to_owned(),
        Reply::Push(_) => "a push message".to_owned(),
    }
}

// The meaning of replies: the replies that each kind of request accepts.

/// What a node has replied to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReply {
    pub vote: Vote,
    /// Why the vote failed, if it did.
    pub problem: Option<NodeError>,
    /// Has the node granted a lock of which one of the keys did not exist before? That counts only
    /// if the node cannot have forgotten the key of a lock that is still held.
    pub is_new: bool,
    /// The largest of the counters of a lock that was granted, or the waiter's number.
    pub counter: Option<u64>,
    /// Do waiters of other clients wait for a lock that was granted?
    pub is_awaited: bool,
    /// Which permit was granted, if the request is for one.
    pub permit: Option<u32>,
    /// What the node says about a waiter. In a box: most replies have none, and all are moved.
    pub view: Option<Box<QueueView>>,
    /// What it has said to a question, or to a custom command.
    pub said: Option<Said>,
}

impl NodeReply {
    /// A vote, and nothing else.
    pub fn of(vote: Vote) -> Self {
        Self {
            vote,
            problem: None,
            is_new: false,
            counter: None,
            is_awaited: false,
            permit: None,
            view: None,
            said: None,
        }
    }

    pub fn failed(problem: NodeError) -> Self {
        Self {
            problem: Some(problem),
            ..Self::of(Vote::Failed)
        }
    }

    pub fn saying(vote: Vote, said: Said) -> Self {
        Self {
            said: Some(said),
            ..Self::of(vote)
        }
    }
}

/// Why a node has not replied to a command.
#[derive(Debug, PartialEq, Eq)]
pub enum NoReply {
    /// The node does not know the script: the request must be sent again with the source.
    UnknownScript,
    /// A server error, and no vote. The connection stays usable.
    Failed(NodeError),
    /// Not an answer to this request. No further reply on this connection can be trusted.
    Nonsense(NodeError),
}

/// Reads `reply` as the answer to this request, which was sent with this `number`. Texts in errors
/// do not contain `secret`.
pub fn read(
    request: &Request,
    number: u64,
    reply: &Reply<'_>,
    secret: Option<&[u8]>,
) -> Result<NodeReply, NoReply> {
    if let Reply::Error(text) = reply {
        return read_error(request, ServerError::parse(text, secret));
    }
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let found = request.command.of_node().read(number, reply, secret);
    found.ok_or_else(|| {
        let shown = describe(reply, secret);
        NoReply::Nonsense(NodeError::UnexpectedReply(shown))
    })
}

fn read_error(request: &Request, error: ServerError) -> Result<NodeReply, NoReply> {
    if error.is_unknown_script() {
        return Err(NoReply::UnknownScript);
    }
    if error.kind == ServerErrorKind::WrongType {
        // The lock's key holds something that is not a lock, so it does not hold our token.
        let Some(command) = request.custom() else {
            return Ok(NodeReply::of(Vote::Refused));
        };
        if let Some((vote, said)) = command.of_other_type() {
            return Ok(NodeReply::saying(vote, said));
        }
    }
    Err(NoReply::Failed(NodeError::Server(error)))
}

// Requests about shares of a lock, and the members that stand for them in the set of its holders.

/// The value of a lock's key that is shared. Its holders are in a set of their own.
pub const SHARED: &[u8] = b"redlatch:shared";

/// The member that stands for this share: the permit, a colon, and the lock's value. A lock that is
/// not shared has its value.
pub(in crate::node) fn member_of(lock: &LockId) -> Vec<u8> {
    let value = value_of(lock);
    match lock.share() {
        Some(share) => [requested_permit(share).as_bytes(), b":", &value].concat(),
        None => value.into_owned(),
    }
}

/// A member of the set of holders: the permit, if it has one, and the lock's value.
pub fn read_member(member: &[u8]) -> Option<(Option<u32>, &[u8])> {
    let colon = member.iter().position(|byte| *byte == b':')?;
    let digits = &member[..colon];
    let value = &member[colon + 1..];
    if digits.is_empty() {
        return Some((None, value));
    }
    // `parse` would also accept a sign.
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let permit = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((Some(permit), value))
}

/// What a waiter waits for, in the value of its lease: nothing for the exclusive lock.
pub(in crate::node) fn requested_mode(lock: &LockId) -> String {
    lock.share()
        .map_or_else(String::new, |share| format!("s{}", share.permits()))
}

/// The number of the permit in the words of scripts: nothing for a reader, or for any permit.
pub(in crate::node) fn requested_permit(share: Share) -> String {
    share
        .permit()
        .map_or_else(String::new, |number| number.to_string())
}

// Requests about the queue of a lock, and the names that the scripts give to its keys.

/// The prefix of a reservation. The waiter's name follows, and for how many milliseconds the
/// reservation is kept for others after its time. No token begins like this: tokens are 20 random
/// bytes.
pub const RESERVED: &[u8] = b"redlatch:reserved:";

/// The prefix of the channel of a connection, on which nodes notify its waiters.
const CHANNEL: &[u8] = b"redlatch:";

/// Is this value of a lock's key a reservation, and no lock?
pub fn is_reservation(value: &[u8]) -> bool {
    let rest = value
        .strip_prefix(RESERVED)
        .and_then(|rest| rest.get(Token::LEN..));
    rest.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

/// What a holder left at a node when it let the lock stay taken for a while: for how many
/// milliseconds after that while the key is kept for those who wait, and the lock's value.
pub fn read_left(value: &[u8]) -> Option<(u64, &[u8])> {
    let rest = value.strip_prefix(b"redlatch:left:")?;
    let (digits, value) = rest.split_at(rest.iter().position(|byte| *byte == b':')?);
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, &value[1..]))
}

/// How the value of a lock's key begins that a node has reserved for this waiter.
pub(in crate::node) fn reservation(waiter: &Token) -> Vec<u8> {
    [RESERVED, waiter.as_bytes()].concat()
}

/// What a node tells about a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::node) enum Notification {
    /// It reserves the lock for the waiter, or has a share for it.
    Reserved,
    /// The waiter may be the first in this time: so long, the lock is reserved for another one.
    AskIn(Duration),
}

/// The waiter that a message on a channel is for, and what it says.
pub(in crate::node) fn read_notification(message: &[u8]) -> Option<(Token, Notification)> {
    let (name, words) = message.split_at_checked(Token::LEN)?;
    let notification = match words {
        b"r" => Notification::Reserved,
        [b'w', digits @ ..] => {
            let millis = std::str::from_utf8(digits).ok()?.parse().ok()?;
            Notification::AskIn(Duration::from_millis(millis))
        }
        _ => return None,
    };
    Some((Token::new(name.try_into().ok()?), notification))
}

/// The name of a channel. A sharded one has the tag of the node's keys, which is in braces.
pub(in crate::node) fn name_of_channel(channel: Channel, tag: &[u8]) -> Vec<u8> {
    let tag = if channel.is_sharded { tag } else { b"" };
    [CHANNEL, tag, format!("{:016x}", channel.number).as_bytes()].concat()
}

#[cfg(test)]
mod tests;
