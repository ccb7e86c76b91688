//! How a node that runs the scripts carries out the commands of this search.

use crate::node::{Outcome, Request, Slot};
use crate::scheme::Want;
use crate::server::{KEY, LONG, Server, name, reservation};
use crate::token::Token;
use redlatch::internal::embedded::OwnedReply;
use redlatch::internal::node::script::{self, Script};

impl Server {
    /// Carries out a command that arrives on this client's connection, or after that has ended.
    pub(crate) fn run(&mut self, client: Option<usize>, request: Request) -> Outcome {
        let long = LONG.as_bytes();
        match request {
            Request::Try(token) => {
                match self.ask(client, &[b"SET", KEY, &name(token), b"NX", b"PX", long]) {
                    OwnedReply::Null => Outcome::Refused,
                    _ => Outcome::Granted(None),
                }
            }
            Request::TryShare { token, want } => {
                self.share(client, None, token, (want, Some(token.client)))
            }
            Request::TurnShare { id, token, want, first } => {
                self.share(client, Some(id), token, (want, first))
            }
            Request::Queue { id, number, withdraw, want } => {
                self.queue(client, (id, &wish(want)), number, withdraw)
            }
            Request::Turn { id, token } => {
                let words: [&[u8]; 7] =
                    [b"1", &reservation(id), &name(token), long, b"0", b"0", &name(id)];
                self.vote(client, script::CLAIM, &words, None)
            }
            Request::Extend { token, want, slot } if want.is_share() => {
                let permit = digits(slot);
                let words: [&[u8]; 3] = [permit.as_bytes(), &name(token), long];
                self.vote(client, script::EXTEND_SHARED, &words, slot)
            }
            Request::Extend { token, slot, .. } => {
                self.vote(client, script::KEEP, &[&name(token), long, b""], slot)
            }
            Request::Restore(token) => {
                self.vote(client, script::KEEP, &[&name(token), long, b"restore"], None)
            }
            Request::RestoreShare { id, token, slot } => {
                let permit = digits(slot);
                let words: [&[u8]; 3] = [permit.as_bytes(), &name(token), long];
                let outcome = self.vote(client, script::RESTORE_SHARED, &words, slot);
                if let Some(id) = id {
                    self.release_share(client, Some(id), id, slot);
                }
                outcome
            }
            Request::Release(token) => {
                self.call(client, script::RELEASE, &[&name(token)]);
                Outcome::Removed
            }
            Request::Leave { id, token } => {
                self.call(client, script::GIVE, &[&name(token), &name(id), b""]);
                Outcome::Removed
            }
            Request::ReleaseShare { id, token } => {
                let held = self.data().holders.into_iter().find(|share| share.token == token);
                self.release_share(client, id, token, held.and_then(|share| share.slot));
                Outcome::Removed
            }
            Request::Delete(token) => {
                if self.value() == name(token) {
                    self.ask(None, &[b"DEL", KEY]);
                }
                Outcome::Removed
            }
        }
    }

    fn vote(
        &mut self,
        client: Option<usize>,
        script: Script,
        words: &[&[u8]],
        slot: Slot,
    ) -> Outcome {
        match self.call(client, script, words) {
            OwnedReply::Integer(..0) => Outcome::Refused,
            OwnedReply::Error(text) => panic!("{}", text.escape_ascii()),
            _ => Outcome::Granted(slot),
        }
    }

    fn share(
        &mut self,
        client: Option<usize>,
        id: Option<Token>,
        token: Token,
        (want, first): (Want, Slot),
    ) -> Outcome {
        let (permits, first) = (permits(want).to_string(), digits(first));
        let waiter = id.map_or_else(Vec::new, |id| name(id).to_vec());
        let (permits, first) = (permits.as_bytes(), first.as_bytes());
        let words: [&[u8]; 7] =
            [&name(token), LONG.as_bytes(), permits, first, &waiter, b"0", b"0"];
        match self.call(client, script::SHARE, &words) {
            OwnedReply::Array(parts) => match &parts[..] {
                [_, _, _, OwnedReply::Integer(slot)] => Outcome::Granted(u8::try_from(*slot).ok()),
                other => panic!("{other:?}"),
            },
            _ => Outcome::Refused,
        }
    }

    fn release_share(
        &mut self,
        client: Option<usize>,
        id: Option<Token>,
        token: Token,
        slot: Slot,
    ) {
        let waiter = id.map_or_else(Vec::new, |id| name(id).to_vec());
        // Readers say that there are no permits.
        let permits: &[u8] = if slot.is_some() { b"3" } else { b"0" };
        self.call(client, script::RELEASE_SHARED, &[&name(token), permits, &waiter, b""]);
    }
}

/// What a waiter's entry says about what it waits for.
fn wish(want: Want) -> String {
    match want {
        Want::Exclusive => String::new(),
        want => format!("s{}", permits(want)),
    }
}

fn permits(want: Want) -> u8 {
    match want {
        Want::Permit(permits) => permits,
        _ => 0,
    }
}

pub(crate) fn digits(slot: Slot) -> String {
    slot.map_or_else(String::new, |slot| slot.to_string())
}
