//! The wrong ways of the protocol. Those of a client are in its steps. Those of a node are changes
//! of its scripts.

use models::Change;
use redlatch_protocol::node::script::{
    CLAIM, GIVE, KEEP_SHARED, QUEUE, RELEASE, RELEASE_READER, RELEASE_SHARED, SHARE, Script,
};

/// A rule of the protocol that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A try for a share does not ask who waits.
    TryIgnoresQueue,
    /// A node gives shares although it keeps a token.
    SharesBesideToken,
    /// A permit is held as soon as a majority gave one, whichever slot.
    VotesOfAllSlots,
    /// The release of the last share reserves the key for nobody.
    LastShareReservesNothing,
    /// The release of a permit beside others calls nobody.
    PermitReleasesSilently,
    /// Who was called before the last share ended counts as called when the lock is shared again.
    CallsOutliveShares,
    /// A turn that is granted calls nobody.
    TurnCallsNobody,
    /// Shares that have ended are not removed.
    SharesStay,
    /// Waiters for shares are called although a waiter for the exclusive lock is before them.
    SharesPassWriters,
    /// A node that gave a waiter its turn forgets the number.
    NoFloor,
    /// A share that is restored takes a slot that another one has.
    RestoreTakesSlotInUse,
    /// A holder whose turn was refused by a node stays in that node's queue.
    RestoreLeavesWaiter,
    /// A reservation stays where it was first put, although an earlier waiter arrives.
    ReservationsStay,
    /// A client holds the lock as soon as a majority has reserved it, without a claim.
    ReservationIsGrant,
    /// The validity is counted from the answers rather than from before the first command, so a
    /// node's token may expire while its client still counts it.
    ValidityFromAnswers,
    /// A release deletes the key and reserves it for nobody.
    ReleaseForgetsQueue,
    /// The number of a waiter is the first that was answered rather than the largest.
    NumberOfOneNode,
    /// A look does not enter the waiter again where its place was lost.
    LookKeepsOut,
    /// A claim of a free key does not ask who is first.
    ClaimIgnoresHead,
    /// The look after a failed claim does not withdraw the claim.
    ClaimStays,
    /// The join does not withdraw the failed try.
    TryStays,
    /// A granted claim removes the waiter from the queue before the lock is released, so a client
    /// that joins before the claim is withdrawn is given no larger number.
    ClaimLeavesQueue,
    /// A renewal prolongs the reservation of its waiter.
    RenewalProlongs,
    /// Who does not claim in time stays in the queue, and is reserved the lock again.
    LateStays,
    /// Nobody is told when the time of a reservation will be over.
    NextIsNotTold,
    /// The entry of a waiter whose connection is gone stays.
    UnheardStays,
    /// A waiter that comes back to a node that has passed it over gets a new number there.
    LateGetsNewNumber,
    /// A reservation is passed on although its time is not over.
    PassesInTime,
    /// Whoever passes a reservation on stays out as if it had been late itself.
    CallerIsLate,
    /// A waiter that is out of the queue whenever it looks has missed one reservation.
    MissesInRowCountOnce,
    /// Reservations of a node whose grants do not count lead to a claim.
    QuarantineReserves,
    /// A set is claimed if its first key is free for it.
    ClaimsFirstOfSet,
    /// A set renews its reservations also where it has all.
    WholeSetIsRenewed,
    /// A set takes its turn when the lock that it has waited for alone is reserved for it.
    TurnForOneOfSet,
    /// A set leaves the queue of its first key only.
    SetLeavesFirst,
    /// A set counts as called where a part of it is reserved.
    PartIsSet,
    /// A set has a number of its own in each queue.
    SetHasManyNumbers,
}

/// The scripts that reserve a lock for the first waiter, and those that call waiters for shares.
const NOTIFYING: &[Script] = &[RELEASE, GIVE, QUEUE, SHARE, RELEASE_SHARED, RELEASE_READER];
const CALLING: &[Script] = &[QUEUE, SHARE, RELEASE_SHARED];

impl Mistake {
    /// The changes of scripts that make this mistake. None if it is one of a client.
    pub(crate) fn changes(self) -> Vec<Change> {
        let change = |scripts, from, to| vec![Change { scripts, from, to }];
        match self {
            Self::ReservationsStay => change(
                &[QUEUE],
                "held == shared or first and call('ZRANGE', queue, 0, 0)[1] ~= first then",
                "held == shared then",
            ),
            Self::ReleaseForgetsQueue => [
                change(&[RELEASE], "\nreserve()\n", "\ncall('DEL', key)\n"),
                change(&[GIVE], "\nreserve()\n", "\ncall('DEL', key)\n"),
            ]
            .concat(),
            Self::LookKeepsOut => change(
                &[QUEUE],
                "if not is_late then",
                "if not is_late and not was_out then",
            ),
            Self::ClaimIgnoresHead => change(
                &[CLAIM],
                "not value and head and head ~= waiter then",
                "false then",
            ),
            Self::ClaimLeavesQueue => change(
                &[CLAIM],
                "redis.call('SET', lease, '', 'PX', left)",
                "redis.call('DEL', lease)\nredis.call('ZREM', queue, waiter)",
            ),
            Self::RenewalProlongs => change(
                &[QUEUE],
                "\nkeep_longer(held, left, grace)\n",
                "\nkeep_longer(held, left, grace)\n\
                 if is_mine then redis.call('PEXPIRE', key, 3000) end\n",
            ),
            Self::LateStays => change(&[QUEUE], "if late and (late", "if nil and (late"),
            Self::NextIsNotTold => change(
                NOTIFYING,
                "tell_at(1, 'w' .. claim)",
                "call('ZCARD', queue) > 1",
            ),
            Self::UnheardStays => change(NOTIFYING, "waiter .. word) ~= 0)", "waiter .. word))"),
            Self::LateGetsNewNumber => change(
                &[QUEUE],
                "if number_asked ~= '0' then",
                "if number_asked ~= '0' and number then",
            ),
            Self::PassesInTime => change(
                &[QUEUE],
                "if grace and left <= 0 then",
                "if grace and (left <= 0 or first ~= waiter) then",
            ),
            Self::CallerIsLate => change(&[QUEUE], "return late == caller", "return true"),
            _ => self.changes_about_sets(),
        }
    }

