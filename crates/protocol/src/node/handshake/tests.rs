//! Greetings of old and new servers, with valid and invalid answers.

use super::*;
use crate::node::fixture::{ScriptedSession, info};
use crate::node::{Phase, SessionOptions};
use std::time::Duration;

/// The session after a greeting with these credentials that the server answers with `replies`,
/// completely or in part; and the bytes that were sent.
fn greet(credentials: Credentials, replies: &[&str]) -> (ScriptedSession, String) {
    let mut options = SessionOptions::new("redis://node", 7);
    options.credentials = credentials;
    let mut talk = ScriptedSession::new(options);
    talk.send(1, crate::engine::Verb::Ping);
    let sent = talk.connect();
    for reply in replies {
        talk.hear(reply);
    }
    (talk, sent)
}

fn password(user: Option<&[u8]>) -> Credentials {
    Credentials::new(user, Some(b"s3cret"), 0, None)
}

/// The kind of the error that ended a greeting. It is this one of the replies.
fn refusal(credentials: Credentials, replies: &[&str], first: &str) -> ServerErrorKind {
    let (mut talk, _) = greet(credentials, replies);
    assert!(talk.session.is_down());
    assert_eq!(talk.commands(), [""; 0]);
    match talk.problem() {
        NodeError::Server(error) => {
            assert!(!error.text.contains("s3cret"), "{error}");
            assert_eq!(error.text, first.trim_start_matches('-').trim_end());
            error.kind
        }
        other => panic!("{other:?}"),
    }
}

const UNKNOWN: &str = "-ERR unknown command 'HELLO', with args beginning with: '3' \r\n";

#[test]
fn the_greeting_is_written_at_once() {
    let all = Credentials::new(Some(b"me"), Some(b"pw"), 3, Some("name"));
    let (_, sent) = greet(all, &[]);
    assert_eq!(
        sent,
        "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$2\r\npw\r\n*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n\
         *2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$4\r\nname\r\n\
         *2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"
    );
    let (_, sent) = greet(password(None), &[]);
    assert!(sent.starts_with("*2\r\n$4\r\nAUTH\r\n$6\r\ns3cret\r\n*2\r\n$5\r\nHELLO"), "{sent}");
    let no_password = Credentials::new(Some(b"me"), None, 0, None);
    assert!(greet(no_password, &[]).1.starts_with("*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$0\r\n\r\n"));
}

#[test]
fn a_current_server_is_identified_by_its_answers() {
    let (mut talk, _) = greet(Credentials::default(), &[&crate::node::fixture::greeting("a", 9)]);
    assert_eq!(talk.commands(), ["PING"]);
    let status = talk.session.status(talk.now, None);
    assert!(status.is_connected && status.last_error.is_none());
    assert_eq!(status.server.as_deref(), Some("redis"));
    assert_eq!(status.version.as_deref(), Some("7.0.15"));
    assert_eq!(status.uptime, Some(Duration::from_secs(9)));
    assert_eq!(talk.session.run_id(), Some("a"));
}

#[test]
fn a_server_with_resp2_only_is_usable() {
    for answer in [UNKNOWN, "-NOPROTO unsupported protocol version\r\n", "*2\r\n+proto\r\n:2\r\n"] {
        let (mut talk, _) = greet(Credentials::default(), &[answer, &info("a", 9)]);
        assert_eq!(talk.commands(), ["PING"], "{answer}");
    }
}

#[test]
fn a_list_that_answers_hello_says_that_it_is_resp2() {
    let lists = [
        "*0\r\n",
        "*1\r\n+proto\r\n",
        "*2\r\n+proto\r\n:3\r\n",
        "*2\r\n+proto\r\n+2\r\n",
        "*2\r\n+server\r\n+redis\r\n",
        "*2\r\n:1\r\n:2\r\n",
        "*4\r\n+proto\r\n:2\r\n+id\r\n+7\r\n",
        "%1\r\n+proto\r\n:2\r\n",
    ];
    for list in lists {
        let (mut talk, _) = greet(Credentials::default(), &[list]);
        assert!(talk.session.is_down(), "{list:?}");
        assert!(matches!(talk.problem(), NodeError::UnexpectedReply(_)), "{list:?}");
    }
    let list = "*4\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:7\r\n";
    let (mut talk, _) = greet(Credentials::default(), &[list, &info("a", 9)]);
    assert_eq!(talk.commands(), ["PING"]);
}

