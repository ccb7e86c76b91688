//! Until when a session, and with it every lock that it holds, may be relied on.
//!
//! The leader ends a session when it has not heard of it for the session's timeout T. It hears of
//! it from the server that has the connection, which tells it with its answer to the leader's
//! pings, two in each tick. That server answers a client for some time after the majority has left
//! it, and so does a leader that was left. So an answer proves little, and this much:
//!
//! ```text
//!            a          at least T/4          m              b
//!   client   s₁──╲   ╱──r₁ ───────────── s₂──╲   ╱──r₂ s₃──╲       ╱──r₃  now: valid until s₁ + T
//!   server        ╲ ╱                         ╲ ╱           ╲     ╱
//!   leader                 ▲ its ping         m              b logged by a majority
//! ```
//!
//! - **a** is any request. Its server has heard of the session after `s₁`.
//! - **m** is a sync or a write, `s₂ >= r₁ + T/4`: it passes through the leader. Half a tick is at
//!   most T/4, so between a and m the leader has queued a ping for the server. What goes between
//!   the two keeps its order, so the server has answered that ping before it passes **b** on.
//! - **b** is a write, `s₃ >= r₂`: a majority has logged it behind that answer. So its leader led
//!   then, and had heard of the session. A later leader gives every session a full T.
//!
//! The request that connects is an a that needs no m: for it, the leader itself asks for the
//! session. All three are on one connection, which ends when its server changes leaders.
//!
//! `s` is read before the first byte is written and `r` after the last one was read. Both errors
//! are on the safe side, as are a larger distance between a and m by the drift of the clocks, and a
//! validity shorter by it.
//!
//! Not everything that looks like it is a proof: a ping is answered by the server alone, and a sync
//! by its leader alone.

use redlatch_protocol::time::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// How far a request goes, from the nearest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The server that has the connection answers it.
    Server,
    /// It passes through the leader.
    Leader,
    /// A majority logs it.
    Majority,
}

/// The timeout of a session and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTimeout {
    granted: Duration,
    /// How much of the timeout counts.
    usable: Duration,
    /// Half a tick is not longer, however the clocks drift.
    half_tick_max: Duration,
}

impl SessionTimeout {
    /// Of clocks that drift apart by at most this share of the time measured.
    pub fn new(timeout: Duration, drift_parts_per_billion: u32) -> Self {
        let drift = u128::from(drift_parts_per_billion);
        // Rounded up, as a gap that is too short proves nothing.
        let quarter = timeout.saturating_add(Duration::from_nanos(3)) / 4;
        Self {
            granted: timeout,
            usable: timeout.saturating_sub(billionths(timeout, drift)),
            half_tick_max: quarter.saturating_add(billionths(quarter, drift)),
        }
    }
}

/// So many billionths of this duration, rounded up.
fn billionths(duration: Duration, count: u128) -> Duration {
    let nanos = (duration.as_nanos() * count).div_ceil(1_000_000_000);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The validity of one session, over one connection after another.
#[derive(Debug)]
pub struct Validity {
    timeout: SessionTimeout,
    valid_until: Time,
    /// Answered requests of this connection, of which each may be an a. Oldest first, and not more
    /// than one for every 32nd of `half_tick_max`.
    answered: VecDeque<Answered>,
    /// The latest `s` of an a of this connection for which there is an m, or needs none.
    passed: Option<Time>,
}

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
struct Answered {
    sent_at: Time,
    answered_at: Time,
}

/// What the answer to a request that was sent will show.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    sent_at: Time,
    reach: Reach,
    /// The latest a for which it may be an m.
    passes: Option<Time>,
    /// The latest a for which it may be a b.
    proves: Option<Time>,
}

impl Validity {
    /// The validity of a session that is not proven yet. Its connection is to be told of by
    /// [`connected`](Self::connected).
    pub fn new(timeout: SessionTimeout) -> Self {
        Self {
            timeout,
            valid_until: Time::ZERO,
            answered: VecDeque::new(),
            passed: None,
        }
    }

    /// The granted timeout, T.
    pub fn timeout(&self) -> Duration {
        self.timeout.granted
    }

    /// Until when the session lives at least, as far as is proven.
    pub fn valid_until(&self) -> Time {
        self.valid_until
    }

    /// A new connection of the session: the server has answered at `now` to the connect request
    /// that was sent at `sent_at`. Nothing of the connection before it counts any more, but what it
    /// has proven stays.
    ///
    /// A server may be configured to grant less than the one before did. Its leader then ends the
    /// session by the new timeout, and so that counts.
    pub fn connected(&mut self, sent_at: Time, now: Time, timeout: SessionTimeout) {
        debug_assert!(sent_at <= now, "time does not go back");
        if timeout.granted < self.timeout.granted {
            self.valid_until = self.valid_until.min(sent_at.after(timeout.usable));
        }
        self.timeout = timeout;
        self.answered.clear();
        self.passed = Some(sent_at);
    }

