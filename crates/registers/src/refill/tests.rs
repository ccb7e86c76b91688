//! Refills of one of three nodes against literal answers.

use super::*;
use crate::{Accepted, Ballot, Epoch, MemberAddress};
use redlatch_protocol::engine::Token;

const TARGET: usize = 2;

fn group() -> Group {
    Group {
        id: 1,
        epoch: 2,
        token: 3,
    }
}

fn member(id: u64) -> Member {
    let epoch = Epoch {
        group: group(),
        members: [1, 2, 3].map(|id| MemberAddress::new(id, "")).into(),
    };
    Member {
        epoch,
        run_id: "run".into(),
        id,
        is_durable: true,
    }
}

fn seen(node: usize, mark: &[u8]) -> NodeMark {
    NodeMark {
        node: Node::new(node),
        mark: Some(mark.into()),
        run_id: "run".into(),
    }
}

fn source(node: usize) -> NodeMark {
    seen(node, &member(node as u64 + 1).to_bytes())
}

fn refill() -> Refill {
    let target = seen(TARGET, b"redlatch 1 joining 17 run ");
    Refill::new(target, member(3), vec![source(0), source(1)]).unwrap()
}

fn names(names: &[&str]) -> Option<Vec<Arc<[u8]>>> {
    Some(
        names
            .iter()
            .map(|name| Arc::from(name.as_bytes()))
            .collect(),
    )
}

