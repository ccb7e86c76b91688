//! A lock is removed by force.

use super::FIRST;
use crate::engine::{CustomCommand, NoVote, RunScript, Said, Script, Tally, Vote};
use crate::node::script::{lua_script, vote};
use crate::resp::Reply;
use std::sync::Arc;

/// Deletes a lock's key `KEYS[1]`, whatever token it holds, if its value is one of those that were
/// read before: all of `ARGV` but the last, which is the number.
pub const REMOVE: Script =
    lua_script!("../node/script/waiting.lua", "../node/script/sharing.lua", "remove.lua");

/// Removes the key of a lock, whatever token it holds, if its value is one of those that were seen.
/// What is said is whether it was.
#[derive(Clone, Debug)]
pub struct ForcedRemoval {
    /// The lock's first key.
    pub key: Arc<[u8]>,
    /// The values of the key that were read before.
    pub seen: Arc<[Vec<u8>]>,
}

impl CustomCommand for ForcedRemoval {
    fn key(&self) -> &Arc<[u8]> {
        &self.key
    }

    fn script(&self) -> (Script, u32) {
        (REMOVE, FIRST)
    }

    fn call(&self, run: &mut RunScript<'_>) {
        let seen: Vec<_> = self.seen.iter().map(Vec::as_slice).collect();
        run(&[&self.key], &seen);
    }

    fn read(&self, number: i64, reply: &Reply<'_>) -> Option<Result<(Vote, Said), NoVote>> {
        vote(number, reply).map(|vote| Ok((vote, Said::new(vote == Vote::Granted))))
    }

    /// The key holds something that is no lock, so it does not hold what was seen.
    fn of_other_type(&self) -> Option<(Vote, Said)> {
        Some((Vote::Refused, Said::new(false)))
    }

    fn waits_for_more(&self, _: &[Option<Said>], _: &Tally, _: usize) -> bool {
        true
    }
}
