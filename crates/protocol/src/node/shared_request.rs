//! A request that all sessions share.

use super::GroupOptions;
use super::command::{Form, encode_without_number, script_of};
use super::flight::IN_FLIGHT_MAX;
use crate::engine::Request;
use crate::resp::encode_number;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

/// A request, to several nodes perhaps, of which no copy is made.
#[derive(Clone, Debug)]
pub struct SharedRequest(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    request: Request,
    /// The number of the script that carries it out, if it takes one.
    script: Option<u32>,
    /// What is written to each node that knows the script and is not a group, all but the number of
    /// the command. Empty if the request is for one node only.
    text: Vec<u8>,
}

impl SharedRequest {
    /// Adapts the request to one node. The other nodes' stays as it is.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Request)) {
        let mut request = self.0.request.clone();
        change(&mut request);
        *self = request.into();
    }

    /// The number of the script that carries it out, if it takes one.
    pub(super) fn script(&self) -> Option<u32> {
        self.0.script
    }

    /// Does the answer to this request prove that it belongs to this request? The answer to a plain
    /// `SET` could belong to any other command.
    pub(super) fn has_proof(&self) -> bool {
        self.script().is_some()
    }

    /// As [`encode`](super::command::encode).
    pub(super) fn encode(
        &self,
        form: Form,
        number: u64,
        group: Option<&GroupOptions>,
        out: &mut Vec<u8>,
    ) {
        if form == Form::Digest && group.is_none() && !self.0.text.is_empty() {
            out.extend_from_slice(&self.0.text);
        } else {
            encode_without_number(self, form, group, out);
        }
        if self.has_proof() {
            encode_number(out, number);
        }
    }
}

impl From<Request> for SharedRequest {
    fn from(request: Request) -> Self {
        let script = script_of(&request);
        Self(Arc::new(Inner {
            request,
            script,
            text: Vec::new(),
        }))
    }
}

impl Deref for SharedRequest {
    type Target = Request;

    fn deref(&self) -> &Request {
        &self.0.request
    }
}

/// The last requests, the oldest first, whose memory is used again: as long as the nodes answer, a
/// lock allocates nothing for its commands.
#[derive(Debug, Default)]
pub(super) struct LastRequests(VecDeque<SharedRequest>);

/// Memory for longer texts is given back. A removal names a key twice, with its queue.
const TEXT_MAX: usize = 16 * 1024;

/// A lock that is kept holds its request for long: how many such are passed over.
const TRIES: usize = 4;

impl LastRequests {
    /// Shares a request, and encodes it once.
    pub(super) fn share(&mut self, request: Request) -> SharedRequest {
        for _ in 0..TRIES {
            let Some(mut oldest) = self.0.pop_front() else {
                break;
            };
            if let Some(inner) = Arc::get_mut(&mut oldest.0) {
                *inner = Inner::new(request, std::mem::take(&mut inner.text));
                return self.keep(oldest);
            }
            self.0.push_back(oldest);
        }
        self.keep(SharedRequest(Arc::new(Inner::new(request, Vec::new()))))
    }

    fn keep(&mut self, shared: SharedRequest) -> SharedRequest {
        if self.0.len() < IN_FLIGHT_MAX && shared.0.text.len() <= TEXT_MAX {
            self.0.push_back(shared.clone());
        }
        shared
    }
}

impl Inner {
    fn new(request: Request, mut text: Vec<u8>) -> Self {
        text.clear();
        if request.nodes.len() > 1 {
            encode_without_number(&request, Form::Digest, None, &mut text);
        }
        Self {
            script: script_of(&request),
            request,
            text,
        }
    }
}
