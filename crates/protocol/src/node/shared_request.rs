//! A request that all sessions share.

use super::command::{self, Form, script_of};
use crate::engine::Request;
use crate::resp::encode_number;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A request, to several nodes perhaps: then it is encoded once, and no copy is made of it.
#[derive(Clone, Debug)]
pub struct SharedRequest(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    request: Request,
    /// The number of the script that carries it out, if it takes one.
    script: Option<u32>,
    /// What is written to a node without a tag, all but the number of the command, and in which
    /// form.
    text: OnceLock<(Form, Vec<u8>)>,
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

    /// As [`command::encode`].
    pub(super) fn encode(&self, form: Form, number: u64, tag: &[u8], out: &mut Vec<u8>) {
        let encoded = || {
            let mut text = Vec::with_capacity(TEXT);
            command::encode_without_number(self, form, tag, &mut text);
            (form, text)
        };
        // What was adapted to one node is not written to another.
        let is_for_others = tag.is_empty() && Arc::strong_count(&self.0) > 1;
        match is_for_others.then(|| self.0.text.get_or_init(encoded)) {
            Some((of, text)) if *of == form => out.extend_from_slice(text),
            _ => command::encode_without_number(self, form, tag, out),
        }
        if self.has_proof() {
            encode_number(out, number);
        }
    }
}

/// Room for a command about a lock with a short name.
const TEXT: usize = 192;

impl From<Request> for SharedRequest {
    fn from(request: Request) -> Self {
        let script = script_of(&request);
        Self(Arc::new(Inner { request, script, text: OnceLock::new() }))
    }
}

impl Deref for SharedRequest {
    type Target = Request;

    fn deref(&self) -> &Request {
        &self.0.request
    }
}
