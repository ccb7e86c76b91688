//! A history in words: each step, with the command or the reply that it concerns.

use crate::scheme::Scheme;
use crate::world::{Step, World};

/// Describes the steps, and the nodes' data after each step that changed it.
pub(crate) fn tell(scheme: &Scheme, trace: &[Step]) -> String {
    tell_from(scheme, trace, 0)
}

/// Describes the steps from this one on.
pub(crate) fn tell_from(scheme: &Scheme, trace: &[Step], from: usize) -> String {
    let mut world = World::new(scheme);
    let mut story = String::new();
    for (count, step) in trace.iter().enumerate() {
        let line = match *step {
            Step::Carry(node, client) => {
                let command = world.sites[node].links[client].commands.first();
                format!(
                    "node {node} carries out {:?}",
                    command.map(|command| command.request)
                )
            }
            Step::Receive(node, client) => {
                let reply = world.sites[node].links[client].replies.first();
                format!("client {client} receives from node {node}: {reply:?}")
            }
            other => format!("{other:?}"),
        };
        if count == from {
            story.clear();
        }
        let before = world.clone();
        let taken = world.take(*step, scheme);
        story += &format!("  {line}\n");
        for (node, (old, new)) in before.sites.iter().zip(&world.sites).enumerate() {
            if old.node != new.node {
                story += &format!("      node {node}: {:?}\n", new.node);
            }
        }
        for (client, (old, new)) in before.clients.iter().zip(&world.clients).enumerate() {
            if old.phase != new.phase {
                story += &format!("      client {client}: {:?}\n", new.phase);
            }
        }
        if let Err(what) = taken {
            story += &format!("  {what:?}\n");
            break;
        }
    }
    story
}
