//! Histories in which threads use registers instead of locks.

use crate::checker::Invariant;
use crate::mistake::{OF_REGISTERS, OF_TRANSACTIONS};
use crate::options::BrokenAssumption;
use crate::tally::RegisterCalls;
use crate::{FULL, SEEDS, count, expect_caught, expect_none_broken, first_broken, replayed};
use std::ops::Range;

/// Runs histories in which threads use registers, which must keep all guarantees.
fn expect_registers_agreed(seeds: Range<u64>) {
    let histories = seeds.end - seeds.start;
    let tally = expect_none_broken(seeds, BrokenAssumption::NoneWithRegisters);
    let RegisterCalls {
        reads,
        writes,
        deletions,
        repaired,
        ..
    } = tally.registers;
    if histories >= FULL {
        assert!(
            reads > 5 * histories,
            "histories with few reads prove little: {tally}"
        );
        assert!(
            writes > 10 * histories,
            "nor those with few writes: {tally}"
        );
        assert!(
            deletions > histories,
            "nor those with few deletions: {tally}"
        );
        assert!(
            repaired > histories / 5,
            "nor those where few nodes get a vote again: {tally}"
        );
    }
}

#[test]
fn histories_within_the_assumptions_keep_registers_agreed() {
    if replayed().is_none() {
        expect_registers_agreed(0..count(SEEDS));
    }
}

#[test]
fn servers_restored_from_backups_lose_changes() {
    let focus = BrokenAssumption::RegistersRestored;
    let seen = first_broken(0..300, focus, None, Invariant::Agreement);
    eprintln!("backups break agreement by seed {seen:?}");
    assert!(
        seen.is_some(),
        "backups are harmless, or the simulator blind"
    );
}

#[test]
fn every_mistake_about_registers_is_caught() {
    for mistake in OF_REGISTERS {
        expect_caught(
            mistake,
            BrokenAssumption::NoneWithRegisters,
            Invariant::Agreement,
        );
    }
}

#[test]
fn all_sides_of_a_transaction_commit_or_none_does() {
    if replayed().is_some() {
        return;
    }
    let histories = count(SEEDS);
    let tally = expect_none_broken(0..histories, BrokenAssumption::NoneWithTransactions);
    let RegisterCalls {
        committed, aborted, ..
    } = tally.registers;
    if histories >= FULL {
        assert!(
            committed > histories,
            "histories with few commits prove little: {tally}"
        );
        assert!(aborted > histories, "nor those with few aborts: {tally}");
    }
}

#[test]
fn every_mistake_about_transactions_is_caught() {
    for mistake in OF_TRANSACTIONS {
        expect_caught(
            mistake,
            BrokenAssumption::NoneWithTransactions,
            Invariant::Atomicity,
        );
    }
}
