//! In whose reign a replicated group is: asked at the greeting, and behind the votes of each write.

use super::{CHECK, NodeCommand, REIGN, REIGN_ACKNOWLEDGED, Script, ScriptCall};
use crate::engine::{
    Acknowledgements, CustomCommand, NoVote, ReignQuestion, ReignStep, RunScript, Said, Tally, Vote,
};
use crate::node::command::NodeReply;
use crate::node::group::history::Standing;
use crate::node::group::{MARKER, ReignAnswer};
use crate::resp::Word::{Bytes, Number};
use crate::resp::{Reply, encode_words};
use std::sync::Arc;

fn script_of(acknowledged: Option<Acknowledgements>) -> Script {
    match acknowledged {
        None => REIGN,
        Some(_) => REIGN_ACKNOWLEDGED,
    }
}

/// What follows the arguments that both scripts have.
fn last_arguments(acknowledged: Option<Acknowledgements>) -> Vec<String> {
    let words = acknowledged.map(|it| {
        let quarantine = it.quarantine.as_millis();
        [it.replicas.to_string(), quarantine.to_string()]
    });
    words.into_iter().flatten().collect()
}

impl NodeCommand for ReignQuestion {
    fn script(&self) -> Option<Script> {
        match (&self.step, self.acknowledged) {
            (ReignStep::Wait { .. }, _) => None,
            (ReignStep::Check, None) => Some(CHECK),
            _ => Some(script_of(self.acknowledged)),
        }
    }

    fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let mut reign = |words: [&str; 5]| {
            let last = last_arguments(self.acknowledged);
            let mut words = words.map(str::as_bytes).to_vec();
            words.extend(last.iter().map(String::as_bytes));
            call.run_on(script_of(self.acknowledged), &[&self.key], &words, out);
        };
        match &self.step {
            ReignStep::Greet {
                run_id,
                epoch,
                nonce,
                last,
            } => reign([run_id, &epoch.to_string(), nonce, "greet", last]),
            ReignStep::Confirm { run_id, nonce } => reign([run_id, "0", nonce, "confirm", ""]),
            ReignStep::Prove { run_id, nonce } => reign([run_id, "0", nonce, "prove", ""]),
            ReignStep::Touch => reign(["", "0", "", "touch", ""]),
            ReignStep::Wait { replicas, millis } => {
                let words = [Bytes(b"WAIT"), Number(*replicas as u64), Number(*millis)];
                encode_words(out, 3, call.tag(), words);
            }
            ReignStep::Check if self.acknowledged.is_none() => {
                call.run_on(CHECK, &[&self.key], &[], out);
            }
            ReignStep::Check => reign(["", "0", "", "check", ""]),
        }
    }

    fn read(&self, number: i64, reply: &Reply<'_>, _: Option<&[u8]>) -> Option<NodeReply> {
        let answer = ReignAnswer::read(self, number, reply)?;
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
    /// Of a group whose replicas acknowledge each vote.
    acknowledged: Option<Acknowledgements>,
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
            acknowledged: None,
        }
    }

    /// Is this the marker that was to be written?
    fn is_written(&self, marker: &[u8]) -> bool {
        let mut words = marker.split(|byte| *byte == b' ');
        let run_id = words.nth(1);
        let nonce = words.nth(3);
        match self.step {
            "renew" => run_id == Some(b"renewed"),
            _ => nonce == Some(self.nonce.as_bytes()),
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

    fn for_replicas(&self, acknowledged: Acknowledgements) -> Option<Arc<dyn CustomCommand>> {
        Some(Arc::new(Self {
            acknowledged: Some(acknowledged),
            ..self.clone()
        }))
    }

    fn script(&self) -> Script {
        script_of(self.acknowledged)
    }

    fn call(&self, run: &mut RunScript<'_>) {
        let last = last_arguments(self.acknowledged);
        let words = [&*self.run_id, "0", &*self.nonce, self.step, ""];
        let mut words = words.map(str::as_bytes).to_vec();
        words.extend(last.iter().map(String::as_bytes));
        run(&[&self.key], &words);
    }

    fn read(&self, number: i64, reply: &Reply<'_>) -> Option<Result<(Vote, Said), NoVote>> {
        let marker = if self.acknowledged.is_some() {
            match Standing::read(number, reply)? {
                Standing::Reigning(it) => it.marker,
                _ => Vec::new(),
            }
        } else {
            match ReignAnswer::greeted(number, reply)? {
                ReignAnswer::Greeted { marker, .. } => marker,
                _ => Vec::new(),
            }
        };
        let is_written = self.is_written(&marker);
        let vote = if is_written {
            Vote::Granted
        } else {
            Vote::Refused
        };
        Some(Ok((vote, Said::new(()))))
    }

    /// Every group is asked.
    fn waits_for_more(&self, _: &[Option<Said>], _: &Tally, _: usize) -> bool {
        true
    }
}
