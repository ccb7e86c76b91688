//! The state machines that acquire, extend and release a lock, with any inputs at any time.
//!
//! The input is a client's settings and then its operations, one after the other, with the nodes'
//! replies and the passage of time. The properties are checked with arithmetic that is independent
//! of the engine's: see the files below this one for the rules of each operation.

#[path = "engine/acquire.rs"]
mod acquire;
#[path = "engine/extend.rs"]
mod extend;
#[path = "engine/outcome.rs"]
mod outcome;
#[path = "engine/queueing.rs"]
mod queueing;
#[path = "engine/release.rs"]
mod release;
#[path = "engine/votes.rs"]
mod votes;

use super::input::Input;
use redlatch_protocol::engine::{
    Drift, Entropy, HeldLock, LockAttributes, Rules, Share, Token, Ttl,
};
use redlatch_protocol::time::Time;
use std::sync::Arc;
use std::time::Duration;

const MILLISECOND: i128 = 1_000_000;

/// Panics unless the operations in `data` have the right results.
pub(crate) fn check(data: &[u8]) {
    let mut client = Client::new(Input(data));
    while let Some(what) = client.input.byte() {
        match (what % 4, client.held.take()) {
            (0 | 1, held) if what >= 240 => queueing::check(&mut client, held),
            (0 | 1, held) => acquire::check(&mut client, held),
            (2, Some(held)) => extend::check(&mut client, held),
            (_, Some(held)) => release::check(&mut client, &held),
            (_, None) => client.pass_time(),
        }
    }
}

/// A client with one lock, and the list of its inputs.
struct Client<'a> {
    input: Input<'a>,
    rules: Arc<Rules>,
    /// The drift factor again, in parts per billion.
    drift: i128,
    now: Time,
    draws: u64,
    /// The lock that it has, or had.
    held: Option<HeldLock>,
}

impl<'a> Client<'a> {
    fn new(mut input: Input<'a>) -> Self {
        let mut byte = || input.byte().unwrap_or(0);
        let nodes = 1 + usize::from(byte() % 64);
        let drift = u32::from(byte()) * 1_960_784;
        let factor = f64::from(drift) / 1e9;
        let mut rules = Rules::new(nodes, Drift::from_factor(factor).expect("at most a half"));
        rules.node_timeout = duration(byte());
        rules.min_validity = duration(byte());
        rules.retry_base = duration(byte());
        rules.retry_cap = duration(byte());
        rules.hold_max = Some(duration(byte())).filter(|most| !most.is_zero());
        let now = match byte() {
            255 => Time::MAX.before(duration(byte())),
            since_boot => Time::ZERO.after(duration(since_boot)),
        };
        Self {
            input,
            rules: Arc::new(rules),
            drift: drift.into(),
            now,
            draws: 0,
            held: None,
        }
    }

    fn byte(&mut self) -> u8 {
        self.input.byte().unwrap_or(0)
    }

    fn pass_time(&mut self) {
        let pause = duration(self.byte());
        self.now = self.now.after(pause);
    }

    fn ttl(&mut self) -> Ttl {
        let coarse = duration(self.byte());
        let fine = u64::from(self.byte());
        let ttl = coarse.saturating_add(Duration::from_millis(fine));
        Ttl::from_duration(ttl).unwrap_or(Ttl::SHORTEST)
    }

    /// Random numbers, of which the token was never drawn before.
    fn draw(&mut self) -> Entropy {
        self.draws += 1;
        let mut bytes = [0; Entropy::LEN];
        bytes[..8].copy_from_slice(&self.draws.to_be_bytes());
        let seed = self.input.bytes(2);
        bytes[Token::LEN..][..seed.len()].copy_from_slice(seed);
        Entropy::from_bytes(bytes)
    }

    /// The end of the validity of a lock that was requested at `started`: `started + ttl - (ttl *
    /// drift + 2 ms)`, never a nanosecond more, and less by at most the rounding of the drift
    /// factor.
    fn valid_until(&self, started: Time, ttl: Ttl) -> Time {
        let validity = self.rules.drift.validity(ttl).as_nanos() as i128;
        let ttl = i128::from(ttl.as_millis()) * MILLISECOND;
        let lost = (ttl * self.drift + 999_999_999) / 1_000_000_000 + 2 * MILLISECOND;
        let longest = (ttl - lost).max(0);
        let rounding = ttl / 1_000_000_000 + 1;
        assert!(
            (longest - rounding..=longest).contains(&validity),
            "{validity} for {longest}"
        );
        started.after(Duration::from_nanos(validity as u64))
    }
}

/// What an operation with this byte takes: all of the lock, or a share of it.
fn wanted(what: u8) -> Option<Share> {
    match what >> 4 & 3 {
        2 => Some(Share::Reader),
        3 => Some(Share::Permit {
            of: 1 + u32::from(what >> 6),
            number: None,
        }),
        _ => None,
    }
}

/// The lock to hand off, if an operation with this byte does that. Shares are not handed off.
fn predecessor(what: u8, held: Option<HeldLock>) -> Option<HeldLock> {
    let is_whole = |held: &HeldLock| wanted(what).is_none() && held.id().share().is_none();
    held.filter(|held| what & 4 != 0 && is_whole(held))
}

/// The attributes of a lock of which this share is taken, and nothing else.
fn attributes(share: Option<Share>) -> Option<Arc<LockAttributes>> {
    let attributes = LockAttributes {
        share: Some(share?),
        ..LockAttributes::default()
    };
    Some(Arc::new(attributes))
}

/// The duration that a byte stands for: zero, from about a nanosecond to two years, or infinite.
fn duration(byte: u8) -> Duration {
    match byte {
        0 => Duration::ZERO,
        255 => Duration::MAX,
        // Three steps from each power of two to the next.
        _ => Duration::from_nanos((4 + u64::from(byte) % 4) << (byte / 4) >> 2),
    }
}