    /// A request is sent on the connection; `now` is read before its first byte is written.
    pub fn sent(&mut self, now: Time, reach: Reach) -> Probe {
        let half_tick = self.timeout.half_tick_max;
        while self
            .answered
            .get(1)
            .is_some_and(|next| next.answered_at.after(half_tick) <= now)
        {
            self.answered.pop_front();
        }
        let oldest = self.answered.front();
        let apart = oldest.filter(|oldest| oldest.answered_at.after(half_tick) <= now);
        // All that passed so far did so at an answer before now.
        let passes = apart.map(|oldest| oldest.sent_at);
        let proves = self.passed;
        Probe {
            sent_at: now,
            reach,
            passes,
            proves,
        }
    }

    /// A request of this connection was answered; `now` is read after the last byte was. It went as
    /// far as its [`Reach`] says: a refusal by the server alone did not, and does not count.
    pub fn answered(&mut self, now: Time, request: Probe) {
        if request.reach == Reach::Majority {
            if let Some(proven) = request.proves {
                self.valid_until = self.valid_until.max(proven.after(self.timeout.usable));
            }
        }
        if request.reach != Reach::Server {
            self.passed = self.passed.max(request.passes);
        }
        let grain = self.timeout.half_tick_max / 32;
        let latest = self.answered.back();
        if latest.is_none_or(|latest| request.sent_at.since(latest.sent_at) >= grain) {
            let sent_at = request.sent_at;
            self.answered.push_back(Answered {
                sent_at,
                answered_at: now,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a session with a timeout of 4 s, in milliseconds, without drift.
    struct Script(Validity, VecDeque<Probe>);

    impl Script {
        fn connected(sent_at: u64, now: u64) -> Self {
            let timeout = SessionTimeout::new(Duration::from_secs(4), 0);
            let mut script = Self(Validity::new(timeout), VecDeque::new());
            script
                .0
                .connected(Time::from_millis(sent_at), Time::from_millis(now), timeout);
            script
        }

        fn sent(&mut self, now: u64, reach: Reach) {
            let probe = self.0.sent(Time::from_millis(now), reach);
            self.1.push_back(probe);
        }

        fn answered(&mut self, now: u64) {
            let oldest = self.1.pop_front().expect("it was sent");
            self.0.answered(Time::from_millis(now), oldest);
        }

        /// A request that takes 10 ms.
        fn ask(&mut self, now: u64, reach: Reach) {
            self.sent(now, reach);
            self.answered(now + 10);
        }

        #[track_caller]
        fn assert_valid_until(&self, millis: u64) {
            assert_eq!(self.0.valid_until(), Time::from_millis(millis));
        }
    }

    #[test]
    fn one_answered_write_proves_the_connect_request() {
        let mut script = Script::connected(100, 150);
        script.assert_valid_until(0);
        script.ask(160, Reach::Server);
        script.ask(170, Reach::Leader);
        script.assert_valid_until(0);
        script.sent(180, Reach::Majority);
        script.assert_valid_until(0);
        script.answered(900);
        script.assert_valid_until(4_100);
    }

    #[test]
    fn a_request_counts_when_a_sync_and_a_write_have_followed_it() {
        for middle in [Reach::Leader, Reach::Majority] {
            let mut script = Script::connected(0, 0);
            script.ask(100, Reach::Server);
            script.ask(1_110, middle);
            script.ask(1_120, Reach::Majority);
            script.assert_valid_until(4_100);
        }
    }

    #[test]
    fn the_middle_request_comes_a_quarter_of_the_timeout_after_the_first_answer() {
        for (sent_at, valid_until) in [(1_109, 4_000), (1_110, 4_100)] {
            let mut script = Script::connected(0, 0);
            script.ask(100, Reach::Server);
            script.ask(sent_at, Reach::Leader);
            script.ask(1_130, Reach::Majority);
            script.assert_valid_until(valid_until);
        }
    }

    #[test]
    fn the_last_request_is_sent_after_the_answer_to_the_middle_one() {
        let mut script = Script::connected(0, 0);
        script.ask(100, Reach::Server);
        script.sent(1_200, Reach::Leader);
        script.sent(1_200, Reach::Majority);
        script.answered(1_210);
        script.answered(1_210);
        script.assert_valid_until(4_000);
        script.ask(1_210, Reach::Majority);
        script.assert_valid_until(4_100);
    }

    #[test]
    fn neither_reads_nor_syncs_prove_anything() {
        let mut script = Script::connected(0, 0);
        for now in (100..60_000).step_by(100) {
            script.ask(
                now,
                if now % 200 == 0 {
                    Reach::Server
                } else {
                    Reach::Leader
                },
            );
        }
        script.assert_valid_until(0);
        script.ask(60_000, Reach::Majority);
        // The latest that was answered a quarter of the timeout before the last sync.
        script.assert_valid_until(58_800 + 4_000);
    }

    #[test]
    fn a_read_is_no_middle() {
        let mut script = Script::connected(0, 0);
        script.ask(100, Reach::Server);
        script.ask(2_000, Reach::Server);
        script.ask(2_100, Reach::Majority);
        script.assert_valid_until(4_000);
    }

    #[test]
    fn writes_at_the_beat_of_a_seventh_leave_three_sevenths_at_least() {
        let beat = 4_000 / 7;
        let timeout = 4_000;
        let mut script = Script::connected(0, 0);
        script.ask(10, Reach::Majority);
        for now in (beat..60 * beat).step_by(beat as usize) {
            let before = script.0.valid_until().since(Time::from_millis(now + 10));
            assert!(
                before.as_millis() >= timeout * 3 / 7 - 10,
                "{before:?} at {now}"
            );
            script.ask(now, Reach::Majority);
        }
    }

    #[test]
    fn a_refusal_by_the_server_counts_for_nothing() {
        let mut script = Script::connected(0, 0);
        // It is not told of.
        script.sent(100, Reach::Majority);
        script.1.clear();
        script.assert_valid_until(0);
        script.ask(1_200, Reach::Majority);
        script.ask(1_300, Reach::Majority);
        script.assert_valid_until(4_000);
    }

    #[test]
    fn a_new_connection_begins_again_and_what_was_proven_stays() {
        let mut script = Script::connected(0, 0);
        script.ask(1_000, Reach::Majority);
        script.ask(2_200, Reach::Leader);
        script.sent(2_300, Reach::Majority);
        script.1.clear();
        let timeout = script.0.timeout;
        // The server was asked before the answer to the former connection's last request.
        script
            .0
            .connected(Time::from_millis(2_400), Time::from_millis(2_500), timeout);
        script.assert_valid_until(4_000);
        script.ask(2_600, Reach::Leader);
        script.assert_valid_until(4_000);
        script.ask(2_700, Reach::Majority);
        script.assert_valid_until(6_400);
    }

    #[test]
    fn a_smaller_timeout_counts_from_its_connection_on() {
        let mut script = Script::connected(0, 0);
        script.ask(100, Reach::Majority);
        let timeout = SessionTimeout::new(Duration::from_secs(2), 0);
        script
            .0
            .connected(Time::from_millis(500), Time::from_millis(510), timeout);
        script.assert_valid_until(2_500);
        script.ask(600, Reach::Majority);
        script.assert_valid_until(2_500);
        script.0.connected(
            Time::from_millis(700),
            Time::from_millis(710),
            SessionTimeout::new(Duration::from_secs(4), 0),
        );
        script.assert_valid_until(2_500);
    }

    #[test]
    fn drift_shortens_the_validity_and_lengthens_the_distance() {
        let timeout = SessionTimeout::new(Duration::from_secs(4), 10_000_000);
        assert_eq!(timeout.usable, Duration::from_millis(3_960));
        assert_eq!(timeout.half_tick_max, Duration::from_millis(1_010));
        assert_eq!(timeout.granted, Duration::from_secs(4));
        let odd = SessionTimeout::new(Duration::from_nanos(5), 1);
        assert_eq!(
            (odd.usable, odd.half_tick_max),
            (Duration::from_nanos(4), Duration::from_nanos(3))
        );
        let longest = SessionTimeout::new(Duration::from_millis(i32::MAX as u64), u32::MAX);
        assert_eq!(longest.usable, Duration::ZERO);
    }

    #[test]
    fn any_number_of_requests_takes_bounded_memory_and_costs_a_share_of_the_timeout() {
        let mut script = Script::connected(0, 0);
        for now in 1..20_000 {
            script.sent(now, Reach::Majority);
            script.answered(now);
            assert!(script.0.answered.len() <= 40, "{}", script.0.answered.len());
            if now > 1_100 {
                // At best s₁ would be T/4 and two answers ago.
                let lost = (now + 4_000 - 1_000)
                    .saturating_sub(script.0.valid_until().since(Time::ZERO).as_millis() as u64);
                assert!(lost <= 1_000 / 32 + 3, "{lost}");
            }
        }
    }
}
