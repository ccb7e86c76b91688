//! What is reported of the nodes in rounds of custom commands.

use super::Nodes;
use crate::node::fixture::Probe;
use crate::node::{NodeAnswer, NodeError};

/// What is reported of a node that does this, if both others are lost.
fn report(command: Probe) -> NodeAnswer {
    let mut nodes = Nodes::ready(false);
    nodes.rounds.begin(nodes.now, command.request(nodes.now), 1);
    nodes.receive(0, "*1\r\n:1\r\n");
    (1..3).for_each(|index| nodes.lose(index));
    let reports = nodes.over().reports;
    assert!(matches!(
        reports[1].answer,
        NodeAnswer::Failed(NodeError::Disconnected(_))
    ));
    reports[0].answer.clone()
}

#[test]
fn a_node_answers_a_look_and_accepts_a_change_and_grants_neither() {
    let table = [
        (false, NodeAnswer::Answered, "answered"),
        (true, NodeAnswer::Accepted, "accepted"),
    ];
    for (is_accept, answer, text) in table {
        let reported = report(Probe {
            is_accept,
            ..Probe::default()
        });
        assert_eq!((reported.to_string().as_str(), &reported), (text, &answer));
    }
}
