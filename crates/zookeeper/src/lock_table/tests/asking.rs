//! Questions, whose connections may be lost.

use super::*;
use crate::session::Problem;

impl Talk {
    fn ask(&mut self) {
        let list = EnsembleRequest::GetChildren {
            path: "/locks".into(),
            watch: false,
        };
        let until = self.later(60_000);
        self.table.ask(self.time(), vec![list], until, 7);
    }

    /// The connection, made or not, is lost.
    fn lose(&mut self) {
        let now = self.time();
        self.table.session.closed(now, Problem::Disconnected);
        self.table.settle(now);
        self.millis += 1_000;
    }
}

#[test]
fn a_question_is_written_on_three_connections_at_most() {
    let mut talk = Talk::new();
    talk.ask();
    for _ in 0..3 {
        assert_eq!(talk.told(), [""; 0]);
        talk.connect();
        assert_eq!(talk.written(), [12]);
        talk.lose();
    }
    assert_eq!(talk.told(), ["7 1 answers"]);
    let now = talk.time();
    assert!(
        !talk.table.session.wants_connection(now),
        "nothing is asked any more"
    );
}

/// As while a leader is elected: servers accept connections, and no session.
#[test]
fn a_question_waits_for_a_server_that_accepts_the_session_until_its_time_is_over() {
    let mut talk = Talk::new();
    talk.ask();
    for _ in 0..10 {
        let now = talk.time();
        talk.table.session.connecting(now);
        talk.table.session.connected(now);
        talk.lose();
        assert_eq!(talk.told(), [""; 0]);
    }
    talk.connect();
    assert_eq!(talk.written(), [12]);
}

#[test]
fn what_does_not_wait_ends_when_no_server_could_be_connected_to() {
    for servers in 1..4 {
        let mut talk = Talk::of(servers);
        talk.ask();
        talk.contend(1, false);
        talk.contend(2, true);
        for tried in 1..=servers {
            assert_eq!(talk.told(), [""; 0], "{tried} of {servers}");
            let now = talk.time();
            assert!(talk.table.session.wants_connection(now));
            talk.table.session.connecting(now);
            talk.lose();
        }
        assert_eq!(talk.told(), ["1 waits None", "7 0 answers"]);
    }
}
