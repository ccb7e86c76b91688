//! Votes of a replicated group.

pub(super) mod acknowledged;
mod quarantine;

use crate::engine::{Command, Ping, Request, Verb, Vote};
use crate::node::fixture::{ScriptedSession, greeting, request, ticket};
use crate::node::{
    GroupOptions, GroupStatus, NodeAnswer, NodeError, NodeStatus, Phase, Session, SessionEvent,
    SessionOptions, WrongServer,
};
use std::sync::Arc;
use std::time::Duration;

pub(super) const ID: &str = "0123";

/// The session with a group, whose greeting is not answered.
fn connected(replicas: Option<u32>) -> ScriptedSession {
    let mut talk = ScriptedSession::new(options(replicas));
    talk.connect();
    talk.hear(greeting("a", 1_000));
    talk
}

/// Of a group with a longest ttl of 60 s and a bound of 15 s, or clocks that differ by 1 s.
fn options(replicas: Option<u32>) -> SessionOptions {
    let mut options = SessionOptions::new("redis://node", 7);
    let bound = Duration::from_secs(if replicas.is_some() { 0 } else { 15 });
    let group = GroupOptions {
        tag: Arc::default(),
        bound,
        named_within: Duration::from_secs(15),
        max_ttl: Duration::from_secs(60),
        replicas,
        skew: Duration::from_secs(1),
    };
    options.quarantine = Some(group.quarantine());
    options.group = Some(Arc::new(group));
    options
}

/// The number of the last script in these bytes.
pub(super) fn number(sent: &str) -> &str {
    sent.trim_end()
        .rsplit("\r\n")
        .next()
        .expect("a script ends with its number")
}

/// Has the reign been known for this many seconds, the session asks for it, and is answered.
pub(super) fn greeted(age: u64) -> ScriptedSession {
    let mut talk = connected(None);
    let sent = talk.written();
    assert!(sent.contains("greet"), "{sent}");
    talk.hear(reign(
        number(&sent),
        &format!("{}", 1_000_000 - age * 1_000),
    ));
    talk
}

pub(super) fn marker(since: &str) -> String {
    let text = format!("redlatch1 a {ID} 0 {since} n");
    format!("${}\r\n{text}\r\n", text.len())
}

/// The answer to a greeting, at 1,000 s of the server's clock.
pub(super) fn reign(number: &str, since: &str) -> String {
    format!(
        "*4\r\n:{number}\r\n{}${}\r\n{ID}\r\n:1000000\r\n",
        marker(since),
        ID.len()
    )
}

/// The answer to a check.
pub(super) fn check(number: &str, marker: &str, id: &str) -> String {
    let id = format!("${}\r\n{id}\r\n", id.len());
    format!("*4\r\n:{number}\r\n{marker}$6\r\nmaster\r\n{id}")
}

/// What becomes of a lock that the node grants, when the check behind it is answered so.
fn vote(talk: &mut ScriptedSession, marker: &str, id: &str) -> Result<(), NodeError> {
    talk.send(1, Verb::Acquire);
    let sent = talk.written();
    talk.hear("+OK\r\n");
    assert_eq!(talk.votes(), [], "it waits for the answer behind it");
    talk.hear(check(number(&sent), marker, id));
    outcome(talk)
}

fn outcome(talk: &mut ScriptedSession) -> Result<(), NodeError> {
    let answer = talk.answers().remove(0);
    match answer.reply.problem {
        None => {
            assert_eq!(answer.reply.vote, Vote::Granted);
            Ok(())
        }
        Some(problem) => Err(problem),
    }
}

fn status(talk: &ScriptedSession) -> NodeStatus {
    talk.session.status(talk.now)
}

#[test]
fn a_report_says_what_the_node_is_whatever_its_name_reads_like() {
    let left = Duration::from_secs(5);
    let report = |options| {
        let answer = NodeAnswer::Failed(NodeError::Quarantined { left });
        Session::new(options).report(answer).to_string()
    };
    let server = SessionOptions::new("unix:///run/failover=true/redis.sock", 7);
    let of_server = report(server);
    assert!(
        of_server.contains("restart_guard") && !of_server.contains("adopt_groups"),
        "{of_server}"
    );
    let of_group = report(options(None));
    assert!(
        of_group.contains("adopt_groups") && !of_group.contains("restart_guard"),
        "{of_group}"
    );
}

