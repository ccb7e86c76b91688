//! Every message against bytes recorded from a server, and in pieces.

mod pieces;
mod replies;

use super::*;
use crate::jute::{JuteError, frame};
use std::sync::Arc;

/// One frame of the recording, with its length; empty if the server closed the connection instead.
fn recorded(name: &str) -> Vec<u8> {
    let mut lines = include_str!("recorded.txt")
        .lines()
        .skip_while(|line| *line != name);
    assert!(lines.next().is_some(), "{name} was not recorded");
    let hex: String = lines
        .take_while(|line| line.starts_with("  "))
        .map(str::trim)
        .collect();
    if hex == "close" {
        return Vec::new();
    }
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// The names of all frames in this direction.
fn frames(direction: char) -> impl Iterator<Item = &'static str> {
    let lines = include_str!("recorded.txt").lines();
    lines.filter(move |line| !line.starts_with([' ', '#']) && line.ends_with(direction))
}

/// What the server answered, without the frame's length.
fn answer(name: &str) -> Vec<u8> {
    let bytes = recorded(&format!("{name} <"));
    let (body, used) = frame(&bytes).unwrap().unwrap();
    assert_eq!(used, bytes.len());
    body.to_vec()
}

fn header_and_body(frame: &[u8]) -> (ReplyHeader, &[u8]) {
    let Ok(Incoming::Reply { header, body }) = Incoming::decode(frame) else {
        panic!("an event")
    };
    (header, body)
}

const NODE: &str = "/locks/a/_c_00010203-0405-4607-8809-0a0b0c0d0e0f-lock-";
const SESSION: i64 = 0x0100_0016_da6b_0000;

fn create(path: &str, data: &[u8], kind: CreateKind) -> Create {
    Create {
        path: path.into(),
        data: data.into(),
        acl: Acl::Anyone,
        kind,
    }
}

fn first() -> Arc<str> {
    format!("{NODE}0000000000").into()
}

