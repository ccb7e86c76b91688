//! The waits of one waiter, whose call was cancelled.

use super::*;

#[test]
fn the_waits_of_one_waiter_end_until_it_leaves_and_no_others() {
    let mut nodes = Nodes::ready(false);
    let name = |waiter: u8| Some(Token::new([waiter; Token::LEN]));
    enter(&mut nodes, 1, [RESERVED, false, false]);
    enter(&mut nodes, 2, [false; 3]);
    nodes.wait(1, 1);
    nodes.wait(2, 2);
    nodes.rounds.post(nodes.now, Message::EndWaits(name(1)));
    assert_eq!(granted(&mut nodes), set(&[0]), "that of the first");
    assert!(!nodes.is_over(), "not that of the second");
    // One that begins later ends as well: it may have begun before its thread was told.
    nodes.wait(3, 1);
    assert_eq!(granted(&mut nodes), set(&[0]));
    // Once it has left, or is not known, nothing is remembered.
    let undo = leave(&nodes, 1);
    nodes.rounds.send(nodes.now, undo.clone());
    let before = nodes.rounds.queue_load();
    nodes.rounds.post(nodes.now, Message::EndWaits(name(1)));
    nodes.rounds.post(nodes.now, Message::EndWaits(name(9)));
    assert_eq!(nodes.rounds.queue_load(), before);
    assert!(!nodes.is_over());
}
