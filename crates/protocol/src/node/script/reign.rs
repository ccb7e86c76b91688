//! In whose reign a replicated group is: asked at the greeting, and behind the votes of each write.

use super::{CHECK, NodeCommand, REIGN, Script, ScriptCall};
use crate::engine::{
    CustomCommand, NoVote, ReignQuestion, ReignStep, RunScript, Said, Tally, Vote,
};
use crate::node::command::NodeReply;
use crate::node::group::{MARKER, ReignAnswer};
use crate::resp::Word::{Bytes, Number};
use crate::resp::{Reply, encode_words};
use std::sync::Arc;

impl NodeCommand for ReignQuestion {
    fn script(&self) -> Option<Script> {
        match self.step {
            ReignStep::Greet { .. } | ReignStep::Confirm { .. } | ReignStep::Touch { .. } => {
                Some(REIGN)
            }
            ReignStep::Wait { .. } => None,
            ReignStep::Check => Some(CHECK),
        }
    }

    fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let mut reign = |words: [&str; 5]| {
            call.run_on(REIGN, &[&self.key], &words.map(str::as_bytes), out);
        };
        match &self.step {
            ReignStep::Greet {
                run_id,
                epoch,
                nonce,
                last,
                is_vouched,
            } => {
                let step = if *is_vouched { "await" } else { "greet" };
                reign([run_id, &epoch.to_string(), nonce, step, last]);
            }
            ReignStep::Confirm { run_id, nonce } => reign([run_id, "0", nonce, "confirm", ""]),
            ReignStep::Touch { run_id, nonce } => reign([run_id, "0", nonce, "touch", ""]),
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

/// A person changes the markers of replicated groups: those refuse whose reign has another one by
/// now, and to be adopted those of which an earlier reign is known.
#[derive(Clone, Debug)]
pub struct MarkerChange {
    key: Arc<[u8]>,
    run_id: Arc<str>,
    step: &'static str,
    nonce: Arc<str>,
}

impl MarkerChange {
    /// The groups are used for the first time, so they have forgotten no lock that is held. The
    /// seed is random.
    pub fn adopt(seed: u64) -> Self {
        Self::new("adopt", &format!("{seed:016x}"))
    }

    /// The groups may have forgotten locks, although their reign seems to be the same.
    pub fn renew() -> Self {
        Self::new("renew", "0")
    }

    fn new(step: &'static str, nonce: &str) -> Self {
        Self {
            key: MARKER.into(),
            run_id: "0".into(),
            step,
            nonce: nonce.into(),
        }
    }
}

impl CustomCommand for MarkerChange {
    fn key(&self) -> &Arc<[u8]> {
        &self.key
    }

    fn for_run(&self, run_id: &Arc<str>) -> Option<Arc<dyn CustomCommand>> {
        Some(Arc::new(Self {
            run_id: Arc::clone(run_id),
            ..self.clone()
        }))
    }

    fn script(&self) -> Script {
        REIGN
    }

    fn call(&self, run: &mut RunScript<'_>) {
        let words = [&*self.run_id, "0", &*self.nonce, self.step, ""].map(str::as_bytes);
        run(&[&self.key], &words);
    }

    fn read(&self, number: i64, reply: &Reply<'_>) -> Option<Result<(Vote, Said), NoVote>> {
        let vote = match ReignAnswer::greeted(number, reply)? {
            ReignAnswer::Greeted { marker, .. } if self.step == "renew" => {
                marker.starts_with(b"redlatch1 renewed ")
            }
            ReignAnswer::Greeted { marker, .. } => marker.ends_with(self.nonce.as_bytes()),
            _ => false,
        };
        let vote = if vote { Vote::Granted } else { Vote::Refused };
        Some(Ok((vote, Said::new(()))))
    }

    /// Every group is asked.
    fn waits_for_more(&self, _: &[Option<Said>], _: &Tally, _: usize) -> bool {
        true
    }
}
