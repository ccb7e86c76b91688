//! Replies to no command: repeated, unsolicited, or in parts. None of them is a vote, and a
//! connection on which one came is not used again. Other messages, such as push messages, have no
//! effect.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use redlatch::{LockClient, LockGuard};
use support::eventually;
use support::journal::Journal;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connected, gone, holders, take, with_long_timeout,
};
use support::relay::{Relay, relayed, urls};
use support::servers::Servers;

/// The delays of a repeated reply.
const DELAYS: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(60),
];

/// Three servers behind relays.
struct Setup {
    servers: Servers,
    relays: Vec<Relay>,
    client: LockClient,
    journal: Journal,
}

impl Setup {
    #[track_caller]
    fn start() -> Self {
        let servers = Servers::start(3);
        let relays = relayed(&servers);
        let journal = Journal::default();
        let client = with_long_timeout(urls(&relays))
            .on_event(journal.recorder())
            .build();
        let client = client.expect("the settings are good");
        Self {
            client: connected(client),
            servers,
            relays,
            journal,
        }
    }

    /// Runs `work` while two of the three servers repeat each reply after `delay`, and waits for
    /// the last repetition.
    #[track_caller]
    fn repeating<T>(&self, delay: Duration, work: impl FnOnce() -> T) -> T {
        self.relays[..2]
            .iter()
            .for_each(|relay| relay.repeat_after(Some(delay)));
        let result = work();
        self.settle();
        self.relays
            .iter()
            .for_each(|relay| relay.repeat_after(None));
        result
    }

    /// Waits until no more replies are pending and all bytes have reached the client's sockets.
    #[track_caller]
    fn settle(&self) {
        self.relays.iter().for_each(Relay::settle);
    }

    /// The client, after it has a connection to each node again.
    #[track_caller]
    fn client(&self) -> &LockClient {
        connected(self.client.clone());
        self.settle();
        &self.client
    }

    fn accepted(&self) -> Vec<usize> {
        self.relays.iter().map(Relay::accepted).collect()
    }

    /// Sends these bytes to the client on two of the three connections: `now` at once, `then` when
    /// the client has written its next command.
    #[track_caller]
    fn say_in_parts(&self, now: &[u8], then: &[u8]) {
        self.relays[..2]
            .iter()
            .for_each(|relay| relay.say_in_parts(now, then));
        self.settle();
    }
}

/// The client does not get the other client's lock.
#[track_caller]
fn assert_theirs(client: &LockClient, case: &str) {
    let taken = client.try_lock("theirs", LONG);
    assert!(
        !matches!(taken, Ok(Some(_))),
        "{case}: a lock that another client holds"
    );
}

#[test]
fn a_repeated_reply_grants_nothing() {
    let setup = Setup::start();
    let mut theirs = take(&all_nodes_client(setup.servers.urls()), "theirs", LONG);
    for (delay, round) in DELAYS
        .into_iter()
        .flat_map(|delay| (0..6).map(move |n| (delay, n)))
    {
        let client = setup.client();
        // On a busy machine, this test takes longer than any ttl.
        theirs.extend(LONG).expect("a majority answers");
        // Released, dropped or kept.
        let mine = setup.repeating(delay, || {
            let mine = client
                .try_lock(format!("{delay:?}-{round}"), LONG)
                .ok()
                .flatten()?;
            match round % 3 {
                0 => return Some(mine),
                1 => drop(mine.release()),
                _ => drop(mine),
            }
            None
        });
        assert_theirs(client, &format!("{delay:?}, round {round}"));
        drop(mine);
    }
}

#[test]
fn repeated_replies_to_many_threads_grant_nothing() {
    const THREADS: usize = 6;
    let setup = Setup::start();
    let mut theirs = take(&all_nodes_client(setup.servers.urls()), "theirs", LONG);
    for (delay, round) in DELAYS
        .into_iter()
        .flat_map(|delay| (0..2).map(move |n| (delay, n)))
    {
        let client = setup.client();
        theirs.extend(LONG).expect("a majority answers");
        let taken = Barrier::new(THREADS + 1);
        let repeated = Barrier::new(THREADS + 1);
        thread::scope(|scope| {
            for number in 0..THREADS {
                let taken = &taken;
                let repeated = &repeated;
                scope.spawn(move || {
                    // Either result is right: it depends on the other replies on these connections.
                    let mine = client.try_lock(format!("{delay:?}-{round}-{number}"), LONG);
                    taken.wait();
                    repeated.wait();
                    assert_theirs(client, &format!("{delay:?}, round {round}"));
                    drop(mine);
                });
            }
            setup.repeating(delay, || taken.wait());
            repeated.wait();
        });
    }
}

/// A lock whose extension was confirmed, and confirmed a second time without a command. By then
/// another client has the lock.
#[track_caller]
fn lost_unseen(setup: &Setup, delay: Duration) -> (LockGuard, LockGuard) {
    let mut guard = take(setup.client(), "mine", LONG);
    // All nodes have replied, so the next reply is the extension's.
    setup.settle();
    setup
        .repeating(delay, || guard.extend(LONG))
        .expect("a majority answers");
    for server in setup.servers.iter() {
        assert_eq!(server.command(&["DEL", "mine"]).integer(), 1);
    }
    (
        guard,
        take(&all_nodes_client(setup.servers.urls()), "mine", LONG),
    )
}

