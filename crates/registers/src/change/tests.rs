//! Changes against literal answers of three nodes.

mod lost;
mod numbers;

use super::*;
use crate::{Accepted, InvalidValue, RegisterReply, Version};
use redlatch_protocol::engine::Token;

const OWNER: Token = Token::new([7; Token::LEN]);
const OTHER: Token = Token::new([8; Token::LEN]);

fn group(epoch: u64) -> Group {
    Group {
        id: 1,
        epoch,
        token: 1,
    }
}

fn ballot(number: u64, owner: Token) -> Ballot {
    Ballot::new(number, owner).unwrap()
}

/// The value after changes with these ballots.
fn value(ballots: &[Ballot]) -> Stored {
    let mut value = None;
    for made in ballots {
        let bytes = Arc::from(made.number().to_string().as_bytes());
        value = Some(Stored::changed(
            value.as_ref().ok_or(0),
            (*made, 0),
            bytes,
            0,
        ));
    }
    value.unwrap()
}

fn accepted(value: &Stored, by: Ballot) -> Accepted {
    Accepted {
        ballot: by,
        value: Some(value.clone()),
    }
}

fn promise(accepted: Option<Accepted>) -> Option<RegisterReply> {
    Some(RegisterReply::Promise { accepted, floor: 0 })
}

const DONE: Option<RegisterReply> = Some(RegisterReply::Done);

fn preempted(number: u64) -> Option<RegisterReply> {
    Some(RegisterReply::Preempted {
        least: number,
        accepted: None,
        floor: 0,
    })
}

/// The refusal of a node where another client has finished its change.
fn passed(number: u64) -> Option<RegisterReply> {
    let by = ballot(number - 1, OTHER);
    let accepted = Some(accepted(&value(&[by]), by));
    Some(RegisterReply::Preempted {
        least: number,
        accepted,
        floor: 0,
    })
}

/// A change, as the loop above runs it: it puts `x` behind the value.
struct Talk {
    change: Change,
    version: Option<Version>,
}

impl Talk {
    fn new(proposer: Proposer) -> Self {
        Self {
            change: Change::new(proposer),
            version: None,
        }
    }

    /// The ballot of the prepare that is sent next.
    #[track_caller]
    fn prepares(&mut self) -> u64 {
        match self.change.poll() {
            ChangeStep::Send(RegisterCommand::Prepare(ballot)) => ballot.number(),
            other => panic!("{other:?}"),
        }
    }

    /// Makes the draft, and returns the ballot and the bytes of the accept that is sent then.
    #[track_caller]
    fn proposes(&mut self) -> (Ballot, String) {
        match self.change.poll() {
            ChangeStep::Draft(mut draft) => {
                let before = draft.current().map_or(String::new(), text);
                self.version = Some(draft.put(format!("{before}x").into_bytes().into(), None));
                self.change.propose(draft);
            }
            other => panic!("{other:?}"),
        }
        self.accepts()
    }

    #[track_caller]
    fn accepts(&mut self) -> (Ballot, String) {
        match self.change.poll() {
            ChangeStep::Send(RegisterCommand::Accept {
                ballot,
                next,
                value,
            }) => {
                assert_eq!(Some(next), ballot.next());
                let is_deleted = value.is_empty();
                let text = if is_deleted {
                    String::new()
                } else {
                    text(&Stored::read(&value).unwrap())
                };
                (ballot, text)
            }
            other => panic!("{other:?}"),
        }
    }

    fn hear(&mut self, replies: [Option<RegisterReply>; 3]) {
        self.change.handle(&Replies(replies.into()));
    }