/// Who is asked, for which register, as which mark, and what.
#[track_caller]
fn asked(refill: &mut Refill) -> (Vec<usize>, String, RegisterCommand) {
    match refill.poll() {
        RefillStep::Ask {
            nodes,
            mark,
            name,
            command,
        } => {
            let nodes: Vec<usize> = nodes.iter().map(Node::index).collect();
            let is_emptied = !matches!(refill.state, State::Wipe(_) | State::JoinAgain);
            let expected: &[u8] = match (nodes == [TARGET], is_emptied) {
                (true, false) => b"redlatch 1 joining 17 ",
                (true, true) => b"redlatch 1 joining 18 ",
                (false, _) => &group().to_bytes(),
            };
            assert_eq!(*mark, *expected);
            (nodes, String::from_utf8(name.to_vec()).unwrap(), command)
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn lists(refill: &mut Refill, node: usize, listed: Option<Vec<Arc<[u8]>>>) {
    match refill.poll() {
        RefillStep::List(list) => assert_eq!(list.index(), node),
        other => panic!("{other:?}"),
    }
    refill.listed(listed);
}

fn hear(refill: &mut Refill, replies: [Option<RegisterReply>; 3]) {
    refill.handle(&Replies(replies.into()));
}

fn done(refill: &mut Refill) {
    hear(refill, [None, None, Some(RegisterReply::Done)]);
}

fn end(refill: &mut Refill) -> RefillEnd {
    match refill.poll() {
        RefillStep::Done(end) => end,
        other => panic!("{other:?}"),
    }
}

fn copy(number: Option<u64>, floor: u64) -> Option<RegisterReply> {
    let ballot = |number| Ballot::new(number, Token::new([7; Token::LEN])).unwrap();
    let accepted = number.map(|number| Accepted {
        ballot: ballot(number),
        value: None,
    });
    Some(RegisterReply::Promise { accepted, floor })
}

/// The mark of a source as it is.
fn as_it_is(node: usize) -> RegisterReply {
    let NodeMark { mark, run_id, .. } = source(node);
    RegisterReply::Mark { mark, run_id }
}

/// The node has joined again, with another number.
fn joins_again(refill: &mut Refill) {
    let seen = Arc::from(&b"redlatch 1 joining 17 run "[..]);
    let join = RegisterCommand::Mark(MarkStep::Join { seen });
    assert_eq!(asked(refill), (vec![TARGET], String::new(), join));
    let mark = Some(Arc::from(&b"redlatch 1 joining 18 run "[..]));
    hear(
        refill,
        [
            None,
            None,
            Some(RegisterReply::Mark {
                mark,
                run_id: "run".into(),
            }),
        ],
    );
}

const NOTHING: RegisterCommand = RegisterCommand::Install {
    state: None,
    floor: 0,
};

/// A refill whose sources have been listed.
fn listed() -> Refill {
    let mut refill = refill();
    lists(&mut refill, TARGET, names(&[]));
    assert_eq!(asked(&mut refill).2, NOTHING);
    done(&mut refill);
    joins_again(&mut refill);
    lists(&mut refill, 0, names(&["a"]));
    asked(&mut refill);
    hear(&mut refill, [Some(as_it_is(0)), None, None]);
    lists(&mut refill, 1, names(&["b", "a"]));
    asked(&mut refill);
    hear(&mut refill, [None, Some(as_it_is(1)), None]);
    refill
}

#[test]
fn what_the_node_had_is_removed_before_the_others_are_listed() {
    let mut refill = refill();
    lists(&mut refill, TARGET, names(&["old"]));
    assert_eq!(
        asked(&mut refill),
        (vec![TARGET], "old".to_owned(), NOTHING)
    );
    done(&mut refill);
    assert_eq!(
        asked(&mut refill),
        (vec![TARGET], String::new(), NOTHING),
        "whatever it lists"
    );
    done(&mut refill);
    joins_again(&mut refill);
    lists(&mut refill, 0, None);
    lists(&mut refill, 1, names(&[]));
    let look = RegisterCommand::Mark(MarkStep::Look);
    assert_eq!(asked(&mut refill), (vec![1], String::new(), look));
    hear(&mut refill, [None, Some(as_it_is(1)), None]);
    assert_eq!(
        end(&mut refill),
        RefillEnd::NoQuorum,
        "one of two was listed"
    );
}

#[test]
fn the_highest_of_a_majority_is_installed_and_the_highest_floor_of_all() {
    let mut refill = listed();
    let state = |command: &RegisterCommand| match command {
        RegisterCommand::Install { state, floor } => {
            (state.as_ref().map(|(ballot, _)| ballot.number()), *floor)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(
        asked(&mut refill),
        (vec![0, 1], "b".to_owned(), RegisterCommand::Copy)
    );
    hear(&mut refill, [copy(Some(4), 9), copy(Some(5), 1), None]);
    let (nodes, name, command) = asked(&mut refill);
    assert_eq!(
        (nodes, &*name, state(&command)),
        (vec![TARGET], "b", (Some(5), 9))
    );
    done(&mut refill);
    assert_eq!(asked(&mut refill).1, "a");
    // Of which nothing was accepted.
    hear(&mut refill, [copy(None, 2), copy(None, 11), None]);
    assert_eq!(
        asked(&mut refill),
        (vec![0, 1], String::new(), RegisterCommand::Copy)
    );
    hear(&mut refill, [copy(None, 0), copy(None, 0), None]);
    assert_eq!(
        state(&asked(&mut refill).2),
        (None, 11),
        "the last one has the floor"
    );
    done(&mut refill);
    let (_, _, command) = asked(&mut refill);
    let RegisterCommand::Mark(MarkStep::Enter { seen, new }) = command else {
        panic!("to enter")
    };
    assert_eq!(
        (&*seen, &new),
        (&b"redlatch 1 joining 18 run "[..], &member(3).to_bytes())
    );
    let mark = RegisterReply::Mark {
        mark: Some(new),
        run_id: "run".into(),
    };
    hear(&mut refill, [None, None, Some(mark)]);
    assert_eq!(end(&mut refill), RefillEnd::Entered);
}

#[test]
fn a_source_that_was_started_again_or_is_in_another_epoch_is_not_counted() {
    let mut refill = refill();
    lists(&mut refill, TARGET, names(&[]));
    asked(&mut refill);
    done(&mut refill);
    joins_again(&mut refill);
    lists(&mut refill, 0, names(&["a"]));
    asked(&mut refill);
    let RegisterReply::Mark { mark, .. } = as_it_is(0) else {
        unreachable!()
    };
    hear(
        &mut refill,
        [
            Some(RegisterReply::Mark {
                mark,
                run_id: "later".into(),
            }),
            None,
            None,
        ],
    );
    lists(&mut refill, 1, names(&["a"]));
    asked(&mut refill);
    hear(&mut refill, [None, Some(as_it_is(1)), None]);
    assert_eq!(end(&mut refill), RefillEnd::NoQuorum);
    // One member alone says nothing of a register.
    let mut refill = listed();
    asked(&mut refill);
    hear(
        &mut refill,
        [copy(Some(1), 0), Some(RegisterReply::NoMember(None)), None],
    );
    assert_eq!(end(&mut refill), RefillEnd::NoQuorum);
}

#[test]
fn a_node_that_does_no_more_what_it_is_asked_ends_the_refill() {
    for reply in [None, Some(RegisterReply::NoMember(None))] {
        let mut refill = refill();
        lists(&mut refill, TARGET, names(&[]));
        asked(&mut refill);
        hear(&mut refill, [None, None, reply.clone()]);
        assert_eq!(end(&mut refill), RefillEnd::Lost);
        let mut refill = listed();
        asked(&mut refill);
        hear(&mut refill, [copy(Some(1), 0), copy(Some(1), 0), None]);
        asked(&mut refill);
        hear(&mut refill, [None, None, reply]);
        assert_eq!(end(&mut refill), RefillEnd::Lost);
    }
    // Whoever joins again has another number, and the same server.
    for (mark, run_id) in [
        ("17 run", "run"),
        ("18 other", "other"),
        ("18 run", "other"),
    ] {
        let mut refill = refill();
        lists(&mut refill, TARGET, names(&[]));
        asked(&mut refill);
        done(&mut refill);
        asked(&mut refill);
        let mark = Some(Arc::from(format!("redlatch 1 joining {mark} ").as_bytes()));
        hear(
            &mut refill,
            [
                None,
                None,
                Some(RegisterReply::Mark {
                    mark,
                    run_id: run_id.into(),
                }),
            ],
        );
        assert_eq!(end(&mut refill), RefillEnd::Lost);
    }
    assert!(
        Refill::new(source(2), member(3), Vec::new()).is_none(),
        "it does not join"
    );
    let invalid = InvalidValue { format: Some(9) };
    let mut refill = listed();
    asked(&mut refill);
    hear(&mut refill, [copy(Some(1), 0), copy(None, 0), None]);
    asked(&mut refill);
    done(&mut refill);
    asked(&mut refill);
    hear(
        &mut refill,
        [Some(RegisterReply::Invalid(invalid)), copy(None, 0), None],
    );
    assert_eq!(end(&mut refill), RefillEnd::Invalid(invalid));
}
