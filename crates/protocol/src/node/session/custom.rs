//! What a session does for custom commands, and for no lock: they are written as each run of a
//! server and each slot of a cluster needs them, and a user may lack the right to look.
//!
//! `client.nodes()` looks at the marks of registers, also for users that have rights to locks only.
//! An error proves nothing about the order of replies, so the reply to a `SET` behind it is not a
//! vote: a client that asks again and again for what is refused would disturb attempts to lock
//! again and again.

use super::Session;
use crate::engine::{Command, Request};
use crate::node::command::NoReply;
use crate::node::{NodeError, ServerErrorKind, SharedRequest};
use crate::time::Time;
use std::time::Duration;

/// For how long a node that has refused a look is not asked for another one. The user's rights may
/// be changed.
const NO_LOOK_FOR: Duration = Duration::from_secs(10);

impl Session {
    /// Makes a custom command the one for this node. Fails if it is a look, and one was refused a
    /// moment ago.
    pub(super) fn adapt_custom(
        &self,
        now: Time,
        request: &mut SharedRequest,
    ) -> Result<(), NodeError> {
        if let Some((error, until)) = &self.connection.hidden_look {
            if request.is_look() && now < *until {
                return Err(NodeError::Server(error.clone()));
            }
        }
        if let Some(run_id) = &self.connection.run_id {
            if let Some(adapted) = request.custom().and_then(|it| it.for_run(run_id)) {
                request.change(|request| request.command = Command::Custom(adapted));
            }
        }
        if let Some(group) = &self.options.group {
            let custom = request.custom();
            let adapted = custom.and_then(|it| it.for_group(group.tag(), group.skew()));
            if let Some(adapted) = adapted {
                request.change(|request| request.command = Command::Custom(adapted));
            }
        }
        #[cfg(feature = "groups")]
        if let Some(acknowledged) = self.acknowledgements() {
            if let Some(adapted) = request
                .custom()
                .and_then(|it| it.for_replicas(acknowledged))
            {
                request.change(|request| request.command = Command::Custom(adapted));
            }
        }
        Ok(())
    }

    /// Notes that the user may not see what is looked at.
    pub(super) fn note_hidden_look(&mut self, now: Time, request: &Request, why: &NoReply) {
        if let (true, NoReply::Failed(NodeError::Server(error))) = (request.is_look(), why) {
            if error.kind == ServerErrorKind::NoPermission {
                self.connection.hidden_look = Some((error.clone(), now.after(NO_LOOK_FOR)));
            }
        }
    }
}
