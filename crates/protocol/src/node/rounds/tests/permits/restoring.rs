//! Nodes that granted another permit, or none, get the one that was won.

use super::*;
use crate::node::fixture::{at, node};

/// The words of each command that was written to this node.
fn written(nodes: &mut Nodes, index: usize) -> Vec<Vec<String>> {
    let output = nodes.rounds.session(node(index)).output().to_vec();
    let count = output.len();
    nodes.rounds.session(node(index)).wrote(count);
    let text = String::from_utf8_lossy(&output).into_owned();
    let words = |command: &str| {
        let words = command
            .split("\r\n")
            .skip(1)
            .filter(|word| !word.starts_with('$'));
        words.map(str::to_owned).collect()
    };
    text.trim_end()
        .trim_start_matches('*')
        .split("\r\n*")
        .map(words)
        .collect()
}

/// Asserts that this node is to restore permit 2 of owner 1, for this long.
fn assert_restored(nodes: &mut Nodes, index: usize, permit: &str, millis: &str) {
    let commands = written(nodes, index);
    assert_restoring(&commands, permit, millis);
    assert_eq!(commands.len(), 1, "{commands:?}");
}

fn assert_restoring(commands: &[Vec<String>], permit: &str, millis: &str) {
    let words = &commands[0];
    let token = "\u{1}".repeat(20);
    let expected = ["key:redlatch:permits", permit, &token, millis, "restore"];
    // Before these words there are the command and its script, and after them a number.
    let found: Vec<&str> = words
        .iter()
        .rev()
        .skip(1)
        .take(5)
        .rev()
        .map(String::as_str)
        .collect();
    assert_eq!(found, expected, "{words:?}");
    let script = crate::node::script::KEEP_SHARED;
    let named = words.join("\r\n");
    assert!(
        named.contains(script.source) || named.contains(script.sha1),
        "{named}"
    );
}

#[test]
fn nodes_that_granted_another_permit_or_none_get_the_right_one() {
    for verb in [Verb::Acquire, Verb::Turn] {
        for answer in [granted(1, 0), ":-1\r\n".to_owned()] {
            let mut nodes = Nodes::ready(false);
            open(&mut nodes, verb, 1);
            write_all(&mut nodes);
            nodes.receive(0, &answer);
            nodes.receive(1, &granted(1, 2));
            assert_eq!(nodes.commands(0), [""; 0], "no permit has won yet");
            nodes.pass(30);
            nodes.receive(2, &granted(1, 2));
            assert_eq!(nodes.over().votes.permit, Some(2));
            let commands = written(&mut nodes, 0);
            assert_restoring(&commands, "2", "970");
            let is_left = verb == Verb::Turn && answer == ":-1\r\n";
            assert_eq!(
                commands.len() - 1,
                usize::from(is_left),
                "{verb:?} {answer}"
            );
            (1..3).for_each(|index| assert_eq!(nodes.commands(index), [""; 0], "{verb:?}"));
        }
    }
}

/// It would be called there, instead of the next waiter, until its lease has ended.
#[test]
fn a_waiter_that_got_its_permit_leaves_the_queues_of_nodes_that_refused_its_turn() {
    let mut nodes = Nodes::ready(false);
    open(&mut nodes, Verb::Turn, 1);
    write_all(&mut nodes);
    nodes.receive(0, &granted(1, 2));
    nodes.receive(1, &granted(1, 2));
    nodes.receive(2, ":-1\r\n");
    nodes.over();
    let commands = written(&mut nodes, 2);
    assert_restoring(&commands, "2", "1000");
    let [_, leave] = &commands[..] else {
        panic!("{commands:?}")
    };
    let script = crate::node::script::RELEASE_SHARED;
    assert_eq!(leave[..2], ["EVAL", script.source]);
    // No share has the name of the waiter.
    let waiter = String::from_utf8_lossy(&[crate::node::fixture::WAITER; 20]).into_owned();
    let permits = PERMITS.to_string();
    assert_eq!(
        leave[7..12],
        ["key:redlatch:permits", &waiter, &permits, &waiter, ""]
    );
}

