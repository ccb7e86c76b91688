//! A whole transaction in one process, which has all of its sides.

use redlatch::LockClient;
use redlatch::transaction::{
    Decision, JoinError, NamesError, Participant, TransactionError, TransactionId,
};
use std::time::Duration;
use support::cli::Value;
use support::locks::{calls, with_long_timeout};
use support::redis::Server;

use super::calls::expect_clean;
use super::group::{client, formed};
use super::shelf::{Shelf, Step};

type Ended = Result<Decision, JoinError<&'static str>>;

fn run(client: &LockClient, berlin: &mut Shelf, paris: &mut Shelf) -> Ended {
    client
        .transactions()
        .run(&mut [("berlin", berlin), ("paris", paris)])
}

#[test]
fn all_sides_of_one_process_commit_and_leave_nothing() {
    let (servers, client) = formed(3);
    let mut berlin = Shelf::default();
    let mut paris = Shelf::default();
    for count in 1..=10 {
        let ended = run(&client, &mut berlin, &mut paris);
        assert_eq!(ended.unwrap(), Decision::Committed);
        for shelf in [&berlin, &paris] {
            assert_eq!((shelf.applied, shelf.is_empty()), (count, true));
        }
    }
    expect_clean(&client, &servers);
}

#[test]
fn if_one_side_cannot_prepare_all_roll_back_and_those_behind_it_are_not_asked() {
    let (servers, client) = formed(3);
    let mut berlin = Shelf::default();
    let mut paris = Shelf::failing(Step::Prepare);
    let ended = run(&client, &mut berlin, &mut paris);
    assert_eq!(ended.unwrap_err(), JoinError::Refused("prepare"));
    assert_eq!((berlin.prepared_times, berlin.rolled_back), (1, 1));
    let ended = run(&client, &mut paris, &mut berlin);
    assert_eq!(ended.unwrap_err(), JoinError::Refused("prepare"));
    assert_eq!(berlin.prepared_times, 1, "it was not asked");
    assert!(berlin.is_empty() && paris.is_empty());
    assert_eq!((berlin.applied, paris.applied), (0, 0));
    expect_clean(&client, &servers);
}

#[test]
fn a_side_that_cannot_commit_is_reported_and_the_others_come_to_their_end() {
    let (servers, client) = formed(3);
    let mut berlin = Shelf::failing(Step::Commit);
    let mut paris = Shelf::default();
    let ended = run(&client, &mut berlin, &mut paris);
    let unfinished = JoinError::Unfinished {
        is_committed: true,
        error: "commit",
    };
    assert_eq!(ended.unwrap_err(), unfinished);
    assert_eq!((paris.applied, paris.is_empty()), (1, true));
    let left = &client.transactions().list().unwrap()[0];
    assert!(left.is_committed);
    assert_eq!(left.awaited, ["berlin"], "the record waits for it");
    berlin.fails = None;
    let recovered = client.transactions().recover("berlin", &mut berlin);
    assert_eq!(recovered.unwrap(), [(left.id, Decision::Committed)]);
    assert_eq!((berlin.applied, berlin.is_empty()), (1, true));
    expect_clean(&client, &servers);
}

/// Calls something when it prepares, behind that.
struct Interrupted<'a> {
    shelf: &'a mut Shelf,
    then: &'a mut dyn FnMut(&TransactionId, &mut Shelf),
}

impl Participant for Interrupted<'_> {
    type Error = &'static str;

    fn prepare(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.shelf.prepare(id)?;
        (self.then)(id, self.shelf);
        Ok(())
    }

    fn commit(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.shelf.commit(id)
    }

    fn roll_back(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.shelf.roll_back(id)
    }

    fn prepared(&mut self) -> Result<Vec<TransactionId>, Self::Error> {
        self.shelf.prepared()
    }

    fn committed(&mut self) -> Result<Vec<TransactionId>, Self::Error> {
        self.shelf.committed()
    }

    fn forget(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.shelf.forget(id)
    }
}

fn run_interrupted(
    client: &LockClient,
    berlin: &mut Shelf,
    paris: &mut Shelf,
    mut then: impl FnMut(&TransactionId, &mut Shelf),
) -> Ended {
    let mut interrupted = Interrupted {
        shelf: paris,
        then: &mut then,
    };
    client
        .transactions()
        .run(&mut [("berlin", berlin), ("paris", &mut interrupted)])
}

/// It is stopped for so long, before its votes, that another process recovers.
#[test]
fn a_process_that_was_replaced_before_the_votes_commits_nothing() {
    let (servers, first) = formed(3);
    let second = client(&servers);
    let mut berlin = Shelf::default();
    let mut paris = Shelf::default();
    let ended = run_interrupted(&first, &mut berlin, &mut paris, |id, shelf| {
        let recovered = second.transactions().recover("paris", shelf);
        assert_eq!(recovered.unwrap(), [(*id, Decision::Aborted)]);
    });
    assert_ne!(ended.unwrap(), Decision::Committed);
    assert_eq!((berlin.applied, paris.applied), (0, 0));
    assert!(berlin.is_empty() && paris.is_empty());
    expect_clean(&first, &servers);
}

