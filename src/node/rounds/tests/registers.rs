//! What is reported of the nodes in rounds about registers.

use super::{Nodes, request};
use crate::engine::register::{Ballot, RegisterCommand};
use crate::engine::{Action, Token, Verb};
use crate::node::{NodeAnswer, NodeError, RoundResult};
use std::sync::Arc;

/// What is reported of a node that does this, if both others are lost.
fn report(command: RegisterCommand, reply: &str) -> NodeAnswer {
    let mut nodes = Nodes::ready(false);
    let mut asked = request(Verb::Register, 1, nodes.now);
    let Action::Register(register) = &mut asked.action else { panic!("{asked:?}") };
    register.command = command;
    nodes.rounds.open(nodes.now, asked, 1);
    nodes.receive(0, reply);
    (1..3).for_each(|index| nodes.lose(index));
    let RoundResult::Register { reports, .. } = nodes.result() else { panic!() };
    assert!(matches!(reports[1].answer, NodeAnswer::Failed(NodeError::Disconnected(_))));
    reports[0].answer.clone()
}

#[test]
fn a_node_answers_a_read_and_accepts_a_change_and_grants_neither() {
    let read = RegisterCommand::Read { watcher: None };
    let ballot = Ballot::new(1, Token::new([1; Token::LEN])).unwrap();
    let (next, value) = (ballot.next().unwrap(), Arc::from(&b"value"[..]));
    let accept = RegisterCommand::Accept { ballot, next, value };
    let table = [
        (read, "*2\r\n:1\r\n_\r\n", NodeAnswer::Answered, "answered"),
        (accept, "*1\r\n:1\r\n", NodeAnswer::Accepted, "accepted"),
    ];
    for (command, reply, answer, text) in table {
        let reported = report(command, reply);
        assert_eq!((reported.to_string().as_str(), &reported), (text, &answer));
    }
}
