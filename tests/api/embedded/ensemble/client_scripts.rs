//! Scripts about clients: watches, credentials, sessions, and requests that are none.

use super::request::*;
use super::script::Step;

pub(super) fn watches() -> Vec<Step> {
    let all = |path: &str| {
        let read = |opcode| Step::Ask(1, read(opcode, path, true));
        [EXISTS, GET_DATA, GET_CHILDREN, GET_CHILDREN2].map(read)
    };
    let ask = |request| [Step::Ask(0, request)];
    let exists = |client, path| [Step::Ask(client, read(EXISTS, path, true))];
    [
        &[Step::Open(0), Step::Open(1), Step::Open(2)][..],
        &all("/watched"),
        &ask(create(CREATE2, "/watched", 0)),
        &all("/watched"),
        &ask(set_data("/watched", b"1", -1)),
        &ask(set_data("/watched", b"2", -1)),
        &all("/watched"),
        &ask(create(CREATE2, "/watched/a", 0)),
        &ask(create(CREATE2, "/watched/b", 1)),
        &all("/watched"),
        &all("/watched/b"),
        &ask(delete("/watched/a", -1)),
        &[Step::Ask(2, read(GET_CHILDREN2, "/watched", true))],
        &ask(Request::Close),
        &exists(2, "/watched/c"),
        &exists(2, "/watched/d"),
        &exists(1, "/watched/d"),
        &[Step::Ask(1, create(CREATE2, "/watched/d", 0))],
        &all("/watched/d"),
        &[Step::Ask(1, delete("/watched/d", -1))],
        &all("/watched"),
        &[Step::Ask(
            1,
            Request::Multi(vec![
                create(CREATE2, "/watched/c", 0),
                set_data("/watched", b"3", -1),
                delete("/watched/c", -1),
            ]),
        )],
        &all("/watched"),
        &[Step::Ask(
            1,
            Request::Multi(vec![delete("/watched", -1), check("/none", -1)]),
        )],
        &[Step::Ask(1, read(GET_CHILDREN, "/", true))],
        &[Step::Ask(1, delete("/watched", -1))],
        &exists(1, ""),
        &[Step::Ask(2, create(CREATE2, "/watched", 1))],
        &all("/watched"),
        &[Step::Ask(2, Request::Close)],
    ]
    .concat()
}

pub(super) fn credentials() -> Vec<Step> {
    let auth = |credentials| Request::Auth {
        scheme: "digest",
        credentials,
    };
    let owned = |path: &str, acl| Request::Create {
        opcode: CREATE2,
        path: path.to_owned(),
        data: Some(Vec::new()),
        acl,
        flags: 0,
    };
    const READERS: Acl = &[(1, "world", "anyone"), (31, "auth", "")];
    // Of `user:password`.
    const DIGEST: Acl = &[(31, "digest", "user:tpUq/4Pn5A64fVZyQ0gOJ8ZWqkY=")];
    let mut steps = vec![Step::Open(0), Step::Open(1), Step::Open(2)];
    let first = [
        create(CREATE2, "/acl", 0),
        owned("/acl/none", CREATOR),
        owned("/acl/empty", &[]),
        owned("/acl/odd", &[(31, "digest", "nobody")]),
        owned("/acl/odd", &[(31, "unknown", "scheme")]),
        owned("/acl/odd", &[(31, "world", "someone")]),
        auth(b"user:password"),
        auth(b"user:password"),
        owned("/acl/a", CREATOR),
        owned("/acl/r", READERS),
        owned("/acl/d", DIGEST),
        create(CREATE2, "/acl/a/b", 0),
        read(GET_DATA, "/acl/a", false),
        read(GET_CHILDREN2, "/acl/d", false),
    ];
    steps.extend(first.map(|request| Step::Ask(0, request)));
    for round in 0..3 {
        match round {
            1 => steps.push(Step::Ask(1, auth(b"user:another"))),
            2 => steps.push(Step::Ask(1, auth(b"user:password"))),
            _ => {}
        }
        for path in ["/acl/a", "/acl/r", "/acl/d"] {
            let below = format!("{path}/c");
            let tried = [
                read(EXISTS, path, false),
                read(GET_DATA, path, true),
                read(GET_CHILDREN, path, true),
                set_data(path, b"x", -1),
                create(CREATE2, &below, 0),
                delete(&below, -1),
                delete(&format!("{path}/none"), -1),
                Request::Multi(vec![check(path, -1), delete(&below, -1)]),
            ];
            steps.extend(tried.map(|request| Step::Ask(1, request)));
        }
    }
    let wrong = Request::Auth {
        scheme: "unknown",
        credentials: b"user:password",
    };
    steps.extend([Step::Ask(2, wrong), Step::Ask(1, delete("/acl/d", -1))]);
    steps
}

pub(super) fn sessions() -> Vec<Step> {
    let ask = |client, request| Step::Ask(client, request);
    let resume = |client, of, has_password| Step::Resume {
        client,
        of,
        has_password,
    };
    vec![
        Step::Open(0),
        Step::Open(1),
        Step::FromFuture,
        ask(0, create(CREATE2, "/sessions", 0)),
        ask(0, create(CREATE2, "/sessions/e", 1)),
        ask(0, read(EXISTS, "/sessions", true)),
        resume(2, 0, true),
        ask(2, read(EXISTS, "/sessions/e", false)),
        ask(1, set_data("/sessions", b"unseen", -1)),
        ask(1, read(EXISTS, "/sessions/e", true)),
        resume(3, 2, false),
        ask(1, read(EXISTS, "/sessions/e", true)),
        Step::Open(4),
        ask(4, create(CREATE2, "/sessions/f", 1)),
        ask(4, read(GET_CHILDREN, "/sessions", true)),
        ask(1, read(GET_CHILDREN, "/sessions", true)),
        ask(4, Request::Close),
        ask(1, read(GET_CHILDREN2, "/sessions", false)),
    ]
}

pub(super) fn bad_requests() -> Vec<Step> {
    let mut steps = Vec::new();
    // Requests that end within a value, on one connection.
    steps.push(Step::Open(0));
    for opcode in [1, 2, 3, 4, 5, 8, 12, 13, 14, 15, 19, 21] {
        steps.push(Step::Ask(0, Request::Bytes(opcode, vec![0, 0, 0, 9])));
        steps.push(Step::Ask(
            0,
            Request::Bytes(opcode, vec![255, 255, 255, 255, 0]),
        ));
    }
    steps.push(Step::Ask(0, Request::Bytes(9, vec![0, 0, 0, 9])));
    steps.push(Step::Ask(0, check("/none", -1)));
    steps.push(Step::Ask(0, create(CREATE2, "/bad", 0)));
    // What closes the connection.
    for opcode in [0, 7_777, -2] {
        steps.push(Step::Open(1));
        steps.push(Step::Ask(1, Request::Bytes(opcode, vec![0; 12])));
    }
    for bytes in [
        vec![255; 4],
        vec![0, 16, 0, 0],
        vec![0, 0, 0, 4, 0, 0, 0, 1],
    ] {
        steps.push(Step::Open(1));
        steps.push(Step::Break(1, bytes));
    }
    steps
}