/// Another process prepares a change of the record, which nobody makes: no byte is raised any more.
#[test]
fn votes_that_are_not_raised_are_a_change_of_the_record() {
    let (servers, first) = formed(3);
    let mut berlin = Shelf::default();
    let mut paris = Shelf::default();
    let ended = run_interrupted(&first, &mut berlin, &mut paris, |id, _| {
        for server in &*servers {
            let keys = server.command(&["KEYS", &format!("*:redlatch:promise:*{id}")]);
            let Value::Array(keys) = keys else {
                panic!("{keys:?}")
            };
            let key = keys[0].text();
            let number = server.command(&["GETRANGE", &key, "0", "15"]);
            let later = number.text().parse::<u64>().unwrap() + 1;
            let promise = format!("{later:016}{}", "x".repeat(20));
            let set = server.command(&["SET", &key, &promise]);
            assert_eq!(set.text(), "OK");
        }
    });
    assert_eq!(ended.unwrap(), Decision::Committed);
    assert_eq!((berlin.applied, paris.applied), (1, 1));
    assert!(berlin.is_empty() && paris.is_empty());
    expect_clean(&first, &servers);
}

#[test]
fn without_a_majority_behind_prepare_all_sides_stay_prepared() {
    let (servers, first) = formed(3);
    let quick = with_long_timeout(servers.iter().map(Server::url))
        .node_timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    assert_eq!(quick.register("a").unwrap().read().unwrap(), None);
    let mut berlin = Shelf::default();
    let mut paris = Shelf::default();
    let ended = run_interrupted(&quick, &mut berlin, &mut paris, |_, _| {
        servers[1..].iter().for_each(Server::pause);
    });
    let error = ended.unwrap_err();
    assert!(matches!(error, JoinError::Undecided(_)), "{error:?}");
    assert_eq!((berlin.prepared.len(), paris.prepared.len()), (1, 1));
    servers[1..].iter().for_each(Server::resume);
    let berlin_ended = first.transactions().recover("berlin", &mut berlin).unwrap();
    let paris_ended = first.transactions().recover("paris", &mut paris).unwrap();
    assert_eq!((berlin_ended.len(), paris_ended.len()), (1, 1));
    assert_eq!(berlin.applied, paris.applied, "both, or neither");
    assert!(berlin.is_empty() && paris.is_empty());
    expect_clean(&first, &servers);
}

/// How often a node is asked after the others have been stopped, behind the last of so many sides.
fn asked_without_a_majority(count: usize) -> u64 {
    let (servers, _first) = formed(3);
    let quick = with_long_timeout(servers.iter().map(Server::url))
        .node_timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    assert_eq!(quick.register("a").unwrap().read().unwrap(), None);
    let scripts = || calls(&servers[0], "eval") + calls(&servers[0], "evalsha");
    let mut before = 0;
    let mut stop = |_: &TransactionId, _: &mut Shelf| {
        servers[1..].iter().for_each(Server::pause);
        before = scripts();
    };
    let names: Vec<String> = (1..count).map(|number| number.to_string()).collect();
    let mut shelves: Vec<Shelf> = names.iter().map(|_| Shelf::default()).collect();
    let mut last = Shelf::default();
    let mut interrupted = Interrupted {
        shelf: &mut last,
        then: &mut stop,
    };
    let mut sides: Vec<(&str, &mut dyn Participant<Error = &'static str>)> = Vec::new();
    for (name, shelf) in names.iter().zip(&mut shelves) {
        sides.push((name, shelf));
    }
    sides.push(("last", &mut interrupted));
    let error = quick.transactions().run(&mut sides).unwrap_err();
    assert!(matches!(error, JoinError::Undecided(_)), "{error:?}");
    let asked = scripts() - before;
    servers[1..].iter().for_each(Server::resume);
    assert!(shelves.iter().all(|shelf| shelf.prepared.len() == 1));
    asked
}

/// Each side alone would ask several times, and wait for the nodes each time.
#[test]
fn without_a_majority_many_sides_do_not_ask_one_after_another() {
    let of_two = asked_without_a_majority(2);
    let of_eight = asked_without_a_majority(8);
    assert!(of_two > 1, "it asks again");
    assert!(of_eight < of_two + 6, "{of_eight}, and {of_two} of two");
}

#[test]
fn what_cannot_be_run_is_refused_before_anybody_prepares() {
    let (_servers, client) = formed(3);
    let none = client.transactions().run::<&str>(&mut []);
    let names = |error| JoinError::NotBegun(TransactionError::Names(error));
    assert_eq!(none.unwrap_err(), names(NamesError::None));
    let mut berlin = Shelf::default();
    let mut paris = Shelf::default();
    let twice = client
        .transactions()
        .run(&mut [("a", &mut berlin), ("a", &mut paris)]);
    let name = "a".to_owned();
    assert_eq!(twice.unwrap_err(), names(NamesError::Twice { name }));
    assert_eq!((berlin.prepared_times, paris.prepared_times), (0, 0));
}