#[test]
fn a_silent_node_that_answers_with_another_permit_is_corrected_for_the_rest_of_the_ttl() {
    for answer in [granted(1, 0), granted(1, 3), ":-1\r\n".to_owned()] {
        let mut nodes = Nodes::ready(false);
        open(&mut nodes, Verb::Acquire, 1);
        write_all(&mut nodes);
        nodes.receive(1, &granted(1, 2));
        nodes.receive(2, &granted(1, 2));
        nodes.pass(50);
        assert_eq!(nodes.over().votes.permit, Some(2));
        nodes.pass(250);
        nodes.receive(0, &answer);
        assert_restored(&mut nodes, 0, "2", "700");
        assert!(!nodes.is_over());
        // The answer to that has no round, and the entry is free.
        nodes.receive(0, ":2\r\n");
        assert_eq!(nodes.rounds.entries.len(), nodes.rounds.vacant.len());
    }
}

#[test]
fn a_late_answer_with_the_same_permit_and_one_after_the_ttl_are_left_alone() {
    for (millis, answer) in [
        (300, granted(1, 2)),
        (1_000, granted(1, 0)),
        (1_000, granted(1, 2)),
    ] {
        let mut nodes = Nodes::ready(false);
        open(&mut nodes, Verb::Acquire, 1);
        write_all(&mut nodes);
        nodes.receive(1, &granted(1, 2));
        nodes.receive(2, &granted(1, 2));
        nodes.pass(50);
        nodes.over();
        nodes.now = at(millis);
        nodes.receive(0, &answer);
        assert_eq!(nodes.commands(0), [""; 0], "{millis} {answer:?}");
    }
}

#[test]
fn no_permit_is_corrected_after_its_release_or_undo() {
    // A turn that comes too late is withdrawn by the next request about the queue.
    for (verb, is_waited_for) in [
        (Verb::Release, true),
        (Verb::Release, false),
        (Verb::Undo, false),
        (Verb::Queue, true),
    ] {
        let mut nodes = Nodes::ready(false);
        open(&mut nodes, Verb::Acquire, 1);
        write_all(&mut nodes);
        nodes.receive(1, &granted(1, 2));
        nodes.receive(2, &granted(1, 2));
        nodes.pass(50);
        nodes.over();
        let lock = share(
            1,
            Share::Permit {
                of: PERMITS,
                number: Some(2),
            },
        );
        let removal = about(verb, lock, nodes.now);
        if is_waited_for {
            nodes.rounds.begin(nodes.now, removal, 2);
        } else {
            nodes.rounds.send(nodes.now, removal.clone());
        }
        (0..3).for_each(|index| assert!(!nodes.commands(index).is_empty(), "{verb:?}"));
        nodes.receive(0, &granted(1, 0));
        assert_eq!(
            nodes.commands(0),
            [""; 0],
            "{verb:?}: it would stay until its ttl has passed"
        );
    }
}

#[test]
fn a_permit_that_is_given_up_while_it_is_requested_is_not_corrected() {
    let mut nodes = Nodes::ready(false);
    open(&mut nodes, Verb::Acquire, 1);
    let lock = share(
        1,
        Share::Permit {
            of: PERMITS,
            number: None,
        },
    );
    nodes
        .rounds
        .send(nodes.now, about(Verb::Undo, lock, nodes.now));
    write_all(&mut nodes);
    nodes.receive(0, &granted(1, 0));
    nodes.receive(1, &granted(1, 2));
    nodes.receive(2, &granted(1, 2));
    nodes.over();
    (0..3).for_each(|index| assert_eq!(nodes.commands(index), [""; 0]));
}

#[test]
fn a_restored_permit_after_an_extension_is_the_one_that_was_extended() {
    let mut nodes = Nodes::ready(false);
    let held = Share::Permit {
        of: PERMITS,
        number: Some(3),
    };
    open_share(&mut nodes, Verb::Extend, 1, held);
    write_all(&mut nodes);
    nodes.receive(0, ":-1\r\n");
    nodes.receive(1, ":1\r\n");
    nodes.receive(2, ":1\r\n");
    assert_eq!(nodes.over().votes.permit, None, "an extension grants none");
    assert_restored(&mut nodes, 0, "3", "1000");
    // A reader is restored as a reader.
    let mut nodes = Nodes::ready(false);
    open_share(&mut nodes, Verb::Extend, 1, Share::Reader);
    write_all(&mut nodes);
    nodes.receive(1, ":1\r\n");
    nodes.receive(2, ":1\r\n");
    nodes.over();
    nodes.receive(0, ":-1\r\n");
    assert_restored(&mut nodes, 0, "", "1000");
}
