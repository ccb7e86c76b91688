//! In whose reign a replicated group is: asked at the greeting, and behind the votes of each write.

use super::{NodeCommand, Script, ScriptCall, lua_script};
use crate::engine::{Reign, ReignStep, Said, Vote};
use crate::node::command::NodeReply;
use crate::node::group::ReignAnswer;
use crate::resp::Word::{Bytes, Number};
use crate::resp::{Reply, encode_words};

/// Whose reign a replicated group is in, noted in its marker.
pub const REIGN: Script = lua_script!("reign.lua");

/// In whose reign the votes before it were given.
pub const CHECK: Script = lua_script!("check.lua");

impl NodeCommand for Reign {
    fn script(&self) -> Option<(Script, u32)> {
        match self.step {
            ReignStep::Greet { .. } | ReignStep::Confirm { .. } | ReignStep::Touch { .. } => {
                Some((REIGN, 11))
            }
            ReignStep::Wait { .. } => None,
            ReignStep::Check => Some((CHECK, 12)),
        }
    }

    fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let mut reign = |run_id: &str, epoch: u64, nonce: &str, step: &str| {
            let epoch = epoch.to_string();
            let words = [run_id, &epoch, nonce, step].map(str::as_bytes);
            call.run_on(REIGN, &[&self.key], &words, out);
        };
        match &self.step {
            ReignStep::Greet { run_id, epoch, nonce, is_vouched } => {
                reign(run_id, *epoch, nonce, if *is_vouched { "await" } else { "greet" });
            }
            ReignStep::Confirm { run_id, nonce } => reign(run_id, 0, nonce, "confirm"),
            ReignStep::Touch { run_id, nonce } => reign(run_id, 0, nonce, "touch"),
            ReignStep::Wait { replicas, millis } => {
                let words = [Bytes(b"WAIT"), Number(*replicas as u64), Number(*millis)];
                encode_words(out, 3, call.tag, words);
            }
            ReignStep::Check => call.run_on(CHECK, &[&self.key], &[], out),
        }
    }

    fn read(&self, number: i64, reply: &Reply<'_>, _: Option<&[u8]>) -> Option<NodeReply> {
        let answer = ReignAnswer::read(&self.step, number, reply)?;
        Some(NodeReply::saying(Vote::Granted, Said::new(answer)))
    }
}
