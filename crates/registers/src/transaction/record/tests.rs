//! Tests of the record.

use super::*;
use crate::transaction::PARTICIPANTS_MAX;

fn begun() -> Option<Record> {
    Some(Record::begin(&["a", "b"], 7).unwrap())
}

fn committed() -> Option<Record> {
    let mut record = begun();
    Record::vote(&mut record, "a").unwrap();
    Record::vote(&mut record, "b").unwrap();
    record
}

#[test]
fn the_last_vote_commits() {
    let mut record = begun();
    assert_eq!(Record::vote(&mut record, "b"), Ok(RecordState::Open));
    assert_eq!(
        Record::vote(&mut record, "b"),
        Ok(RecordState::Open),
        "a vote is repeated"
    );
    let votes: Vec<(String, bool)> = record
        .as_ref()
        .unwrap()
        .participants()
        .map(|(name, it)| (name.to_owned(), it))
        .collect();
    assert_eq!(votes, [("a".to_owned(), false), ("b".to_owned(), true)]);
    assert_eq!(Record::look(record.as_ref(), "a"), Ok(RecordState::Open));
    assert_eq!(Record::vote(&mut record, "a"), Ok(RecordState::Commit));
    assert_eq!(Record::vote(&mut record, "b"), Ok(RecordState::Commit));
    assert_eq!(Record::look(record.as_ref(), "b"), Ok(RecordState::Commit));
}

#[test]
fn no_vote_begins_a_transaction_again() {
    let mut record = None;
    assert_eq!(Record::vote(&mut record, "a"), Ok(RecordState::Absent));
    assert_eq!(
        (record.clone(), Record::look(None, "a")),
        (None, Ok(RecordState::Absent))
    );
}

#[test]
fn what_is_committed_is_not_aborted() {
    let mut record = committed();
    assert_eq!(
        Record::abort(&mut record, Some("a")),
        Ok(RecordState::Commit)
    );
    assert_eq!(Record::abort(&mut record, None), Ok(RecordState::Commit));
    assert_eq!(record, committed());
    Record::finish(&mut record, "a").unwrap();
    assert_eq!(
        Record::abort(&mut record, Some("a")),
        Ok(RecordState::FinishedBefore)
    );
    assert_eq!(
        Record::abort(&mut record, Some("b")),
        Ok(RecordState::Commit)
    );
    assert!(record.is_some());
}

#[test]
fn what_is_open_is_aborted_by_anybody_also_after_votes() {
    for name in [None, Some("a"), Some("b")] {
        let mut record = begun();
        Record::vote(&mut record, "a").unwrap();
        assert_eq!(Record::abort(&mut record, name), Ok(RecordState::Abort));
        assert_eq!(record, None);
        assert_eq!(Record::abort(&mut record, name), Ok(RecordState::Absent));
    }
}

#[test]
fn the_record_is_there_until_all_have_finished() {
    let mut record = committed();
    Record::finish(&mut record, "b").unwrap();
    Record::finish(&mut record, "b").unwrap();
    assert_eq!(
        Record::vote(&mut record, "b"),
        Ok(RecordState::FinishedBefore)
    );
    assert_eq!(Record::vote(&mut record, "a"), Ok(RecordState::Commit));
    Record::finish(&mut record, "a").unwrap();
    assert_eq!(record, None);
    Record::finish(&mut record, "a").unwrap();
    assert_eq!(record, None);
    // Nobody has finished what is open.
    let mut record = begun();
    Record::finish(&mut record, "a").unwrap();
    assert_eq!(record, begun());
}

#[test]
fn who_does_not_take_part_changes_nothing() {
    for before in [begun(), committed()] {
        let mut record = before.clone();
        assert_eq!(Record::look(record.as_ref(), "c"), Err(UnknownName));
        assert_eq!(Record::vote(&mut record, "c"), Err(UnknownName));
        assert_eq!(Record::abort(&mut record, Some("c")), Err(UnknownName));
        assert_eq!(Record::finish(&mut record, "c"), Err(UnknownName));
        assert_eq!(record, before);
    }
}