#[test]
fn valkey_is_identified_by_its_own_name_and_version() {
    let text = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n";
    let verbatim = format!("={}\r\ntxt:{text}\r\n", text.len() + 4);
    let (talk, _) = greet(Credentials::default(), &["%0\r\n", &verbatim]);
    let status = talk.session.status(talk.now, None);
    assert_eq!(status.server.as_deref(), Some("valkey"));
    assert_eq!(status.version.as_deref(), Some("8.0.1"));
    assert_eq!((status.uptime, talk.session.run_id()), (None, None));
}

#[test]
fn redict_is_identified_by_its_version_as_it_sends_no_name() {
    let text = "redict_version:7.3.6\r\nredis_version:7.2.4\r\n";
    let (talk, _) =
        greet(Credentials::default(), &["%0\r\n", &format!("${}\r\n{text}\r\n", text.len())]);
    let status = talk.session.status(talk.now, None);
    assert_eq!(status.server.as_deref(), Some("redict"));
    assert_eq!(status.version.as_deref(), Some("7.3.6"));
}

#[test]
fn names_and_versions_are_shown_without_secrets_and_control_characters() {
    let text =
        "server_name:red\u{202e}is\x1b[31m\r\nredis_version:7 s3cret\r8\r\nrun_id:a\u{202e}\r\n";
    let info = format!("${}\r\n{text}\r\n", text.len());
    let (talk, _) = greet(password(None), &["+OK\r\n", "%0\r\n", &info]);
    let status = talk.session.status(talk.now, None);
    assert_eq!(status.server.as_deref(), Some("red\\u{202e}is\\u{1b}[31m"));
    assert_eq!(status.version.as_deref(), Some("7 ***\\r8"));
    // The run_id is compared and never shown.
    assert_eq!(talk.session.run_id(), Some("a\u{202e}"));
}

#[test]
fn wrong_credentials_are_reported_with_the_servers_error() {
    let noauth = "-NOAUTH Authentication required.\r\n";
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    let kind = ServerErrorKind::Authentication;
    // With users, since version 6.
    assert_eq!(refusal(password(Some(b"me")), &[wrong, noauth, noauth], wrong), kind);
    // Without.
    let old = "-ERR invalid password\r\n";
    assert_eq!(refusal(password(None), &[old, UNKNOWN, noauth], old), kind);
    // A password for a server that asks for none.
    let none = "-ERR Client sent AUTH, but no password is set\r\n";
    assert_eq!(refusal(password(None), &[none, "%0\r\n", &info("a", 9)], none), kind);
    // Servers before version 6 take no user.
    let arity = "-ERR wrong number of arguments for 'auth' command\r\n";
    assert_eq!(refusal(password(Some(b"me")), &[arity, UNKNOWN, noauth], arity), kind);
}

#[test]
fn a_missing_password_is_reported() {
    let noauth = "-NOAUTH HELLO must be called with the client already authenticated.\r\n";
    let later = "-NOAUTH Authentication required.\r\n";
    let kind = refusal(Credentials::default(), &[noauth, later], noauth);
    assert_eq!(kind, ServerErrorKind::Authentication);
    // An old server does not know HELLO, and asks only then.
    let kind = refusal(Credentials::default(), &[UNKNOWN, later], later);
    assert_eq!(kind, ServerErrorKind::Authentication);
}

#[test]
fn a_database_that_does_not_exist_makes_the_node_unusable() {
    let nine = Credentials::new(None, None, 99, None);
    let refused = "-ERR DB index is out of range\r\n";
    let answers = ["%0\r\n", refused, &info("a", 9)];
    assert_eq!(refusal(nine, &answers, refused), ServerErrorKind::NoSuchDatabase);
}

