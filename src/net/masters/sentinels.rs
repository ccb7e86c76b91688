//! Asks the Sentinels of a group what they say about it, each on a thread of its own, over a
//! connection of its own.

use super::{ASKING_MAX, LookupAuth, decode_all};
use crate::clock::{self, Time};
use crate::net::probe::ProbeConnection;
use crate::node::handshake::auth;
use crate::node::{SentinelAnswer, SentinelAnswers};
use crate::node_url::{Address, HostPort};
use crate::resp::encode_command;
use std::sync::Arc;
use std::thread;

/// Asks all Sentinels of this node at the same time, if it has any. What is returned waits until
/// all have answered or failed, or the time is over.
pub(crate) fn ask_sentinels(
    address: &Address,
    auth: &LookupAuth,
    until: Time,
) -> Option<impl FnOnce() -> SentinelAnswers + use<>> {
    let Address::Sentinel { sentinels, group } = address else {
        return None;
    };
    let (sender, answers) = crossbeam_channel::unbounded();
    let idle = sentinels.iter().zip(&*auth.asking);
    for (sentinel, asking) in idle.filter(|(_, it)| Arc::strong_count(it) < ASKING_MAX / 2) {
        let sentinel = sentinel.clone();
        let group = group.clone();
        let auth = auth.clone();
        let sender = sender.clone();
        let asking = Arc::clone(asking);
        let thread = thread::Builder::new().name("redlatch-sentinel".to_owned());
        // Without a thread there is no answer of this one.
        let _ = thread.spawn(move || {
            // It fails if nobody waits any more.
            let _ = sender.send(ask(&sentinel, &group, &auth, until));
            drop(asking);
        });
    }
    let named = sentinels.len();
    Some(move || {
        let mut given = Vec::new();
        while let Ok(answer) = answers.recv_timeout(until.since(clock::now())) {
            given.extend(answer);
        }
        SentinelAnswers {
            named,
            answers: given,
        }
    })
}

fn ask(sentinel: &HostPort, group: &str, by: &LookupAuth, until: Time) -> Option<SentinelAnswer> {
    let mut question = Vec::new();
    let login = auth(by.login.user.as_deref(), by.login.password.as_deref());
    if let Some(login) = &login {
        encode_command(&mut question, login);
    }
    encode_command(&mut question, &[b"SENTINEL", b"MASTER", group.as_bytes()]);
    let place = (&*sentinel.host, sentinel.port);
    let mut probe = ProbeConnection::connect(place, by.tls.as_ref(), until).ok()?;
    let mut answer = None;
    // Behind the answer to `AUTH`: many Sentinels have no password, and answer even so.
    let count = 1 + usize::from(login.is_some());
    let asked = probe.ask(&question, |bytes| {
        let Some(replies) = decode_all(bytes, count).transpose() else {
            return false;
        };
        answer = replies.ok().and_then(|it| SentinelAnswer::read(it.last()?));
        true
    });
    asked.ok()?;
    answer
}
