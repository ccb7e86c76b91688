//! What a connection asks of the protocol that runs over it: a trait, so that the rounds over Redis
//! nodes and the session with a ZooKeeper ensemble use the same sockets.

use crate::clock::Time;
use crate::engine::Node;
use crate::node::{Host, NodeError, Phase, Rounds};

/// The protocol's side of all connections of a client. It says when a connection is wanted, what to
/// write, and takes what was read. A node is its number in the configuration.
pub(super) trait Conversation {
    /// Is there no connection to this node, and none being made? Then its socket is closed.
    fn is_down(&mut self, node: Node) -> bool;

    /// Is a connection to this node, which has none, to be made now?
    fn wants_connection(&mut self, node: Node, now: Time) -> bool;

    /// A connection is being made, and has come so far.
    fn connecting(&mut self, node: Node, now: Time, phase: Phase);

    /// The step that the connection waits for.
    fn phase(&mut self, node: Node) -> Phase;

    /// The connection is established, and leads to this host, if the operating system says so.
    fn connected(&mut self, node: Node, now: Time, host: Option<Host>);

    /// The scheme of URLs by which a connection is secured.
    fn secure_scheme(&self) -> &'static str;

    /// The bytes to write.
    fn output(&mut self, node: Node) -> &[u8];

    /// The first `count` bytes of the output were written.
    fn wrote(&mut self, node: Node, count: usize);

    /// Takes bytes that were read.
    fn received(&mut self, now: Time, node: Node, bytes: &[u8]);

    /// The connection was lost, or could not be made.
    fn closed(&mut self, now: Time, node: Node, problem: NodeError);
}

impl<W> Conversation for Rounds<W> {
    fn is_down(&mut self, node: Node) -> bool {
        self.session(node).is_down()
    }

    fn wants_connection(&mut self, node: Node, now: Time) -> bool {
        self.session(node).wants_connection(now)
    }

    fn connecting(&mut self, node: Node, now: Time, phase: Phase) {
        self.session(node).connecting(now, phase);
    }

    fn phase(&mut self, node: Node) -> Phase {
        self.session(node).phase()
    }

    fn connected(&mut self, node: Node, now: Time, host: Option<Host>) {
        self.session(node).connected(now);
        self.session(node).leads_to(host);
    }

    fn secure_scheme(&self) -> &'static str {
        "rediss"
    }

    fn output(&mut self, node: Node) -> &[u8] {
        self.session(node).output()
    }

    fn wrote(&mut self, node: Node, count: usize) {
        self.session(node).wrote(count);
    }

    fn received(&mut self, now: Time, node: Node, bytes: &[u8]) {
        self.received(now, node, bytes);
    }

    fn closed(&mut self, now: Time, node: Node, problem: NodeError) {
        self.closed(now, node, problem);
    }
}