#[test]
fn a_status_says_for_how_long_a_reign_is_known() {
    let mut talk = connected(None);
    assert_eq!(status(&talk).group, None);
    let sent = talk.written();
    talk.hear(reign(number(&sent), "900000"));
    talk.pass(500);
    let known = GroupStatus {
        reign: ID.to_owned(),
        epoch: 0,
        former: None,
        is_adopted: false,
        is_proven: false,
        age: Some(Duration::from_millis(100_500)),
        acknowledged: None,
    };
    assert_eq!(status(&talk).group, Some(known));
    let ping = request(Verb::Ping, 1, talk.now);
    let asked = Request {
        command: Command::Ping(Ping { asks: true }),
        ..ping
    };
    talk.session.send(talk.now, Some(ticket(1)), &asked);
    assert!(
        talk.written().contains("min-replicas-*"),
        "only a group is asked for that"
    );
    talk.lose();
    assert_eq!(status(&talk).group, None);
}

/// Since it was named, the server may have been replaced, and elected again untold.
#[test]
fn a_server_that_was_named_long_ago_is_looked_for_again() {
    // Longer ago than the bound: meanwhile a holder may have reclaimed its lock elsewhere.
    for (pause, is_new) in [(14_000, true), (15_000, false)] {
        let mut talk = greeted(100);
        talk.lose();
        talk.session.located(0, talk.now);
        talk.pass(pause);
        talk.connect();
        talk.hear(greeting("a", 1_000));
        let sent = talk.written();
        talk.hear(reign(number(&sent), "900000"));
        assert_eq!(talk.session.is_down(), !is_new, "{pause}");
    }
}

#[test]
fn another_reign_than_before_is_reported_once() {
    let mut talk = greeted(100);
    let new_reigns = |talk: &mut ScriptedSession| {
        let events = talk.events().into_iter();
        let new_reign = |event| match event {
            SessionEvent::NewReign { age, left } => Some((age, left)),
            _ => None,
        };
        events.filter_map(new_reign).collect::<Vec<_>>()
    };
    assert_eq!(new_reigns(&mut talk), [], "not the first one");
    for (id, is_new) in [(ID, false), ("4567", true), ("4567", false)] {
        talk.lose();
        talk.pass(1_000);
        talk.connect();
        talk.hear(greeting("a", 1_000));
        let sent = talk.written();
        talk.hear(reign(number(&sent), "990000").replace(ID, id));
        let told = (Duration::from_secs(10), Duration::from_secs(65));
        let reported: Vec<_> = is_new.then_some(told).into_iter().collect();
        assert_eq!(new_reigns(&mut talk), reported);
    }
}

#[test]
fn a_vote_counts_if_reign_and_marker_are_those_of_the_greeting() {
    let since = "900000";
    assert_eq!(vote(&mut greeted(100), &marker(since), ID), Ok(()));
    let mut talk = greeted(100);
    assert_eq!(
        vote(&mut talk, &marker(since), "4567"),
        Err(NodeError::ReignChanged)
    );
    assert!(talk.session.is_down(), "it is greeted again");
    for other in [&marker("900001"), "$-1\r\n"] {
        assert_eq!(
            vote(&mut greeted(100), other, ID),
            Err(NodeError::ReignChanged)
        );
    }
    let mut talk = greeted(100);
    talk.send(1, Verb::Acquire);
    let sent = talk.written();
    let check = check(number(&sent), &marker(since), ID);
    talk.hear(format!(
        "+OK\r\n{}",
        check.replace("$6\r\nmaster", "$5\r\nslave")
    ));
    assert!(matches!(outcome(&mut talk), Err(NodeError::NoMaster(_))));
}

#[test]
fn votes_that_are_written_at_once_have_one_check() {
    let mut talk = greeted(100);
    talk.send(1, Verb::Acquire);
    talk.send(2, Verb::Acquire);
    talk.send(3, Verb::Release);
    let sent = talk.written();
    assert_eq!(sent.matches("INFO").count(), 1, "{sent}");
    talk.hear("+OK\r\n$-1\r\n");
    assert_eq!(talk.votes(), []);
    let release: u64 = number(&sent).parse().unwrap();
    talk.hear(format!(":{}\r\n", release - 1));
    assert_eq!(
        talk.votes(),
        [(3, Vote::Granted)],
        "a removal is carried out in any reign"
    );
    talk.hear(check(number(&sent), &marker("900000"), ID));
    assert_eq!(talk.votes(), [(1, Vote::Granted), (2, Vote::Refused)]);
    assert_eq!(
        talk.written(),
        "",
        "nothing is asked when there was no vote"
    );
}