#[test]
fn a_node_without_a_connection_name_or_an_identity_is_usable() {
    let named = Credentials::new(None, None, 0, Some("name"));
    let answers = ["%0\r\n", "-ERR unknown command 'CLIENT'\r\n", "-NOPERM no info for you\r\n"];
    let (mut talk, _) = greet(named, &answers);
    assert_eq!(talk.commands(), ["PING"]);
    assert_eq!(talk.session.status(talk.now, None).version, None);
}

#[test]
fn a_server_that_answers_info_with_an_odd_error_is_asked_three_times_and_then_used() {
    let (mut talk, _) = greet(Credentials::default(), &["%0\r\n"]);
    for _ in 0..2 {
        talk.hear("-ERR not supported by this proxy\r\n");
        assert_eq!(talk.commands(), ["INFO"]);
    }
    talk.hear("-ERR not supported by this proxy\r\n");
    assert_eq!(talk.commands(), ["PING"]);
    assert_eq!(talk.session.run_id(), None);
}

#[test]
fn a_server_that_is_too_busy_to_identify_itself_is_asked_again() {
    for error in ["-BUSY Redis is busy running a script.\r\n", "-UNKILLABLE Sorry\r\n"] {
        let kind = refusal(Credentials::default(), &["%0\r\n", error], error);
        assert_eq!(kind, ServerErrorKind::Busy);
        assert!(!kind.is_permanent(), "the server will identify itself soon");
    }
}

#[test]
fn the_error_before_the_server_closes_a_connection_is_reported() {
    let table = [
        ("-ERR max number of clients reached\r\n", ServerErrorKind::TooManyClients),
        ("-DENIED Redis is running in protected mode\r\n", ServerErrorKind::Authentication),
    ];
    for (error, kind) in table {
        let (mut talk, _) = greet(Credentials::default(), &[error]);
        assert_eq!(talk.session.phase(), Phase::Greeting);
        talk.lose();
        match talk.problem() {
            NodeError::Server(found) => {
                assert_eq!(found.kind, kind);
                assert_eq!(format!("-{found}\r\n"), error);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_invalid_greeting_is_reported_as_no_redis_server() {
    let table = [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", Some("HTTP")),
        ("SSH-2.0-OpenSSH_9.2\r\n", Some("SSH")),
        ("220 mail ESMTP\r\n", Some("SMTP")),
        ("+OK\r\n", None),
        (":1\r\n", None),
        ("%0\r\n+OK\r\n", None),
    ];
    for (bytes, other) in table {
        let (mut talk, _) = greet(Credentials::default(), &[bytes]);
        assert!(talk.session.is_down(), "{bytes:?}");
        match (talk.problem(), other) {
            (NodeError::NotRedis(found), Some(other)) => {
                assert!(found.to_string().contains(other), "{found}");
            }
            (NodeError::UnexpectedReply(_), None) => {}
            (problem, _) => panic!("{bytes:?}: {problem:?}"),
        }
    }
}

#[test]
fn identities_are_read_from_incomplete_answers() {
    let table = [
        ("", Identity::default()),
        ("run_id:\r\nuptime_in_seconds:soon\r\n", Identity::default()),
        ("uptime_in_seconds:-1\r\n", Identity::default()),
        (
            "uptime_in_seconds:18446744073709551615\r\n",
            Identity { uptime: Some(Duration::from_secs(u64::MAX)), ..Identity::default() },
        ),
        (
            "server_time_usec:1795283277899969\r\nuptime_in_seconds:10\r\n",
            Identity { uptime: Some(Duration::from_micros(10_899_969)), ..Identity::default() },
        ),
        (
            "server_time_usec:soon\r\nuptime_in_seconds:10\r\n",
            Identity { uptime: Some(Duration::from_secs(10)), ..Identity::default() },
        ),
        ("server_time_usec:1795283277899969\r\n", Identity::default()),
        ("run_id:x\n", Identity { run_id: Some("x".to_owned()), ..Identity::default() }),
    ];
    for (text, expected) in table {
        assert_eq!(Identity::from_info(text.as_bytes()), expected, "{text:?}");
    }
    assert_eq!(Identity::from_info(&[b"run_id:", &[b'x'; 200][..]].concat()), Identity::default());
}