#[test]
fn as_many_as_may_take_part_commit_with_the_last_of_them() {
    let names: Vec<String> = (0..PARTICIPANTS_MAX)
        .map(|number| number.to_string())
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for count in 1..=names.len() {
        let mut record = Some(Record::begin(&names[..count], 0).unwrap());
        for (index, name) in names[..count].iter().enumerate() {
            let expected = if index + 1 == count {
                RecordState::Commit
            } else {
                RecordState::Open
            };
            assert_eq!(Record::vote(&mut record, name), Ok(expected));
        }
        for name in &names[..count] {
            assert!(record.is_some());
            Record::finish(&mut record, name).unwrap();
        }
        assert_eq!(record, None);
    }
}

#[test]
fn every_record_is_read_back_and_no_part_of_one() {
    let mut records = vec![begun(), committed()];
    for mut record in records.clone() {
        Record::vote(&mut record, "a").unwrap();
        Record::finish(&mut record, "b").unwrap();
        records.push(record);
    }
    for record in records.into_iter().flatten() {
        let bytes = record.to_bytes();
        assert_eq!(Record::read(&bytes), Ok(Some(record)));
        for length in 0..bytes.len() {
            let invalid = Err(InvalidRecord { format: None });
            assert_eq!(
                Record::read(&bytes[..length]),
                invalid,
                "{length} of {bytes:?}"
            );
        }
    }
    let bytes = begun().unwrap().to_bytes();
    let with = |index: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[index] = byte;
        Record::read(&bytes)
    };
    assert_eq!(with(0, 3), Err(InvalidRecord { format: Some(3) }));
    for (index, byte) in [(0, 1), (9, 1), (9, 3), (10, 0xff), (13, b'a'), (14, 4)] {
        assert_eq!(
            with(index, byte),
            Err(InvalidRecord { format: None }),
            "{index}: {byte}"
        );
    }
}

#[test]
fn what_is_raised_in_place_is_the_same_change() {
    let mut record = begun();
    for (level, change) in [
        (VOTED, Record::vote as fn(&mut Option<Record>, &str) -> _),
        (FINISHED, Record::finish),
    ] {
        for name in ["b", "a"] {
            let mut bytes = record.as_ref().unwrap().to_bytes();
            let levels = record.as_ref().unwrap().raised(&[name], level).unwrap();
            let last = bytes.iter_mut().rev().zip(levels.iter().rev());
            last.for_each(|(byte, level)| *byte = *level.max(byte));
            assert_eq!(record.as_ref().unwrap().have(&[name], level), Ok(false));
            change(&mut record, name).unwrap();
            assert_eq!(Record::read(&bytes), Ok(record.clone()));
        }
    }
    assert_eq!(record, None, "all have finished");
    assert_eq!(begun().unwrap().raised(&["c"], VOTED), Err(UnknownName));
    let bytes = [&begun().unwrap().to_bytes()[..14], &[FORGOTTEN, FINISHED]].concat();
    assert_eq!(Record::read(&bytes), Ok(None));
}

#[test]
fn several_sides_come_as_far_in_one_raise_as_one_after_another() {
    let record = begun().unwrap();
    let both = record.raised(&["b", "a"], VOTED).unwrap();
    let one_after_another = ["a", "b"].map(|name| record.raised(&[name], VOTED).unwrap());
    let highest: Vec<u8> = one_after_another[0]
        .iter()
        .zip(one_after_another[1].iter())
        .map(|(one, other)| *one.max(other))
        .collect();
    assert_eq!(*both, *highest);
    let mut voted = Some(record);
    Record::vote(&mut voted, "a").unwrap();
    assert_eq!(voted.as_ref().unwrap().have(&["a", "b"], VOTED), Ok(false));
    Record::vote(&mut voted, "b").unwrap();
    assert_eq!(voted.as_ref().unwrap().have(&["a", "b"], VOTED), Ok(true));
    assert_eq!(voted.unwrap().have(&["a", "c"], VOTED), Err(UnknownName));
}