#[test]
fn a_lock_is_extended_and_set_again_after_the_bound() {
    let extended = |age: u64, answer: &str| {
        let mut talk = greeted(age);
        talk.send(1, Verb::Extend);
        let sent = talk.written();
        let first: u64 = number(&sent).parse().unwrap();
        talk.hear(answer.replace('n', &(first - 1).to_string()));
        let since = (1_000_000 - age * 1_000).to_string();
        talk.hear(check(number(&sent), &marker(&since), ID));
        (sent.contains("restore\r\n$"), outcome(&mut talk))
    };
    let quarantined = |left| {
        Err(NodeError::Quarantined {
            left: Duration::from_secs(left),
        })
    };
    assert_eq!(
        extended(10, ":n\r\n"),
        (false, quarantined(5)),
        "an old master may still grant"
    );
    assert_eq!(extended(20, ":n\r\n"), (true, Ok(())));
    assert_eq!(
        extended(20, ":-n\r\n"),
        (true, quarantined(55)),
        "it is not lost yet"
    );
    assert!(
        !extended(100, ":n\r\n").0,
        "it would be lost to another client"
    );
}

#[test]
fn a_release_that_finds_no_key_in_the_quarantine_does_not_say_that_the_lock_was_lost() {
    for (age, vote) in [(20, Vote::Failed), (100, Vote::Refused)] {
        let mut talk = greeted(age);
        talk.send(1, Verb::Release);
        let sent = talk.written();
        talk.hear(format!(":-{}\r\n", number(&sent)));
        assert_eq!(talk.votes(), [(1, vote)]);
    }
}

#[test]
fn a_session_that_has_not_voted_for_the_longest_ttl_greets_again() {
    let mut talk = greeted(100);
    talk.pass(59_999);
    assert_eq!(vote(&mut talk, &marker("900000"), ID), Ok(()));
    talk.pass(60_000);
    talk.send(1, Verb::Acquire);
    assert!(talk.session.wants_connection(talk.now), "without a pause");
}

#[test]
fn a_connection_that_is_made_after_a_long_pause_is_not_given_up_for_the_next_request() {
    let mut talk = greeted(100);
    talk.pass(60_000);
    talk.send(1, Verb::Acquire);
    talk.session.connecting(talk.now, Phase::Connecting);
    talk.send(2, Verb::Acquire);
    assert!(!talk.session.is_down());
    talk.session.connected(talk.now);
    talk.send(3, Verb::Acquire);
    assert!(!talk.session.is_down() && talk.votes().is_empty());
}

#[test]
fn a_slot_on_its_way_to_another_server_fails_a_vote_and_not_the_others() {
    let mut talk = greeted(100);
    talk.send(1, Verb::Acquire);
    talk.send(2, Verb::Acquire);
    let sent = talk.written();
    talk.hear("-ASK 8192 127.0.0.1:7001\r\n+OK\r\n");
    talk.hear(check(number(&sent), &marker("900000"), ID));
    assert!(!talk.session.is_down());
    assert_eq!(talk.answers().len(), 2);
}

#[test]
fn an_extension_that_is_sent_again_by_its_source_is_checked_too() {
    let mut talk = greeted(100);
    for serial in [1, 2] {
        talk.send(serial, Verb::Extend);
        let sent = talk.written();
        let last: u64 = number(&sent).parse().unwrap();
        if serial == 1 {
            talk.hear(format!(":{}\r\n", last - 1));
        } else {
            talk.hear("-NOSCRIPT No matching script. Please use EVAL.\r\n");
        }
        talk.hear(check(number(&sent), &marker("900000"), ID));
    }
    assert_eq!(talk.votes(), [(1, Vote::Granted)]);
    let again = talk.written();
    assert!(
        again.contains("PEXPIRE") && again.contains("master_replid"),
        "{again}"
    );
}

