//! Two processes of one side, on one disk: the first is stopped at a step, the second brings the
//! transaction to its end, and the first goes on. It cannot know that it was replaced.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use redlatch::LockClient;
use redlatch::transaction::{Decision, JoinError, Participant, TransactionError, TransactionId};
use support::locks::LIMIT;
use support::redis::Server;

use super::group::{client, formed};
use super::shelf::{Shelf, Step};

/// Where a process stops: before or behind a step, when it comes there for the `nth` time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stop {
    place: &'static str,
    nth: usize,
}

/// A process with the disk of its side.
struct Process<'a> {
    disk: &'a Mutex<Shelf>,
    stop: Option<Stop>,
    passed: usize,
    stopped: Sender<()>,
    goes_on: Receiver<()>,
}

/// The other ends: hears that the process has stopped, or has ended; lets it go on.
struct Watcher {
    stopped: Receiver<()>,
    goes_on: Sender<()>,
}

impl<'a> Process<'a> {
    fn new(disk: &'a Mutex<Shelf>, stop: Option<Stop>) -> (Self, Watcher) {
        let stopping = channel();
        let going_on = channel();
        let process = Self {
            disk,
            stop,
            passed: 0,
            stopped: stopping.0,
            goes_on: going_on.1,
        };
        (
            process,
            Watcher {
                stopped: stopping.1,
                goes_on: going_on.0,
            },
        )
    }

    fn pass(&mut self, place: &str) {
        let Some(stop) = self.stop.filter(|stop| stop.place == place) else {
            return;
        };
        self.passed += 1;
        if self.passed == stop.nth {
            self.stopped.send(()).unwrap();
            self.goes_on.recv().unwrap();
        }
    }

    /// A step in one transaction of the database.
    fn step<T>(&mut self, names: [&str; 2], step: impl FnOnce(&mut Shelf) -> T) -> T {
        self.pass(names[0]);
        let result = step(&mut self.disk.lock().unwrap());
        self.pass(names[1]);
        result
    }
}

impl Participant for Process<'_> {
    type Error = &'static str;

    fn prepare(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.step(["before prepare", "behind prepare"], |shelf| {
            let is_noted = shelf.prepared.contains(id) || shelf.committed.contains(id);
            if is_noted { Ok(()) } else { shelf.prepare(id) }
        })
    }

    fn commit(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.step(["before commit", "behind commit"], |shelf| {
            if shelf.prepared.contains(id) {
                shelf.commit(id)
            } else {
                Ok(())
            }
        })
    }

    fn roll_back(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.step(["before roll_back", "behind roll_back"], |shelf| {
            shelf.roll_back(id)
        })
    }

    fn prepared(&mut self) -> Result<Vec<TransactionId>, Self::Error> {
        self.step(["before prepared", "behind prepared"], Shelf::prepared)
    }

    fn committed(&mut self) -> Result<Vec<TransactionId>, Self::Error> {
        self.step(["before committed", "behind committed"], Shelf::committed)
    }

    fn forget(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.step(["before forget", "behind forget"], |shelf| shelf.forget(id))
    }
}

type Ended = Result<Decision, JoinError<&'static str>>;

/// What a process does that is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// It takes part.
    Join,
    /// It takes part again, as it has voted.
    JoinAgain,
    Recover,
}

/// Calls, stops, lets `replacement` do its work, goes on. Returns what the call has said, and
/// whether it was stopped.
fn stopped_at(
    client: &LockClient,
    call: Call,
    id: &TransactionId,
    disk: &Mutex<Shelf>,
    stop: Stop,
    replacement: impl FnOnce(),
) -> (Ended, bool) {
    let (mut process, watcher) = Process::new(disk, Some(stop));
    thread::scope(|scope| {
        let first = scope.spawn(move || match call {
            Call::Join | Call::JoinAgain => {
                client
                    .transactions()
                    .join(id, "berlin", &mut process, LIMIT)
            }
            Call::Recover => {
                let recovered = client
                    .transactions()
                    .recover("berlin", &mut process)
                    .unwrap();
                Ok(recovered
                    .iter()
                    .find(|it| it.0 == *id)
                    .map_or(Decision::Over, |it| it.1))
            }
        });
        // It ends when the call does.
        let is_stopped = watcher.stopped.recv().is_ok();
        replacement();
        let _ = watcher.goes_on.send(());
        (first.join().unwrap(), is_stopped)
    })
}

