//! What the recorded replies say.

use super::super::*;
use super::{NODE, SESSION, answer, first, header_and_body, with_reply};
use crate::jute::JuteError;

#[test]
fn created_znodes_have_their_path_and_the_zxid_of_the_reply() {
    for (name, path, owner) in [
        ("create2", "/locks".to_owned(), 0),
        ("create_container", "/locks/a".to_owned(), 0),
        ("create2_sequential", first().to_string(), SESSION),
        ("create2_auth", "/locks/secret".to_owned(), SESSION),
    ] {
        with_reply(name, |header, reply| {
            let EnsembleReply::Created {
                path: created,
                stat,
            } = reply
            else {
                panic!("{name}")
            };
            assert_eq!((created, stat.created_by), (&*path, header.zxid), "{name}");
            assert_eq!(stat.owner, owner, "{name}");
        });
    }
}

#[test]
fn znodes_are_looked_up_with_their_data_and_children() {
    let name = first().trim_start_matches("/locks/a/").to_owned();
    with_reply("exists", |_, reply| {
        let EnsembleReply::Found(stat) = reply else {
            panic!("{reply:?}")
        };
        assert_eq!((stat.created_by, stat.children), (4, 1));
    });
    with_reply("get_data", |_, reply| {
        let EnsembleReply::Data { data, stat } = reply else {
            panic!("{reply:?}")
        };
        assert_eq!(
            (data, stat.owner, stat.created_by),
            (&b"owner"[..], SESSION, 5)
        );
        assert_eq!(stat.created_at_ms, 0x01a2_0861_5cdc);
    });
    with_reply("get_children2", |_, reply| {
        let EnsembleReply::Children { names, stat } = reply else {
            panic!("{reply:?}")
        };
        assert_eq!(names.iter().collect::<Vec<_>>(), [name.as_bytes()]);
        assert_eq!((names.count, stat.children), (1, 1));
    });
    with_reply("get_children2_empty", |_, reply| {
        let EnsembleReply::Children { names, .. } = reply else {
            panic!("{reply:?}")
        };
        assert_eq!((names.count, names.iter().next()), (0, None));
    });
}

#[test]
fn transactions_have_a_result_for_each_operation() {
    let results = |name: &str, expected: &[OperationResult<'_>], error: Option<EnsembleError>| {
        with_reply(name, |_, reply| {
            let EnsembleReply::Results(results) = reply else {
                panic!("{reply:?}")
            };
            assert_eq!(results.iter().collect::<Vec<_>>(), expected, "{name}");
            assert_eq!(results.error(), error, "{name}");
        });
    };
    let path = format!("{NODE}0000000001");
    results("check", &[OperationResult::Done], None);
    let created = OperationResult::Created(&path);
    results(
        "multi",
        &[created, OperationResult::Done, OperationResult::Done],
        None,
    );
    results(
        "multi_create1",
        &[OperationResult::Created("/locks/one")],
        None,
    );
    let failed = [
        OperationResult::Failed(None),
        OperationResult::Failed(Some(EnsembleError::NotEmpty)),
        OperationResult::Failed(Some(EnsembleError::RuntimeInconsistency)),
    ];
    results("multi_failed", &failed, Some(EnsembleError::NotEmpty));
}

#[test]
fn results_that_do_not_fit_the_transaction_are_refused() {
    let multi = answer("multi");
    let failed = answer("multi_failed");
    for count in [0, 2, 4, usize::MAX] {
        for frame in [&multi, &failed] {
            let (_, body) = header_and_body(frame);
            let reply = EnsembleReply::decode(RequestKind::Multi(count), body);
            assert_eq!(reply, Err(JuteError::BadResults), "{count}");
        }
    }
}

#[test]
fn requests_without_a_body_in_the_reply_are_carried_out() {
    for name in ["auth", "delete", "close_session"] {
        with_reply(name, |_, reply| assert_eq!(reply, EnsembleReply::Done));
    }
    with_reply("sync", |_, reply| assert_eq!(reply, EnsembleReply::Synced));
}

#[test]
fn errors_are_in_the_header() {
    for (name, error) in [
        ("create2_exists", EnsembleError::NodeExists),
        ("create2_no_node", EnsembleError::NoNode),
        ("create2_invalid_acl", EnsembleError::InvalidAcl),
        ("exists_no_node", EnsembleError::NoNode),
        ("get_data_no_node", EnsembleError::NoNode),
        ("delete_not_empty", EnsembleError::NotEmpty),
        ("no_auth", EnsembleError::NoAuth),
        ("auth_failed", EnsembleError::AuthFailed),
        ("unimplemented", EnsembleError::Unimplemented),
    ] {
        let frame = answer(name);
        let (header, body) = header_and_body(&frame);
        assert_eq!((header.error, body), (Some(error), &[][..]), "{name}");
    }
}

#[test]
fn events_of_any_kind_have_a_path() {
    let path = first();
    for (name, path) in [
        ("event_created", "/locks/new"),
        ("event_deleted", &*path),
        ("event_children", "/locks/a"),
    ] {
        assert_eq!(
            Incoming::decode(&answer(name)),
            Ok(Incoming::Event { path })
        );
    }
    // From version 3.9 on, the header has the zxid of the change.
    let mut frame = answer("event_deleted");
    frame[4..12].copy_from_slice(&7_i64.to_be_bytes());
    frame[16 + 3] = 9;
    assert_eq!(
        Incoming::decode(&frame),
        Ok(Incoming::Event { path: &path })
    );
}
