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
#[path = "../../../src/registers/register/update.rs"]
mod update;
mod votes;

pub(crate) use caller::Caller;

use crate::clock;
use crate::error::RegisterError;
use crate::register::{PREFIX, Shared};
use crate::task::Line;
use read::Observation;
use redlatch_registers::transaction::Record;
use redlatch_registers::{
    Change, Draft, GROUP_REGISTER, RegisterCommand, RegisterKeys, Stored, Version,
};
use std::rc::Rc;
use std::time::Duration;

/// The pause between two looks at a register that is awaited.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// A thread of a client, while it is in a call.
#[derive(Clone)]
pub(crate) struct Thread {
    pub(crate) shared: Rc<Shared>,
    pub(crate) line: Line,
    /// Which thread of its client it is.
    pub(crate) worker: usize,
}

impl Thread {
    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller { thread: self }
    }

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

impl Value {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// Puts a value into a draft, or deletes it there.
fn put(draft: &mut Draft, new: Option<Vec<u8>>) -> Result<Option<Version>, RegisterError> {
    let Some(new) = new else {
        draft.delete();
        return Ok(None);
    };
    Ok(Some(draft.put(new.into(), None)))
}

impl Register {
    pub(crate) async fn read(&self) -> Result<Option<Stored>, RegisterError> {
        let value = self.value().await?;
        Ok(value.map(|Value(stored)| stored))
    }

    /// Makes a change, together with the other threads of this client.
    pub(crate) async fn change<T>(
        &self,
        mut change: impl FnMut(&mut Draft) -> T,
    ) -> Result<T, RegisterError> {
        let combined = self.combined()?;
        let mut body = |draft: &mut Draft| Ok(change(draft));
        let mut result = self.run_with(&combined, Change::new, &mut body).await;
        if self.begins_again(&result) {
            result = self.run_with(&combined, Change::new, &mut body).await;
        }
        result.map(|(result, _)| result)
    }

    /// Reads the value, by a command that answers it.
    async fn look(&self, command: &RegisterCommand) -> Result<Observation, RegisterError> {
        let (look, _) = self.look_with(command).await?;
        self.remove_by_mistake(command).await?;
        Ok(look)
    }

    /// Looks again and again until the value is as it is wanted, for up to `wait`.
    pub(crate) async fn wait_until(
        &self,
        wait: Duration,
        is_wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Result<Option<Value>, RegisterError> {
        let until = clock::now().after(wait);
        loop {
            let value = self.value().await?;
            if is_wanted(value.as_ref()) {
                return Ok(value);
            }
            let now = clock::now();
            if now >= until {
                return self.lose_patience_by_mistake(value).await;
            }
            let pause = LOOK_PAUSE.min(until.since(now));
            self.thread.caller().pause(pause).await;
        }
    }

    /// What users write is not a record.
    fn delete_if_over(&self, draft: &mut Draft) {
        let is_over = |value: &Stored| Record::read(value.bytes()) == Ok(None);
        if draft.current().is_some_and(is_over) {
            draft.delete();
        }
    }
}