/// A request of the recording: its name there, its xid, and what it asks.
type Recorded = (&'static str, i32, EnsembleRequest);

/// All but connect's.
fn requests() -> Vec<Recorded> {
    let mut all = creations();
    all.extend(questions());
    all.extend(changes());
    all
}

/// What logs in, and creates nodes.
fn creations() -> Vec<Recorded> {
    use CreateKind::{Container, Ephemeral, EphemeralSequential, Persistent};
    let secret = Create {
        acl: Acl::Creator,
        ..create("/locks/secret", b"", Ephemeral)
    };
    vec![
        (
            "auth",
            AUTH_XID,
            EnsembleRequest::Auth(Secret((*b"user:password").into())),
        ),
        (
            "create2",
            2,
            EnsembleRequest::Create(create("/locks", b"me", Persistent)),
        ),
        (
            "create_container",
            3,
            EnsembleRequest::Create(create("/locks/a", b"me", Container)),
        ),
        (
            "create2_sequential",
            4,
            EnsembleRequest::Create(create(NODE, b"owner", EphemeralSequential)),
        ),
        ("create2_auth", 5, EnsembleRequest::Create(secret)),
        (
            "create2_exists",
            6,
            EnsembleRequest::Create(create("/locks", b"me", Persistent)),
        ),
        (
            "create2_no_node",
            7,
            EnsembleRequest::Create(create("/none/a", b"me", Persistent)),
        ),
    ]
}

/// What reads, with a watch or without.
fn questions() -> Vec<Recorded> {
    let get = |path: &str| EnsembleRequest::GetData {
        path: path.into(),
        watch: true,
    };
    let list = |path: &str, watch| EnsembleRequest::GetChildren {
        path: path.into(),
        watch,
    };
    let exists = |path: &str, watch| EnsembleRequest::Exists {
        path: path.into(),
        watch,
    };
    vec![
        ("exists", 9, exists("/locks/a", false)),
        ("exists_no_node", 10, exists("/locks/b", false)),
        ("get_children2", 11, list("/locks/a", false)),
        ("get_children2_empty", 12, list("/plain", false)),
        ("get_data", 13, get(&first())),
        ("get_data_no_node", 14, get(&format!("{NODE}0000000001"))),
        ("children_watch", 23, list("/locks/a", true)),
        ("exists_watch", 25, exists("/locks/new", true)),
        (
            "no_auth",
            2,
            EnsembleRequest::GetData {
                path: "/locks/secret".into(),
                watch: false,
            },
        ),
    ]
}

/// What changes several nodes, deletes, or ends the session.
fn changes() -> Vec<Recorded> {
    use CreateKind::Ephemeral;
    let multi = |operations: &[MultiOperation]| EnsembleRequest::Multi(operations.into());
    vec![
        ("sync", 15, EnsembleRequest::Sync("/locks/a".into())),
        ("check", 16, multi(&[MultiOperation::Check(first())])),
        (
            "multi_create1",
            18,
            multi(&[MultiOperation::Create(create("/locks/one", b"", Ephemeral))]),
        ),
        (
            "multi_failed",
            20,
            multi(&[
                MultiOperation::Check("/locks".into()),
                MultiOperation::Delete("/locks/a".into()),
                MultiOperation::Check("/locks".into()),
            ]),
        ),
        (
            "delete_not_empty",
            21,
            EnsembleRequest::Delete("/locks/a".into()),
        ),
        ("delete", 22, EnsembleRequest::Delete(first())),
        ("close_session", 1, EnsembleRequest::CloseSession),
    ]
}

#[test]
fn every_request_has_the_bytes_that_the_server_understood() {
    for (name, xid, request) in requests() {
        let mut out = vec![1, 2];
        request.encode(xid, &mut out).unwrap();
        assert_eq!(&out[2..], recorded(&format!("{name} >")), "{name}");
        let (header, _) = header_and_body(&answer(name));
        assert_eq!(header.xid, xid, "{name}");
    }
}

#[test]
fn a_session_is_begun_continued_and_refused() {
    let encoded = |request: &ConnectRequest| {
        let mut out = Vec::new();
        request.encode(&mut out);
        out
    };
    assert_eq!(
        encoded(&ConnectRequest::new(10_000, 0)),
        recorded("connect >")
    );
    let new = ConnectReply::decode(&answer("connect")).unwrap();
    assert_eq!((new.timeout_ms, new.session), (10_000, SESSION));
    let again = ConnectRequest {
        session: new.session,
        password: new.password,
        ..ConnectRequest::new(10_000, 5)
    };
    assert_eq!(encoded(&again), recorded("reconnect >"));
    assert_eq!(ConnectReply::decode(&answer("reconnect")), Ok(new));
    for gone in ["connect_gone", "connect_unknown"] {
        let reply = ConnectReply::decode(&answer(gone)).unwrap();
        assert_eq!((reply.timeout_ms, reply.session), (0, 0), "{gone}");
    }
    let short = ConnectReply::decode(&answer("connect_short")).unwrap();
    assert_eq!(short.timeout_ms, 4_000, "two ticks at least");
    assert_eq!(
        encoded(&ConnectRequest::new(10_000, 1 << 40)),
        recorded("connect_behind >")
    );
    assert!(
        recorded("connect_behind <").is_empty(),
        "closed without a word"
    );
}

#[test]
fn the_connect_reply_of_old_servers_is_shorter_and_none_may_be_shorter_than_that() {
    let reply = answer("connect");
    let whole = ConnectReply::decode(&reply);
    assert_eq!(ConnectReply::decode(&reply[..reply.len() - 1]), whole);
    for length in 0..reply.len() - 1 {
        assert_eq!(
            ConnectReply::decode(&reply[..length]),
            Err(JuteError::Truncated),
            "{length}"
        );
    }
}

#[test]
fn neither_passwords_nor_credentials_are_shown() {
    let reply = ConnectReply::decode(&answer("connect")).unwrap();
    let request = ConnectRequest {
        password: reply.password,
        ..ConnectRequest::new(1, 1)
    };
    for text in [format!("{reply:?}"), format!("{request:?}")] {
        assert!(
            text.contains("password: Secret") && !text.contains('['),
            "{text}"
        );
    }
    let auth = EnsembleRequest::Auth(Secret((*b"user:password").into()));
    assert_eq!(format!("{auth:?}"), "Auth(Secret)");
}

/// Calls `read` with the reply to this request.
fn with_reply<T>(name: &str, read: impl FnOnce(ReplyHeader, EnsembleReply<'_>) -> T) -> T {
    let known = requests().into_iter().find(|(other, ..)| *other == name);
    // The recording has a transaction with a create2, which is not sent any more.
    let kind = known.map_or(RequestKind::Multi(3), |(.., request)| request.form().kind);
    let frame = answer(name);
    let (header, body) = header_and_body(&frame);
    assert_eq!(header.error, None, "{name}");
    read(header, EnsembleReply::decode(kind, body).unwrap())
}