#[test]
fn a_repeated_reply_extends_nothing() {
    let setup = Setup::start();
    for delay in DELAYS {
        let (mut guard, theirs) = lost_unseen(&setup, delay);
        let extended = guard.extend(LONG);
        assert!(
            extended.is_err(),
            "{delay:?}: a lock that another client holds"
        );
        drop(guard);
        assert_eq!(theirs.release(), Ok(()));
    }
}

#[test]
fn a_repeated_reply_releases_nothing() {
    let setup = Setup::start();
    for delay in DELAYS {
        let (guard, theirs) = lost_unseen(&setup, delay);
        let released = guard.release();
        assert_ne!(
            released,
            Ok(()),
            "{delay:?}: a lock that another client holds"
        );
        assert_eq!(theirs.release(), Ok(()));
    }
}

#[test]
fn a_release_with_an_invalid_reply_is_sent_again() {
    let setup = Setup::start();
    let guard = take(setup.client(), "mine", LONG);
    setup.settle();
    // The command is not forwarded, and this test sends the reply.
    setup.relays[..2].iter().for_each(Relay::hold);
    setup.say_in_parts(b"", b"+OK\r\n");
    let released = guard.release();
    assert!(released.is_err(), "{released:?}");
    let is_gone = || !setup.client.nodes().is_empty() && holders(&setup.servers, "mine") == 0;
    assert!(
        eventually(LIMIT, is_gone),
        "it stays pending for the node with the invalid reply"
    );
}

#[test]
fn an_unsolicited_error_is_reported_and_costs_no_vote() {
    let setup = Setup::start();
    let words = [
        "ERR max number of clients reached",
        "DENIED Redis is running in protected mode",
    ];
    for (word, is_closed) in words
        .into_iter()
        .flat_map(|word| [(word, false), (word, true)])
    {
        let client = setup.client();
        let accepted = setup.accepted();
        for relay in &setup.relays {
            relay.say(format!("-{word}\r\n").as_bytes());
            if is_closed {
                relay.hang_up();
            }
        }
        setup.settle();
        setup.journal.entries().clear();
        // In one attempt, on new connections.
        let taken = client
            .try_lock("mine", LONG)
            .unwrap_or_else(|error| panic!("{word}: {error}"));
        assert_eq!(taken.expect("it is free").release(), Ok(()));
        let statuses = connected(client.clone()).nodes();
        assert!(
            setup
                .accepted()
                .iter()
                .zip(&accepted)
                .all(|(now, before)| now > before)
        );
        // The error is reported.
        for status in statuses {
            let entries = setup.journal.entries();
            let mut of_this_node = entries.iter().filter(|entry| *entry.about == *status.url);
            let is_reported = of_this_node.any(|entry| entry.text.contains(word));
            let is_kept = status
                .last_error
                .is_some_and(|error| error.to_string().contains(word));
            assert!(
                is_reported || is_kept,
                "{word}, closed: {is_closed}: {:?}",
                *entries
            );
        }
        assert!(gone(&setup.servers, "mine"));
    }
}

#[test]
fn push_messages_and_attributes_do_not_affect_an_idle_connection() {
    let setup = Setup::start();
    let accepted = setup.accepted();
    let messages: [&[u8]; 4] = [
        b">2\r\n$10\r\ninvalidate\r\n*0\r\n",
        b">2\r\n$10\r\ninvalidate\r\n*1\r\n$4\r\nmine\r\n>1\r\n+OK\r\n",
        b">3\r\n+message\r\n+channel\r\n:1\r\n",
        // The attribute belongs to the next reply.
        b"|1\r\n+ttl\r\n:3600\r\n",
    ];
    for message in messages {
        setup.relays.iter().for_each(|relay| relay.say(message));
        setup.settle();
        let mut guard = take(&setup.client, "mine", LONG);
        guard.extend(LONG).expect("a majority answers");
        assert_eq!(guard.release(), Ok(()));
        setup.settle();
    }
    assert_eq!(setup.accepted(), accepted, "all connections are still used");
}

#[test]
fn a_reply_that_began_before_the_command_is_not_its_reply() {
    let setup = Setup::start();
    let mut theirs = take(&all_nodes_client(setup.servers.urls()), "theirs", LONG);
    for stray in [&b"+OK\r\n"[..], b":1\r\n", b"*2\r\n:2\r\n:7\r\n"] {
        for cut in 1..stray.len() {
            let client = setup.client();
            theirs.extend(LONG).expect("a majority answers");
            let accepted = setup.accepted();
            setup.say_in_parts(&stray[..cut], &stray[cut..]);
            assert_theirs(client, &format!("{}, cut at {cut}", stray.escape_ascii()));
            // Nor the reply to a later command: replies on this connection are one too late.
            let is_new = || {
                drop(client.nodes());
                let pairs = setup.relays[..2].iter().zip(&accepted);
                pairs
                    .filter(|(relay, before)| relay.accepted() > **before)
                    .count()
                    == 2
            };
            assert!(
                eventually(LIMIT, is_new),
                "{}, cut at {cut}",
                stray.escape_ascii()
            );
        }
    }
}