    #[track_caller]
    fn end(&mut self) -> ChangeEnd {
        match self.change.poll() {
            ChangeStep::Done(end) => end,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn is_preempted(&mut self) -> u32 {
        match self.change.poll() {
            ChangeStep::Preempted(times) => {
                self.change.try_again();
                times
            }
            other => panic!("{other:?}"),
        }
    }
}

fn text(value: &Stored) -> String {
    String::from_utf8(value.bytes().to_vec()).unwrap()
}

/// The threads that take part may have begun after the promise: by then there may be a value.
#[test]
fn what_a_promise_has_shown_is_not_told_to_calls_that_began_later() {
    for is_shared in [false, true] {
        let mut talk = Talk::new(Proposer::new(OWNER));
        talk.prepares();
        talk.hear([promise(None), promise(None), None]);
        let ChangeStep::Draft(mut draft) = talk.change.poll() else {
            panic!("a draft")
        };
        let ballot = draft.ballot();
        if is_shared {
            draft.share();
        }
        talk.change.propose(draft);
        if is_shared {
            assert_eq!(talk.accepts(), (ballot, String::new()));
            talk.hear([DONE, DONE, None]);
        }
        assert_eq!(talk.end(), ChangeEnd::Unchanged(ballot));
    }
}

#[test]
fn what_nobody_else_creates_takes_one_round() {
    let create = || Talk {
        change: Change::create(Proposer::new(OWNER)),
        version: None,
    };
    let mut talk = create();
    assert_eq!(talk.proposes(), (ballot(1, OWNER), "x".to_owned()));
    talk.hear([DONE, None, DONE]);
    assert_eq!(talk.end(), ChangeEnd::Committed(ballot(1, OWNER)));
    let mut next = Talk::new(talk.change.into_proposer());
    assert_eq!(next.proposes(), (ballot(2, OWNER), "xx".to_owned()));
    // Somebody has found it on a node and gone on with it.
    let mut talk = create();
    let (first, _) = talk.proposes();
    talk.hear([DONE, preempted(7), preempted(7)]);
    let found = accepted(&value(&[first]), ballot(7, OTHER));
    assert!(talk.prepares() > 7);
    talk.hear([promise(Some(found.clone())), promise(Some(found)), None]);
    assert_eq!(talk.end(), ChangeEnd::Committed(first));
}

#[test]
fn a_first_change_takes_two_rounds_and_the_next_one() {
    let mut talk = Talk::new(Proposer::new(OWNER));
    assert_eq!(talk.prepares(), 1);
    talk.hear([promise(None), promise(None), None]);
    assert_eq!(talk.proposes(), (ballot(1, OWNER), "x".to_owned()));
    talk.hear([DONE, None, DONE]);
    assert_eq!(talk.end(), ChangeEnd::Committed(ballot(1, OWNER)));
    let first = talk.version;
    let mut talk = Talk::new(talk.change.into_proposer());
    assert_eq!(talk.proposes(), (ballot(2, OWNER), "xx".to_owned()));
    talk.hear([DONE, DONE, None]);
    assert_eq!(talk.end(), ChangeEnd::Committed(ballot(2, OWNER)));
    assert!(first < talk.version);
}

#[test]
fn the_value_with_the_highest_ballot_of_a_majority_is_current() {
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    let old = value(&[ballot(1, OTHER)]);
    let new = value(&[ballot(1, OTHER), ballot(4, OTHER)]);
    let old = accepted(&old, ballot(1, OTHER));
    let new = accepted(&new, ballot(4, OTHER));
    talk.hear([promise(Some(old)), promise(Some(new)), promise(None)]);
    assert_eq!(talk.proposes().1, "4x");
}

#[test]
fn a_refused_accept_ends_the_promise_for_the_next_change() {
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([promise(None), promise(None), promise(None)]);
    talk.proposes();
    talk.hear([DONE, preempted(3), preempted(3)]);
    assert_eq!(
        talk.prepares(),
        3 + 256,
        "at once, and far: it may be on a node"
    );
    talk.hear([promise(None), promise(None), None]);
    assert_eq!(talk.proposes(), (ballot(3 + 256, OWNER), "x".to_owned()));
}

#[test]
fn after_a_change_that_failed_the_next_one_prepares() {
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([promise(None), promise(None), promise(None)]);
    talk.proposes();
    talk.hear([DONE, preempted(3), None]);
    // It would look. The caller gives it up.
    let mut talk = Talk::new(talk.change.into_proposer());
    assert_eq!(talk.prepares(), 4);
}

#[test]
fn without_a_majority_the_error_says_whether_a_change_was_sent() {
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([promise(None), None, None]);
    assert_eq!(
        talk.end(),
        ChangeEnd::NoQuorum {
            may_have_happened: false
        }
    );
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([promise(None), promise(None), None]);
    talk.proposes();
    talk.hear([DONE, None, None]);
    talk.prepares();
    talk.hear([None, None, promise(None)]);
    assert_eq!(
        talk.end(),
        ChangeEnd::NoQuorum {
            may_have_happened: true
        }
    );
}

#[test]
fn what_is_not_changed_is_accepted_once_more_unless_there_is_nothing() {
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([promise(None), promise(None), None]);
    let ChangeStep::Draft(draft) = talk.change.poll() else {
        panic!("a draft")
    };
    talk.change.propose(draft);
    assert_eq!(talk.end(), ChangeEnd::Unchanged(ballot(1, OWNER)));

    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    let found = accepted(&value(&[ballot(2, OTHER)]), ballot(3, OTHER));
    talk.hear([promise(Some(found)), promise(None), None]);
    let ChangeStep::Draft(draft) = talk.change.poll() else {
        panic!("a draft")
    };
    talk.change.propose(draft);
    assert_eq!(talk.accepts().1, "2", "a minority may have had it");
    talk.hear([DONE, DONE, None]);
    assert!(matches!(talk.end(), ChangeEnd::Unchanged(_)));
}

#[test]
fn a_promise_of_an_earlier_epoch_is_not_used() {
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([promise(None), promise(None), None]);
    talk.proposes();
    talk.hear([DONE, DONE, None]);
    assert_eq!(talk.end(), ChangeEnd::Committed(ballot(1, OWNER)));
    let mut proposer = talk.change.into_proposer();
    proposer.enter(&group(1));
    let mut talk = Talk::new(proposer);
    assert_eq!(talk.prepares(), (1 << 40) + 1);
    // The epoch ends while it is under way, and what was sent may have been made.
    talk.hear([promise(None), promise(None), None]);
    talk.proposes();
    talk.change.enter(&group(2));
    assert_eq!(talk.prepares(), (2 << 40) + 256);
    talk.hear([promise(None), promise(None), None]);
    assert_eq!(talk.proposes().0.number(), (2 << 40) + 256);
}

#[test]
fn a_value_of_another_format_and_the_end_of_the_numbers_end_the_change() {
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    let invalid = InvalidValue { format: Some(2) };
    talk.hear([promise(None), None, Some(RegisterReply::Invalid(invalid))]);
    assert_eq!(talk.end(), ChangeEnd::Invalid(invalid));
    // The promises of a majority suffice.
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([
        promise(None),
        promise(None),
        Some(RegisterReply::Invalid(invalid)),
    ]);
    talk.proposes();
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    talk.hear([preempted(u64::MAX), preempted(1), None]);
    talk.is_preempted();
    assert_eq!(talk.end(), ChangeEnd::Exhausted);
}

#[test]
fn after_a_deletion_nothing_is_promised_that_the_floor_may_have_reached() {
    let mut talk = Talk::new(Proposer::new(OWNER));
    talk.prepares();
    let found = accepted(&value(&[ballot(2, OTHER)]), ballot(2, OTHER));
    talk.hear([promise(Some(found)), promise(None), None]);
    let ChangeStep::Draft(mut draft) = talk.change.poll() else {
        panic!("a draft")
    };
    draft.delete();
    talk.change.propose(draft);
    assert_eq!(talk.accepts(), (ballot(1, OWNER), String::new()));
    talk.hear([DONE, DONE, DONE]);
    assert_eq!(talk.end(), ChangeEnd::Committed(ballot(1, OWNER)));
    let mut talk = Talk::new(talk.change.into_proposer());
    assert_eq!(talk.prepares(), 3);
}