/// The change was made here, once, and the call has not denied that.
#[track_caller]
fn assert_made(disk: Mutex<Shelf>, told: &Ended, words: &str) {
    assert!(
        matches!(told, Ok(Decision::Committed | Decision::Over)),
        "{words}: {told:?}"
    );
    let shelf = disk.into_inner().unwrap();
    assert_eq!((shelf.applied, shelf.is_empty()), (1, true), "{words}");
}

#[test]
fn a_process_that_was_replaced_before_its_vote_does_not_say_that_it_is_aborted() {
    let (servers, first) = formed(3);
    let clients = [client(&servers), client(&servers)];
    for place in [
        "before prepared",
        "behind prepared",
        "behind committed",
        "before prepare",
        "behind prepare",
    ] {
        let words = format!("join, {place}");
        let id = first.transactions().begin(&["berlin", "paris"]).unwrap();
        let disk = Mutex::new(Shelf::default());
        // Who has asked the first one asks the second one when no answer comes.
        let replacement = || {
            let (mut process, _watcher) = Process::new(&disk, None);
            let mut paris = Shelf::default();
            let decisions = thread::scope(|scope| {
                let other =
                    scope.spawn(|| first.transactions().join(&id, "paris", &mut paris, LIMIT));
                [
                    clients[1]
                        .transactions()
                        .join(&id, "berlin", &mut process, LIMIT)
                        .unwrap(),
                    other.join().unwrap().unwrap(),
                ]
            });
            assert_eq!(decisions, [Decision::Committed; 2], "{words}");
        };
        let stop = Stop { place, nth: 1 };
        let (told, is_stopped) = stopped_at(&clients[0], Call::Join, &id, &disk, stop, replacement);
        assert!(is_stopped, "{words}");
        assert_made(disk, &told, &words);
    }
}

/// Both have voted, and Paris is at its end. The disk of Berlin, which has not committed.
fn voted(paris: &LockClient, berlin: &LockClient, id: &TransactionId) -> Shelf {
    let mut shelf = Shelf::failing(Step::Commit);
    thread::scope(|scope| {
        scope.spawn(|| {
            let decision = paris
                .transactions()
                .join(id, "paris", &mut Shelf::default(), LIMIT)
                .unwrap();
            assert_eq!(decision, Decision::Committed);
        });
        berlin
            .transactions()
            .join(id, "berlin", &mut shelf, LIMIT)
            .unwrap_err();
    });
    shelf.fails = None;
    shelf
}

#[test]
fn a_process_that_was_replaced_behind_its_vote_does_not_say_that_it_is_aborted() {
    let (servers, first) = formed(3);
    let clients = [client(&servers), client(&servers)];
    let places = [
        "before prepared",
        "behind prepared",
        "before committed",
        "behind committed",
        "before commit",
        "behind commit",
        "before forget",
        "behind forget",
    ];
    let mut stopped = 0;
    for call in [Call::JoinAgain, Call::Recover] {
        for place in places {
            // Another time, each of the lists is read once more.
            for nth in 1..=3 {
                let words = format!("{call:?}, {place} {nth}");
                let id = first.transactions().begin(&["berlin", "paris"]).unwrap();
                let disk = Mutex::new(voted(&first, &clients[0], &id));
                let replacement = || {
                    let (mut process, _watcher) = Process::new(&disk, None);
                    clients[1]
                        .transactions()
                        .recover("berlin", &mut process)
                        .unwrap();
                };
                let stop = Stop { place, nth };
                let (told, is_stopped) =
                    stopped_at(&clients[0], call, &id, &disk, stop, replacement);
                assert_made(disk, &told, &words);
                stopped += usize::from(is_stopped);
                if !is_stopped {
                    break;
                }
            }
        }
    }
    assert!(stopped >= 16, "{stopped}");
}

