//! A register, as a simulated thread uses it.

mod caller;
#[path = "../../../src/registers/register/change.rs"]
mod change;
mod mistakes;
#[path = "../../../src/registers/register/nodes.rs"]
mod nodes;
#[path = "../../../src/registers/register/read.rs"]
#[allow(dead_code, reason = "no simulated thread watches a register")]
mod read;
#[path = "../../../src/registers/register/repair.rs"]
#[allow(dead_code, reason = "the nodes are formed before a history begins")]
mod repair;
mod turn;
mod votes;

use crate::error::RegisterError;
use crate::register::{PREFIX, Shared};
use crate::task::Line;
use redlatch_registers::{Draft, GROUP_REGISTER, RegisterCommand, RegisterKeys, Stored};
use std::rc::Rc;
use std::sync::Arc;

/// A thread of a client, while it is in a call.
#[derive(Clone)]
pub(crate) struct Thread {
    pub(crate) shared: Rc<Shared>,
    pub(crate) line: Line,
    /// Which thread of its client it is.
    pub(crate) worker: usize,
}

impl Thread {
    pub(crate) fn register(&self, name: &[u8]) -> Register {
        Register {
            thread: self.clone(),
            keys: RegisterKeys::new(PREFIX, name),
        }
    }

    /// Gives each node that answers and has no vote its vote. Returns how many have got it.
    pub(crate) async fn repair(&self) -> Result<usize, RegisterError> {
        let register = self.register(GROUP_REGISTER);
        if let Some(repaired) = register.repair_by_mistake().await {
            return repaired;
        }
        let repaired = register.repair(None).await?;
        Ok(repaired.len())
    }
}

pub(crate) struct Register {
    thread: Thread,
    keys: RegisterKeys,
}

/// A value, of which a call returns what was written.
pub(crate) struct Value(Stored);

impl Register {
    pub(crate) async fn read(&self) -> Result<Option<Stored>, RegisterError> {
        let command = RegisterCommand::Read { watcher: None };
        let (look, _) = self.look_with(&command).await?;
        Ok(look.value.map(|Value(stored)| stored))
    }

    /// Makes a change, together with the other threads of this client.
    pub(crate) async fn change<T>(
        &self,
        mut change: impl FnMut(&mut Draft) -> T,
    ) -> Result<T, RegisterError> {
        let mut result = self.run(|draft| Ok(change(draft))).await;
        if self.begins_again(&result) {
            result = self.run(|draft| Ok(change(draft))).await;
        }
        result.map(|(result, _)| result)
    }

    /// The same without them.
    pub(crate) async fn change_alone<T>(
        &self,
        mut change: impl FnMut(&mut Draft) -> T,
    ) -> Result<T, RegisterError> {
        let (result, _) = self.run_alone(|draft| Ok(change(draft))).await?;
        Ok(result)
    }

    /// Raises the last bytes of the value. `None` if no majority agrees.
    pub(crate) async fn raise(
        &self,
        levels: Arc<[u8]>,
    ) -> Result<Option<Option<Stored>>, RegisterError> {
        let nodes = self.nodes()?;
        let group = nodes.group().await?;
        let command = RegisterCommand::Raise(levels);
        let round = nodes.ask(&self.keys, &group, command).await;
        let agreed = round.replies.agreed();
        Ok(agreed.map(|state| state.and_then(|it| round.replies.value(it.ballot))))
    }

    /// What is left of a record is read as none.
    fn delete_if_over(&self, _: &mut Draft) {}
}
