//! The second round of a fenced lock, in which the nodes confirm the token: what may happen at each
//! node between the two rounds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redlatch::Error;
use redlatch::event::AttemptOutcome;
use support::cli::{Client, encode};
use support::eventually;
use support::fencing::{AHEAD, counter, counter_key, fenced, set_counter, token};
use support::journal::{names, recorded_client};
use support::locks::{LIMIT, LONG, gone, holders, take, with_long_timeout, without_restart_guard};
use support::peer::Peer;
use support::servers::Servers;

/// What happens at a node just before it gets the command to confirm a token.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Between {
    Nothing,
    /// It becomes silent on this connection.
    Silence,
    /// The lock's key disappears.
    Loss,
    /// Another client raises its counter.
    Raise,
}

/// Three servers, each behind a peer that forwards commands.
struct Rig {
    servers: Servers,
    peers: Vec<Peer>,
    between: Vec<Arc<Mutex<Between>>>,
    confirmations: Arc<Mutex<u64>>,
}

impl Rig {
    /// The last server's counter is ahead, so each token that it takes part in must be confirmed.
    fn start() -> Self {
        let servers = Servers::start(3);
        set_counter(&servers[2], "name", &AHEAD);
        let between: Vec<_> = (0..3)
            .map(|_| Arc::new(Mutex::new(Between::Nothing)))
            .collect();
        let confirmations = Arc::new(Mutex::new(0));
        let peer = |(server, between): (&support::redis::Server, &Arc<Mutex<Between>>)| {
            let port = server.port();
            let between = Arc::clone(between);
            let confirmations = Arc::clone(&confirmations);
            Peer::start(move |conversation| {
                let mut server = Client::connect(port).expect("a running server accepts");
                while let Some(words) = conversation.read_command() {
                    if words[0] == b"SUBSCRIBE" {
                        // It hands on one reply for each command, and no messages.
                        conversation.send(b"-NOPERM no channels here\r\n");
                        continue;
                    }
                    if is_confirmation(&words) {
                        *confirmations.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                        let event = *between.lock().unwrap_or_else(PoisonError::into_inner);
                        match event {
                            Between::Nothing => {}
                            Between::Silence => return conversation.stay_silent(),
                            Between::Loss => drop(server.command(&["DEL", "name"])),
                            Between::Raise => {
                                let more = (AHEAD + 1_000).to_string();
                                server.command(&["SET", &counter_key("name"), &more]);
                            }
                        }
                    }
                    let Ok(reply) = server.forward(&encode(&words)) else {
                        return;
                    };
                    if !conversation.send(&reply) {
                        return;
                    }
                }
            })
        };
        let peers = servers.iter().zip(&between).map(peer).collect();
        Self {
            servers,
            peers,
            between,
            confirmations,
        }
    }

    fn urls(&self) -> Vec<String> {
        self.peers.iter().map(Peer::url).collect()
    }

    fn set(&self, between: [Between; 3]) {
        self.between
            .iter()
            .zip(between)
            .for_each(|(at, between)| *at.lock().unwrap_or_else(PoisonError::into_inner) = between);
    }