    fn changes_about_sets(self) -> Vec<Change> {
        let change = |scripts, from, to| vec![Change { scripts, from, to }];
        match self {
            Self::WholeSetIsRenewed => change(
                &[QUEUE],
                "if ends then\ncall('PEXPIRE'",
                "if true then\ncall('PEXPIRE'",
            ),
            Self::ClaimsFirstOfSet => change(
                &[CLAIM],
                "if value and (from == ''",
                "if i == 1 and value and (from == ''",
            ),
            Self::SetLeavesFirst => change(
                &[GIVE],
                "if waiter ~= '' then",
                "if waiter ~= '' and name == KEYS[1] then",
            ),
            Self::PartIsSet => change(
                &[QUEUE],
                "(ends and 0 or 1) + (is_out and 2 or 0) + (mine[1] and 4 * late or 0)",
                "(mine[1] and 1 or 0) + (is_out and 2 or 0)",
            ),
            Self::SetHasManyNumbers => change(
                &[QUEUE],
                "if locks > 1 and number_asked == '0' then",
                "if false then",
            ),
            _ => self.changes_about_shares(),
        }
    }

    fn changes_about_shares(self) -> Vec<Change> {
        let change = |scripts, from, to| vec![Change { scripts, from, to }];
        match self {
            Self::TryIgnoresQueue => change(
                &[SHARE],
                "elseif value ~= '' then\nreturn -ARGV[8]\n",
                "elseif false then\nreturn -ARGV[8]\n",
            ),
            Self::SharesBesideToken => change(
                &[SHARE],
                "if held and held ~= shared and (waiter == ''",
                "if held and string.sub(held, 1, 18) == reserved and (waiter == ''",
            ),
            Self::LastShareReservesNothing => [
                change(
                    &[RELEASE_SHARED],
                    "return {[reserve() or ''] = 1}",
                    "call('DEL', key)\nreturn {}",
                ),
                change(
                    &[RELEASE_READER],
                    "call('DEL', key, holders)\nreserve()",
                    "call('DEL', key, holders)",
                ),
            ]
            .concat(),
            Self::PermitReleasesSilently => change(
                &[RELEASE_SHARED],
                "if not held or held == shared then\nsettle",
                "if found and held == shared and are_readers() ~= nil then\nset_expiry(now)\n\
                 elseif not held or held == shared then\nsettle",
            ),
            Self::CallsOutliveShares => change(
                &[SHARE, KEEP_SHARED],
                "call('DEL', holders, permits_in_use, calls)",
                "call('DEL', holders, permits_in_use)",
            ),
            Self::TurnCallsNobody => change(
                &[SHARE],
                "call('ZREM', calls, waiter)\ncalled(8, now)",
                "call('ZREM', calls, waiter)",
            ),
            Self::SharesStay => shares_stay(),
            Self::SharesPassWriters => change(
                CALLING,
                "elseif value ~= '' then\nif readers",
                "elseif permits >= 0 then\nif readers",
            ),
            Self::NoFloor => change(&[QUEUE], "math.max(last, floor())", "math.max(last, 0)"),
            Self::RestoreTakesSlotInUse => change(
                &[KEEP_SHARED],
                "set_expiry(now)\nreturn -ARGV[5]\nend",
                "local other = call('ZRANGEBYSCORE', permits_in_use, slot, slot)[1]\n\
                 drop(slot, other)\nend",
            ),
            _ => Vec::new(),
        }
    }
}

/// Nothing removes a share that has ended but the end of the last one, with which the key ends.
fn shares_stay() -> Vec<Change> {
    let change = |scripts, from, to| Change { scripts, from, to };
    vec![
        change(
            &[SHARE, QUEUE, RELEASE_SHARED],
            "call('ZREMRANGEBYSCORE', holders, '-inf', now)",
            "",
        ),
        change(
            &[KEEP_SHARED],
            "call('ZREMRANGEBYSCORE', holders, '-inf', now)",
            "if is_restored then call('ZREMRANGEBYSCORE', holders, '-inf', now) end",
        ),
        change(
            &[QUEUE],
            "held = call('ZCARD', holders) > 0 and held",
            "held = call('ZCOUNT', holders, now, '+inf') > 0 and held",
        ),
        change(
            &[QUEUE, RELEASE_SHARED],
            "if held == shared and are_readers() ~= nil then",
            "if held == shared and call('ZCOUNT', holders, now, '+inf') > 0 then",
        ),
        change(
            &[QUEUE, RELEASE_SHARED],
            "call('DEL', permits_in_use)\nreturn",
            "call('DEL', holders, permits_in_use)\nreturn",
        ),
    ]
}
