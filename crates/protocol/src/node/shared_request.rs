//! A request that all sessions share.

use super::command::{self, Form, has_proof};
use crate::engine::Request;
use crate::resp::encode_number;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A request to several nodes: it is encoded once, and no copy is made of it.
#[derive(Clone, Debug)]
pub struct SharedRequest(Arc<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    request: Request,
    /// What is written to a node without a tag, all but the number of the command, and in which
    /// form.
    text: OnceLock<(Form, Vec<u8>)>,
}

impl SharedRequest {
    /// The request, to adapt it to one node. The other nodes' stays as it is.
    pub(super) fn change(&mut self) -> &mut Request {
        let Inner { request, text } = Arc::make_mut(&mut self.0);
        text.take();
        request
    }

    /// As [`command::encode`].
    pub(super) fn encode(&self, form: Form, number: u64, tag: &[u8], out: &mut Vec<u8>) {
        let encoded = || {
            let mut text = Vec::with_capacity(TEXT);
            command::encode_without_number(self, form, tag, &mut text);
            (form, text)
        };
        match tag.is_empty().then(|| self.0.text.get_or_init(encoded)) {
            Some((of, text)) if *of == form => out.extend_from_slice(text),
            _ => command::encode_without_number(self, form, tag, out),
        }
        if has_proof(self) {
            encode_number(out, number);
        }
    }
}

/// Room for a command about a lock with a short name.
const TEXT: usize = 192;

impl From<Request> for SharedRequest {
    fn from(request: Request) -> Self {
        Self(Arc::new(Inner { request, text: OnceLock::new() }))
    }
}

impl Deref for SharedRequest {
    type Target = Request;

    fn deref(&self) -> &Request {
        &self.0.request
    }
}
