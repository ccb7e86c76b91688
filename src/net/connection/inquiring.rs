//! Asking the servers of a group for their histories, while the connection to its master is in use.

use super::NodeConnection;
use super::connecting::Io;
use crate::clock;
use crate::net::stream::{Target, literal};
use crate::net::witness::{MasterPlace, inquire};
use crate::node::Conversation;

impl NodeConnection {
    /// Begins to ask, if the session wants that now. It does not while the last answers may come.
    pub(super) fn inquire_if_due<C: Conversation>(&mut self, io: &mut Io<'_, C>) {
        let Some(due_at) = io.conversation.inquires_at(self.node) else {
            return;
        };
        let now = clock::now();
        if now < due_at {
            return;
        }
        io.conversation.inquiring(self.node, now);
        let is_awaited = self.inquiry_until.is_some_and(|until| now < until);
        let Some(master) = self.master().filter(|_| !is_awaited) else {
            return;
        };
        let until = now.after(self.options.timeout);
        let reporter = io.resolver.reporter(self.node.index());
        // Without a thread for it, the next inquiry is due soon.
        if inquire(master, &self.endpoint.auth, until, reporter).is_ok() {
            self.inquiry_until = Some(until);
        }
    }

    /// Where the server is to which the connection leads. By its address: the name may lead to
    /// another one by now.
    fn master(&self) -> Option<MasterPlace> {
        let socket = self.socket.as_ref().filter(|socket| socket.is_connected)?;
        match (socket.address, literal(&self.endpoint.address)) {
            (Some(address), _) => Some(MasterPlace {
                host: self.found.as_ref()?.host.clone(),
                address,
            }),
            (None, Some(Target::Tcp(address))) => Some(MasterPlace {
                host: address.ip().to_string(),
                address,
            }),
            (None, Some(Target::Unix(_)) | None) => None,
        }
    }
}
