//! Every message, against a server.

use crate::client::Client;
use crate::drive::drive;
use crate::expiry::expire;
use redlatch_zookeeper::message::{
    Acl, Create, CreateKind, EnsembleError, EnsembleReply, EnsembleRequest, MultiOperation,
    OperationResult, Secret, Stat,
};
use redlatch_zookeeper::session::{EnsembleAnswer, Failure, Problem};
use std::sync::Arc;
use support::needs_zookeeper;

fn create(path: &str, kind: CreateKind) -> Create {
    Create {
        path: path.into(),
        data: b"data".as_slice().into(),
        acl: Acl::Anyone,
        kind,
    }
}

/// One to which only those have rights who have the credentials of the creator.
fn creators(path: &str) -> Create {
    let mut create = create(path, CreateKind::Persistent);
    create.acl = Acl::Creator;
    create
}

/// The path that was created, and its stat.
#[track_caller]
fn created(answer: &EnsembleAnswer) -> (String, Stat) {
    match answer.reply() {
        Ok(EnsembleReply::Created { path, stat }) => (path.to_owned(), stat),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(answer: &EnsembleAnswer) -> EnsembleError {
    match answer.reply() {
        Err(Failure::Server(error)) => *error,
        other => panic!("{other:?}"),
    }
}

/// The names of a znode's children, sorted.
#[track_caller]
pub(crate) fn names(client: &mut Client, path: &str) -> Vec<String> {
    names_if_there(client, path).unwrap_or_else(|| panic!("there is no {path}"))
}

/// The same. `None` if there is no such znode.
#[track_caller]
pub(crate) fn names_if_there(client: &mut Client, path: &str) -> Option<Vec<String>> {
    let answer = client.ask(EnsembleRequest::GetChildren {
        path: path.into(),
        watch: false,
    });
    let mut names: Vec<String> = match answer.reply() {
        Err(Failure::Server(EnsembleError::NoNode)) => return None,
        Ok(EnsembleReply::Children { names, stat }) => {
            assert_eq!(usize::try_from(stat.children), Ok(names.count));
            names
                .iter()
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect()
        }
        other => panic!("{other:?}"),
    };
    names.sort();
    Some(names)
}

#[test]
fn each_kind_of_znode_is_created_read_and_deleted() {
    let shared = needs_zookeeper!().shared();
    let mut client = Client::new(&shared.ports());
    let root = shared.root();
    let path = |name: &str| {
        if name.is_empty() {
            root.to_owned()
        } else {
            format!("{root}/{name}")
        }
    };
    let mut make = |name: &str, kind| {
        let answer = client.ask(EnsembleRequest::Create(create(&path(name), kind)));
        let (path, stat) = created(&answer);
        assert_eq!(stat.created_by, answer.zxid);
        (path, stat.owner)
    };
    assert_eq!(make("", CreateKind::Persistent), (path(""), 0));
    assert_eq!(make("c", CreateKind::Container), (path("c"), 0));
    let (ephemeral, owner) = make("e", CreateKind::Ephemeral);
    assert_eq!(ephemeral, path("e"));
    assert_eq!(
        make("c/n-", CreateKind::EphemeralSequential),
        (path("c/n-0000000000"), owner)
    );
    assert_eq!(
        make("c/n-", CreateKind::EphemeralSequential),
        (path("c/n-0000000001"), owner)
    );
    assert_eq!(make("p", CreateKind::Persistent), (path("p"), 0));
    assert_eq!(client.session.id(), Some(owner));
    assert_eq!(names(&mut client, root), ["c", "e", "p"]);
    let exists = client.ask(EnsembleRequest::Exists {
        path: ephemeral.clone().into(),
        watch: false,
    });
    let Ok(EnsembleReply::Found(stat)) = exists.reply() else {
        panic!("{exists:?}")
    };
    assert_eq!((stat.owner, stat.children), (owner, 0));
    let data = client.ask(EnsembleRequest::GetData {
        path: path("p").into(),
        watch: false,
    });
    assert!(
        matches!(data.reply(), Ok(EnsembleReply::Data { data: b"data", .. })),
        "{data:?}"
    );
    let synced = client.ask(EnsembleRequest::Sync(root.into()));
    assert!(
        matches!(synced.reply(), Ok(EnsembleReply::Synced)),
        "{synced:?}"
    );
    let deleted = client.ask(EnsembleRequest::Delete(path("p").into()));
    assert!(matches!(deleted.reply(), Ok(EnsembleReply::Done)) && deleted.zxid > stat.created_by);
}

#[test]
fn what_a_server_refuses_has_its_error() {
    let shared = needs_zookeeper!().shared();
    let mut client = Client::new(&shared.ports());
    let root = shared.root();
    let missing: Arc<str> = format!("{root}/missing").into();
    let below = create(&missing, CreateKind::Persistent);
    for request in [
        EnsembleRequest::Create(below),
        EnsembleRequest::Delete(Arc::clone(&missing)),
        EnsembleRequest::Exists {
            path: Arc::clone(&missing),
            watch: true,
        },
        EnsembleRequest::GetData {
            path: Arc::clone(&missing),
            watch: true,
        },
        EnsembleRequest::GetChildren {
            path: Arc::clone(&missing),
            watch: true,
        },
    ] {
        let answer = client.ask(request.clone());
        assert_eq!(refused(&answer), EnsembleError::NoNode, "{request:?}");
    }
    let persistent = EnsembleRequest::Create(create(root, CreateKind::Persistent));
    client.ask(persistent.clone());
    assert_eq!(refused(&client.ask(persistent)), EnsembleError::NodeExists);
    client.ask(EnsembleRequest::Create(create(
        &missing,
        CreateKind::Ephemeral,
    )));
    let not_empty = client.ask(EnsembleRequest::Delete(root.into()));
    assert_eq!(refused(&not_empty), EnsembleError::NotEmpty);
}

#[test]
fn a_transaction_is_carried_out_as_a_whole() {
    let shared = needs_zookeeper!().shared();
    let mut client = Client::new(&shared.ports());
    let root = shared.root();
    client.ask(EnsembleRequest::Create(create(
        root,
        CreateKind::Persistent,
    )));
    let path = |name: &str| -> Arc<str> { format!("{root}/{name}").into() };
    client.ask(EnsembleRequest::Create(create(
        &path("c"),
        CreateKind::Container,
    )));
    let operation = |name: &str, kind| MultiOperation::Create(create(&path(name), kind));
    let all = [
        operation("c/n-", CreateKind::EphemeralSequential),
        operation("p", CreateKind::Persistent),
        MultiOperation::Check(path("p")),
        MultiOperation::Delete(path("p")),
    ];
    let answer = client.ask(EnsembleRequest::Multi(Arc::from(all)));
    let Ok(EnsembleReply::Results(results)) = answer.reply() else {
        panic!("{answer:?}")
    };
    assert_eq!(results.error(), None);
    let [contender, persistent] = ["c/n-0000000000", "p"].map(path);
    let expected = [
        OperationResult::Created(&contender),
        OperationResult::Created(&persistent),
        OperationResult::Done,
        OperationResult::Done,
    ];
    assert_eq!(results.iter().collect::<Vec<_>>(), expected);
    let stat = client.ask(EnsembleRequest::Exists {
        path: path("c/n-0000000000"),
        watch: false,
    });
    let Ok(EnsembleReply::Found(stat)) = stat.reply() else {
        panic!("{stat:?}")
    };
    assert_eq!(stat.created_by, answer.zxid, "the transaction created it");
    let failing = [
        operation("x", CreateKind::Persistent),
        MultiOperation::Check(path("missing")),
    ];
    let answer = client.ask(EnsembleRequest::Multi(Arc::from(failing)));
    let Ok(EnsembleReply::Results(results)) = answer.reply() else {
        panic!("{answer:?}")
    };
    assert_eq!(results.error(), Some(EnsembleError::NoNode));
    assert_eq!(names(&mut client, root), ["c"]);
}

#[test]
fn watches_tell_of_each_kind_of_change_once() {
    let shared = needs_zookeeper!().shared();
    let mut client = Client::new(&shared.ports());
    let root = shared.root();
    let child: Arc<str> = format!("{root}/child").into();
    client.ask(EnsembleRequest::Exists {
        path: root.into(),
        watch: true,
    });
    client.ask(EnsembleRequest::Create(create(
        root,
        CreateKind::Persistent,
    )));
    assert_eq!(std::mem::take(&mut client.changed), [root]);
    client.ask(EnsembleRequest::GetChildren {
        path: root.into(),
        watch: true,
    });
    client.ask(EnsembleRequest::Create(create(
        &child,
        CreateKind::Ephemeral,
    )));
    assert_eq!(std::mem::take(&mut client.changed), [root]);
    client.ask(EnsembleRequest::GetData {
        path: Arc::clone(&child),
        watch: true,
    });
    client.ask(EnsembleRequest::Delete(Arc::clone(&child)));
    assert_eq!(std::mem::take(&mut client.changed), [&*child]);
    client.ask(EnsembleRequest::Create(create(
        &child,
        CreateKind::Ephemeral,
    )));
    assert_eq!(
        client.changed,
        Vec::<String>::new(),
        "a watch ends with its first event"
    );
}

#[test]
fn credentials_give_rights_that_others_do_not_have() {
    let shared = needs_zookeeper!().shared();
    let root = shared.root();
    let with = |credentials: &'static [u8]| {
        let set = |options: &mut redlatch_zookeeper::session::EnsembleSessionOptions| {
            options.credentials = Some(Secret(credentials.into()));
        };
        Client::with_options(&shared.ports(), set)
    };
    let (mut app, mut thief) = (with(b"app:secret"), with(b"app:guess"));
    let own = creators(root);
    created(&app.ask(EnsembleRequest::Create(own)));
    let child = format!("{root}/child");
    let taken = thief.ask(EnsembleRequest::Create(create(
        &child,
        CreateKind::Ephemeral,
    )));
    assert_eq!(refused(&taken), EnsembleError::NoAuth);
    created(&app.ask(EnsembleRequest::Create(create(
        &child,
        CreateKind::Ephemeral,
    ))));
    // Nobody's credentials: the list of those with rights is empty.
    let nobody = creators("/nobodys");
    let answer = Client::new(&shared.ports()).ask(EnsembleRequest::Create(nobody));
    assert_eq!(refused(&answer), EnsembleError::InvalidAcl);
}

#[test]
fn the_end_of_a_session_ends_its_znodes_at_once() {
    let shared = needs_zookeeper!().shared();
    let mut client = Client::new(&shared.ports());
    let mut other = Client::new(&shared.ports());
    let root = shared.root();
    client.ask(EnsembleRequest::Create(create(
        root,
        CreateKind::Persistent,
    )));
    let path: Arc<str> = format!("{root}/e").into();
    created(&client.ask(EnsembleRequest::Create(create(
        &path,
        CreateKind::Ephemeral,
    ))));
    other.ask(EnsembleRequest::Exists { path, watch: true });
    client.end();
    assert!(client.session.is_down() && client.session.id().is_none());
    drive(&mut [&mut other], "the event", |clients| {
        !clients[0].changed.is_empty()
    });
}

#[test]
fn a_session_that_was_ended_by_another_connection_is_lost() {
    let shared = needs_zookeeper!().shared();
    let mut client = Client::new(&shared.ports());
    let root = shared.root();
    client.ask(EnsembleRequest::Create(create(
        root,
        CreateKind::Persistent,
    )));
    let path: Arc<str> = format!("{root}/e").into();
    client.ask(EnsembleRequest::Create(create(
        &path,
        CreateKind::Ephemeral,
    )));
    client.session.keep(path);
    let before = client.session.id();
    assert!(expire(shared[0].port(), &client));
    drive(&mut [&mut client], "the loss", |clients| {
        clients[0].sessions_lost == 1
    });
    assert_eq!(client.session.problem(), Some(&Problem::SessionGone));
    assert_eq!(names(&mut client, root), Vec::<String>::new());
    assert_ne!(client.session.id(), before);
}