    fn confirmations(&self) -> u64 {
        *self
            .confirmations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is it the script whose last arguments are a lock's value, the token and the counter's time to
/// live? The script that acquires a lock has two more.
fn is_confirmation(words: &[Vec<u8>]) -> bool {
    words[0].starts_with(b"EVAL") && words.len() == 10 && words[4].ends_with(b":redlatch:fence")
}

#[test]
fn without_a_majority_that_confirms_the_token_there_is_no_lock_and_no_key() {
    use Between::{Loss, Nothing, Raise};
    for between in [
        [Loss, Loss, Nothing],
        [Raise, Nothing, Raise],
        [Loss, Raise, Loss],
    ] {
        let rig = Rig::start();
        let (client, journal) = recorded_client(with_long_timeout(rig.urls()));
        rig.set(between);
        let request = client.request("name").ttl(LONG).fenced();
        assert!(request.try_lock().unwrap().is_none(), "{between:?}");
        assert_eq!(rig.confirmations(), 3, "every node got the command");
        let events = journal.take_lock_events();
        assert_eq!(names(&events), ["attempt", "contended"], "{between:?}");
        assert_eq!(events[0].outcome, Some(AttemptOutcome::Contended));
        assert_eq!(
            (events[0].attempts, events[1].attempts),
            (1, 1),
            "one attempt of two rounds"
        );
        assert!(gone(&rig.servers, "name"));
        // The wait queue is free, and the next token is above all counters.
        rig.set([Nothing; 3]);
        let most = rig
            .servers
            .iter()
            .filter_map(|server| counter(server, "name"))
            .max();
        assert!(token(&fenced(&client, "name")) > most.unwrap());
    }
}

#[test]
fn a_minority_that_does_not_confirm_the_token_is_no_problem() {
    use Between::{Loss, Nothing, Raise, Silence};
    for between in [
        [Loss, Nothing, Nothing],
        [Nothing, Raise, Nothing],
        [Nothing, Nothing, Silence],
    ] {
        let rig = Rig::start();
        // It would wait for the silent node for the whole node timeout.
        let client = without_restart_guard(rig.urls())
            .node_timeout(Duration::from_secs(3))
            .wait_for_all(true);
        let client = client.build().unwrap();
        rig.set(between);
        let guard = fenced(&client, "name");
        assert_eq!(token(&guard), AHEAD + 1, "{between:?}");
        let known = |server| counter(server, "name").is_some_and(|counter| counter > AHEAD);
        assert!(rig.servers.iter().filter(|server| known(server)).count() >= 2);
        assert_eq!(guard.release(), Ok(()), "{between:?}");
        // The removal for a node that became silent waits for the next connection to it.
        let reached = between.iter().take_while(|at| **at != Silence).count();
        assert!(gone(&rig.servers[..reached], "name"), "{between:?}");
    }
}

#[test]
fn without_replies_about_the_token_the_request_fails_and_its_lock_is_removed() {
    use Between::{Nothing, Silence};
    let rig = Rig::start();
    let (client, journal) =
        recorded_client(without_restart_guard(rig.urls()).node_timeout(Duration::from_secs(1)));
    rig.set([Silence, Silence, Nothing]);
    let request = client.request("name").ttl(LONG).fenced();
    let error = request.try_lock().unwrap_err();
    let Error::NoQuorum(reports) = &error else {
        panic!("{error}")
    };
    assert_eq!(reports.reports().len(), 3);
    let events = journal.take_lock_events();
    assert_eq!(names(&events), ["attempt", "failed"]);
    assert_eq!(events[0].outcome, Some(AttemptOutcome::NoQuorum));
    // Removals after a command without a reply are sent again on the next connection.
    rig.set([Nothing; 3]);
    let removed = || {
        // That needs some traffic.
        let _ = client.request("other").ttl(LONG).try_lock();
        holders(&rig.servers, "name") == 0
    };
    assert!(eventually(LIMIT, removed));
}

#[test]
fn the_callers_deadline_ends_the_second_round() {
    use Between::{Nothing, Silence};
    let rig = Rig::start();
    let timeout = Duration::from_secs(10);
    let (client, _) = recorded_client(without_restart_guard(rig.urls()).node_timeout(timeout));
    // The connections are open, and the nodes disagree.
    drop(take(&client, "other", LONG));
    rig.set([Silence, Silence, Nothing]);
    let start = Instant::now();
    let wait = Duration::from_secs(1);
    let request = client.request("name").ttl(LONG).fenced();
    let error = request.try_lock_for(wait).unwrap_err();
    assert!(matches!(error, Error::NoQuorum(_)), "{error}");
    let took = start.elapsed();
    assert!(took >= wait && took < timeout / 2, "{took:?}");
    let is_undone = || holders(&rig.servers[2..], "name") == 0;
    assert!(eventually(LIMIT, is_undone), "on the nodes that reply");
}

#[test]
fn a_waiting_request_retries_until_the_token_is_confirmed() {
    use Between::{Loss, Nothing};
    let rig = Rig::start();
    let (client, journal) = recorded_client(with_long_timeout(rig.urls()));
    rig.set([Loss, Loss, Nothing]);
    let guard = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| fenced(&client, "name"));
        assert!(
            eventually(LIMIT, || rig.confirmations() >= 9),
            "attempt by attempt"
        );
        rig.set([Nothing; 3]);
        waiting.join().unwrap()
    });
    assert!(token(&guard) >= AHEAD + 4, "one for each attempt");
    let agreeing = |server: &&_| counter(server, "name") == Some(token(&guard));
    // Of the last attempt, a node that was a little faster than this thread still loses its key.
    assert!(rig.servers.iter().filter(agreeing).count() >= 2);
    let events = journal.take_lock_events();
    let (last, before) = events.split_last().unwrap();
    let attempts: Vec<_> = before
        .iter()
        .filter(|event| event.name == "attempt")
        .collect();
    assert_eq!(
        (last.name, last.attempts),
        ("acquired", attempts.len() as u64)
    );
    for (index, attempt) in attempts.iter().enumerate() {
        let is_last = index + 1 == attempts.len();
        let expected = if is_last {
            AttemptOutcome::Granted
        } else {
            AttemptOutcome::Contended
        };
        assert_eq!(
            (attempt.attempts, attempt.outcome),
            (index as u64 + 1, Some(expected))
        );
    }
    assert_eq!(guard.release(), Ok(()));
}