#[test]
fn a_replica_and_a_server_without_a_reign_are_no_masters() {
    for (answer, expected) in [
        (
            ":-#\r\n",
            NodeError::NoMaster("the server is a replica".to_owned()),
        ),
        ("*1\r\n:#\r\n", NodeError::HidesReign),
        (
            "-READONLY You can't write against a read only replica.\r\n",
            NodeError::NoMaster("READONLY You can't write against a read only replica.".to_owned()),
        ),
        (
            "-MOVED 8192 127.0.0.1:7001\r\n",
            NodeError::NoMaster("MOVED 8192 127.0.0.1:7001".to_owned()),
        ),
        (
            "-ASK 8192 127.0.0.1:7001\r\n",
            NodeError::SlotMoving("ASK 8192 127.0.0.1:7001".to_owned()),
        ),
        (
            "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
            NodeError::SlotMoving(
                "TRYAGAIN Multiple keys request during rehashing of slot".to_owned(),
            ),
        ),
        (
            "-CLUSTERDOWN The cluster is down\r\n",
            NodeError::ClusterDown("CLUSTERDOWN The cluster is down".to_owned()),
        ),
        (
            "-ERR Script attempted to access a non local key in a cluster node\r\n",
            NodeError::SlotMoving(
                "ERR Script attempted to access a non local key in a cluster node".to_owned(),
            ),
        ),
    ] {
        let mut talk = connected(None);
        talk.send(1, Verb::Acquire);
        let sent = talk.written();
        let greeting = sent.split("\r\n*").next().unwrap();
        talk.hear(answer.replace('#', number(greeting)));
        assert_eq!(talk.problem(), expected);
    }
}

/// A group that is greeted again after a pause, by a replica whose link to its master is so.
fn greeted_by_replica(talk: &mut ScriptedSession, link: &str) -> NodeError {
    talk.connect();
    talk.hear(greeting("a", 1_000));
    let sent = talk.written();
    if sent.contains("\r\nINFO\r\n$11\r\nreplication") {
        let info = format!("role:slave\r\nmaster_link_status:{link}\r\n");
        talk.hear(format!("${}\r\n{info}\r\n", info.len()));
    }
    let greeting = sent
        .split("\r\n*")
        .find(|it| it.contains("greet"))
        .expect("it is asked");
    talk.hear(format!(":-{}\r\n", number(greeting)));
    assert!(talk.session.is_down());
    last_error(talk)
}

fn last_error(talk: &ScriptedSession) -> NodeError {
    status(talk).last_error.expect("there is one")
}

#[test]
fn a_replica_is_refused_for_good_only_after_longer_than_a_failover_takes() {
    let replica = NodeError::WrongServer(WrongServer::Replica);
    let mut talk = connected(None);
    let sent = talk.written();
    talk.hear(format!(":-{}\r\n", number(&sent)));
    assert!(!last_error(&talk).is_permanent());
    let mut is_replica = |millis, link: &str| {
        talk.pass(millis);
        greeted_by_replica(&mut talk, link) == replica
    };
    // 60 s and 15 s.
    assert!(!is_replica(74_000, "up"));
    assert!(is_replica(1_000, "up"));
    // Its master is lost: it may be promoted.
    assert!(!is_replica(1_000, "down"));
    assert!(!is_replica(74_000, "up"));
    assert!(is_replica(1_000, "up"));
    talk.connect();
    talk.hear(greeting("a", 1_000));
    let sent = talk.written();
    talk.hear("$0\r\n\r\n");
    talk.hear(reign(number(&sent), "900000"));
    assert!(
        !talk.session.is_down(),
        "a master is greeted however late it comes"
    );
}

#[test]
fn an_error_of_a_connection_names_the_server_that_was_announced() {
    let mut talk = greeted(100);
    talk.lose();
    talk.session.connecting(talk.now, Phase::Resolving);
    talk.session
        .announced("master 10.0.0.1:6379, named by s1:26379".into());
    talk.session.connecting(talk.now, Phase::Connecting);
    let text = |error: NodeError| error.to_string();
    assert_eq!(
        text(talk.session.late()),
        "no connection: master 10.0.0.1:6379, named by s1:26379: timed out connecting; if it is \
         down, its failover is awaited, else the announced address cannot be reached from here"
    );
    let kind = std::io::ErrorKind::ConnectionRefused;
    let refused = "Connection refused".to_owned();
    talk.session.closed(
        talk.now,
        NodeError::Unreachable {
            kind,
            text: refused,
        },
    );
    assert_eq!(
        text(last_error(&talk)),
        "no connection: master 10.0.0.1:6379, named by s1:26379: Connection refused; if it is \
         down, its failover is awaited, else the announced address cannot be reached from here"
    );
    talk.session.connecting(talk.now, Phase::Resolving);
    talk.session.options.is_looked_up = true;
    assert_eq!(talk.session.late(), NodeError::TimedOut(Phase::Locating));
}
