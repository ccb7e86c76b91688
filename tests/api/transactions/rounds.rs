//! How many rounds the steps of a transaction take, counted by the nodes.

use std::thread;
use std::time::Duration;

use redlatch::transaction::{Decision, JoinError, Participant, TransactionId};
use support::eventually;
use support::locks::{LIMIT, calls};
use support::redis::Server;

use super::group::{client, formed};
use super::shelf::{Shelf, Step};

/// The most rounds, as the guide says.
const BEGIN: u64 = 1;
const LOOK: u64 = 1;
/// With the last vote, the decision is known.
const VOTE: u64 = 1;
/// Of one that comes back, and has not looked.
const AGAIN: u64 = 3;
const AGAIN_FINISH: u64 = 3;
/// When all have finished, the nodes forget it in a round that nobody waits for.
const FINISH: u64 = 2;
/// Of a process that has all sides: the begin, all votes, that all have finished, and to forget it.
const WHOLE: u64 = 4;

const APART: Duration = Duration::from_millis(5);

/// A participant that counts the rounds between its steps.
struct Counting<'a> {
    servers: &'a [Server],
    shelf: Shelf,
    /// How many scripts the nodes had run when it was last asked.
    before: u64,
    /// The rounds before prepare, commit, and forget.
    rounds: Vec<u64>,
}

/// How many scripts each node has run. The last ones of a round come late.
#[track_caller]
fn scripts(servers: &[Server]) -> u64 {
    let all = || {
        servers
            .iter()
            .map(|server| calls(server, "eval") + calls(server, "evalsha"))
    };
    let first = || all().next().unwrap();
    let are_equal = || all().all(|count| count == first());
    assert!(
        eventually(LIMIT, are_equal),
        "{:?}",
        all().collect::<Vec<_>>()
    );
    first()
}

impl<'a> Counting<'a> {
    fn new(servers: &'a [Server], shelf: Shelf) -> Self {
        Self {
            servers,
            shelf,
            before: scripts(servers),
            rounds: Vec::new(),
        }
    }

    fn count(&mut self) {
        let now = scripts(self.servers);
        self.rounds.push(now - self.before);
        self.before = now;
    }
}

impl Participant for Counting<'_> {
    type Error = &'static str;

    fn prepare(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.count();
        self.shelf.prepare(id)
    }

    fn commit(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.count();
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
        self.count();
        self.shelf.forget(id)
    }
}

#[test]
fn a_transaction_takes_no_more_rounds_than_the_guide_says() {
    let (servers, first) = formed(3);
    // So it knows the group.
    assert_eq!(first.register("a").unwrap().read().unwrap(), None);
    let before = scripts(&servers);
    // Alone: who waits for others asks meanwhile.
    let id = first.transactions().begin(&["paris"]).unwrap();
    let begin = scripts(&servers) - before;
    let join = |shelf: Shelf| {
        let client = client(&servers);
        assert_eq!(client.register("a").unwrap().read().unwrap(), None);
        let mut paris = Counting::new(&servers, shelf);
        let ended = client.transactions().join(&id, "paris", &mut paris, LIMIT);
        (paris.shelf, paris.rounds, ended)
    };
    let (mut shelf, rounds, ended) = join(Shelf::failing(Step::Commit));
    assert!(
        matches!(
            ended,
            Err(JoinError::Unfinished {
                is_committed: true,
                ..
            })
        ),
        "{ended:?}"
    );
    let [look, vote] = rounds[..] else {
        panic!("{rounds:?}")
    };
    // Another process comes back to it.
    shelf.fails = None;
    let (shelf, rounds, ended) = join(shelf);
    assert_eq!((ended.unwrap(), shelf.applied), (Decision::Committed, 1));
    let [again, finish] = rounds[..] else {
        panic!("{rounds:?}")
    };
    let id = first.transactions().begin(&["paris"]).unwrap();
    let mut paris = Counting::new(&servers, Shelf::default());
    assert_eq!(
        first
            .transactions()
            .join(&id, "paris", &mut paris, LIMIT)
            .unwrap(),
        Decision::Committed
    );
    println!("begin {begin}; look {look}, vote {vote}; vote {again}, finish {finish}");
    println!("by who has begun it: {:?}", paris.rounds);
    assert!((1..=BEGIN).contains(&begin), "begin: {begin}");
    assert_eq!(look, LOOK);
    assert_eq!(vote, VOTE);
    assert!((1..=AGAIN).contains(&again), "vote: {again}");
    assert!((1..=AGAIN_FINISH).contains(&finish), "finish: {finish}");
    let [look, vote, finish] = paris.rounds[..] else {
        panic!("{:?}", paris.rounds)
    };
    assert_eq!((look, vote), (0, VOTE), "it knows what it has begun");
    assert!((1..=FINISH).contains(&finish), "finish: {finish}");
}

#[test]
fn a_transaction_of_one_process_takes_four_rounds_however_many_sides_there_are() {
    let (servers, client) = formed(3);
    // So it knows the group.
    assert_eq!(client.register("a").unwrap().read().unwrap(), None);
    let names = ["a", "b", "c", "d", "e"];
    let before = scripts(&servers);
    let mut count = 0;
    for among in [1, 2, 5].repeat(5) {
        let mut shelves: Vec<Shelf> = names[..among].iter().map(|_| Shelf::default()).collect();
        let mut sides: Vec<(&str, &mut dyn Participant<Error = &'static str>)> = Vec::new();
        for (name, shelf) in names.iter().zip(&mut shelves) {
            sides.push((name, shelf));
        }
        // Ballots count milliseconds. One that begins in that of the record before may be refused,
        // as that is removed: which takes two rounds more.
        thread::sleep(APART);
        let ended = client.transactions().run(&mut sides);
        assert_eq!(ended.unwrap(), Decision::Committed);
        count += 1;
    }
    let rounds = scripts(&servers) - before;
    // The last one is forgotten when this client has something else to do.
    assert!(
        (WHOLE * count - 1..=WHOLE * count).contains(&rounds),
        "{rounds}"
    );
}
