//! The commands of a search as the library encodes them, and what it reads in the answers.

use crate::embedded::{KEY, LONG, NAMES};
use crate::keys::{SINCE, lease};
use crate::node::{CLAIM, Outcome, Place, Request, Slot};
use crate::token::Token;
use crate::want::Want;
use redlatch_protocol::engine::{
    self, Before, Channel, Claim, ClaimTime, Command, Drift, Keep, Listen, ListenStep,
    LockAttributes, LockId, QueueEntry, Removal, Rules, Ttl, Vote,
};
use redlatch_protocol::node::command::NodeReply;
use redlatch_protocol::time::Time;
use std::time::Duration;

/// An attempt that nobody makes, for a round that withdraws none.
const NONE: Token = Token {
    client: u8::MAX,
    attempt: 0,
};

/// What the library sends.
pub(crate) fn sent(request: Request, is_mute: bool) -> engine::Request {
    let ttl = millis(LONG);
    let claim = |lock, before| {
        Command::Claim(Claim {
            lock,
            ttl,
            fence: 0,
            before,
        })
    };
    let keep = |lock, restores| {
        Command::Keep(Keep {
            lock,
            ttl,
            restores,
            reclaims: false,
            is_resumed: false,
        })
    };
    let command = match request {
        Request::Try { token, want } => claim(lock(token, want, None), Before::Nothing),
        Request::Queue {
            id,
            number,
            withdraw,
            want,
        } => Command::Queue(QueueEntry {
            lock: lock(withdraw.unwrap_or(NONE), want, None),
            ttl,
            waiter: id.wide(),
            number: number.into(),
            since: SINCE,
            lease: millis(lease(want)),
            lease_in_front: millis(lease(want)),
            claim: ClaimTime {
                notified: millis(CLAIM),
                asking: millis(2 * CLAIM),
            },
            channel: (!is_mute).then(|| channel(id.client)),
        }),
        Request::Turn {
            id,
            token,
            want,
            slot,
        } => claim(lock(token, want, slot), Before::Turn(id.wide())),
        Request::Extend { token, want, slot } => keep(lock(token, want, slot), false),
        Request::Restore {
            token, want, slot, ..
        } => keep(lock(token, want, slot), true),
        Request::Release {
            id,
            token,
            want,
            keeps,
        } => Command::Remove(Removal {
            lock: lock(token, want, None),
            ttl,
            keep_for: keeps.then(|| millis(CLAIM)),
            waiter: id.map(Token::wide),
            is_awaited: true,
        }),
        Request::Delete(_) => unreachable!("no command of the library"),
    };
    of_all_nodes(command)
}

/// How a client listens to what nodes tell its waiters.
pub(crate) fn subscription(client: u8) -> engine::Request {
    of_all_nodes(Command::Listen(Listen {
        key: KEY.into(),
        step: ListenStep::Subscribe(channel(client)),
    }))
}

fn channel(client: u8) -> Channel {
    Channel {
        number: client.into(),
        is_sharded: false,
    }
}

pub(crate) fn of_all_nodes(command: Command) -> engine::Request {
    let drift = Drift::from_factor(0.0).expect("a factor");
    engine::Request::to_all(&Rules::new(1, drift), Time::ZERO, command)
}

pub(crate) fn millis(millis: u64) -> Ttl {
    Ttl::from_duration(Duration::from_millis(millis)).expect("a ttl")
}

fn lock(token: Token, want: Want, slot: Slot) -> LockId {
    let share = match want {
        Want::Exclusive | Want::Second | Want::Both => None,
        Want::Reader => Some(engine::Share::Reader),
        Want::Permit(of) => Some(engine::Share::Permit {
            of: of.into(),
            number: slot.map(u32::from),
        }),
    };
    let mut keys = want.locks().iter().map(|index| NAMES[*index].into());
    let key = keys.next().expect("at least one");
    let mut attributes = LockAttributes::default();
    (attributes.share, attributes.more_keys) = (share, keys.collect());
    let attributes = (attributes != LockAttributes::default()).then(|| attributes.into());
    LockId {
        key,
        token: token.wide(),
        attributes,
    }
}

/// The answer that this means.
pub(crate) fn outcome(request: Request, reply: NodeReply) -> Outcome {
    match (request, reply.vote, reply.view) {
        (_, Vote::Failed, _) => panic!("{request:?} failed: {:?}", reply.problem),
        (Request::Release { .. }, ..) => Outcome::Removed,
        (_, Vote::Refused, _) => Outcome::Refused,
        (Request::Extend { slot, .. } | Request::Restore { slot, .. }, ..) => {
            Outcome::Granted(slot)
        }
        (_, _, None) => Outcome::Granted(reply.permit.map(|permit| permit as u8)),
        (_, _, Some(view)) => {
            let ends = view
                .left
                .is_some_and(|left| left < Duration::from_millis(LONG / 2));
            Outcome::Place(Place {
                number: reply.counter.expect("a number") as u8,
                before: view.place as u8,
                is_mine: view.is_reserved,
                lacks: view.lacks.map(|index| index as u8),
                was_out: view.was_out,
                ends: ends && !view.is_reserved,
                free: view.free.numbers().map(|number| 1 << number).sum(),
            })
        }
    }
}