#[test]
fn a_process_whose_replacement_has_aborted_does_not_say_that_it_is_committed() {
    let (servers, first) = formed(3);
    let clients = [client(&servers), client(&servers)];
    for place in [
        "before prepared",
        "behind committed",
        "before prepare",
        "behind prepare",
    ] {
        let id = first.transactions().begin(&["berlin", "paris"]).unwrap();
        let disk = Mutex::new(Shelf::default());
        let replacement = || {
            let (mut process, _watcher) = Process::new(&disk, None);
            clients[1]
                .transactions()
                .recover("berlin", &mut process)
                .unwrap();
        };
        let stop = Stop { place, nth: 1 };
        let (told, is_stopped) = stopped_at(&clients[0], Call::Join, &id, &disk, stop, replacement);
        assert!(is_stopped, "{place}");
        assert_eq!(told, Ok(Decision::Over), "{place}");
        let shelf = disk.into_inner().unwrap();
        assert_eq!((shelf.applied, shelf.is_empty()), (0, true), "{place}");
        assert!(first.transactions().list().unwrap().is_empty());
    }
}

/// Another process of this side may have voted, and a commit may follow.
#[test]
fn a_side_that_cannot_prepare_and_not_abort_does_not_say_that_it_is_aborted() {
    let (mut servers, first) = formed(3);
    let id = first.transactions().begin(&["berlin", "paris"]).unwrap();
    let disk = Mutex::new(Shelf::failing(Step::Prepare));
    let stop = Stop {
        place: "behind prepare",
        nth: 1,
    };
    let kill = || servers.iter_mut().for_each(Server::kill);
    let (ended, is_stopped) = stopped_at(&first, Call::Join, &id, &disk, stop, kill);
    assert!(
        is_stopped && matches!(ended, Err(JoinError::Undecided(_))),
        "{ended:?}"
    );
}

/// A record that another group does not have says nothing of the transaction.
#[test]
fn a_side_whose_group_is_formed_anew_without_its_data_stays_prepared() {
    let (servers, first) = formed(3);
    let id = first.transactions().begin(&["berlin", "paris"]).unwrap();
    let mut berlin = voted(&first, &client(&servers), &id);
    // This client has known the group before.
    let other = client(&servers);
    assert_eq!(other.register("a").unwrap().read().unwrap(), None);
    for server in servers.iter() {
        server.command(&["FLUSHALL"]);
    }
    client(&servers).registers().form(true).unwrap();
    let ended = other.transactions().join(&id, "berlin", &mut berlin, LIMIT);
    assert_eq!(
        ended,
        Err(JoinError::Undecided(TransactionError::OtherGroup { id }))
    );
    assert_eq!((berlin.rolled_back, berlin.prepared.len()), (0, 1));
}

/// A process that starts where no node answers cannot know the group, and knows its disk.
#[test]
fn without_nodes_what_is_on_the_disk_is_not_told_as_not_begun() {
    let (mut servers, first) = formed(3);
    let id = first.transactions().begin(&["berlin", "paris"]).unwrap();
    let other = client(&servers);
    servers.iter_mut().for_each(Server::kill);
    let mut shelf = Shelf::default();
    let join = |shelf: &mut Shelf| other.transactions().join(&id, "berlin", shelf, LIMIT);
    let ended = join(&mut shelf);
    assert!(matches!(ended, Err(JoinError::NotBegun(_))), "{ended:?}");
    shelf.prepared.push(id);
    let ended = join(&mut shelf);
    assert!(matches!(ended, Err(JoinError::Undecided(_))), "{ended:?}");
    shelf.prepared.clear();
    shelf.committed.push(id);
    assert_eq!(join(&mut shelf), Ok(Decision::Committed));
    assert_eq!((shelf.rolled_back, shelf.committed.len()), (0, 1));
}
