//! Walks are repeated on nodes that run the scripts of the library: each answer, each message to a
//! waiter and all data must be those of the model.

use crate::air::Air;
use crate::fault::Fault;
use crate::node::Request;
use crate::random::Random;
use crate::scheme::Scheme;
use crate::server::Server;
use crate::story;
use crate::walk::{Totals, follow};
use crate::world::{Step, World};

/// How many commands were compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compared {
    pub(crate) walks: u64,
    pub(crate) commands: u64,
}

/// The steps of the walk of this seed, and its scheme.
pub(crate) fn steps(seed: u64) -> (Scheme, Vec<Step>) {
    let mut random = Random::new(seed);
    let scheme = Scheme::any(&mut random);
    let mut trace = Vec::new();
    // A violation ends the walk, and is found elsewhere.
    let _ = follow(&scheme, &mut random, &mut trace, &mut Totals::default());
    (scheme, trace)
}

/// Repeats a walk. Panics with the walk up to the first difference.
pub(crate) fn replay(scheme: &Scheme, trace: &[Step], compared: &mut Compared) {
    let mut world = World::new(scheme);
    let mut servers: Vec<Server> = (0..scheme.nodes).map(|_| Server::new(scheme)).collect();
    compared.walks += 1;
    for (count, step) in trace.iter().enumerate() {
        let differs = |what: String| -> ! {
            let from = count.saturating_sub(30);
            panic!("{what}\n{}", story::tell_from(scheme, &trace[..=count], from));
        };
        if let Some((node, client, request)) = command(&world, *step) {
            compared.commands += 1;
            let (model, real) = run(&world, scheme, (node, client, request), &mut servers[node]);
            if model != real {
                differs(format!("the model answers {model}\nand the scripts {real}"));
            }
        }
        pass(&world, *step, &mut servers);
        if world.take(*step, scheme).is_err() {
            return;
        }
        for (node, (site, server)) in world.sites.iter().zip(&servers).enumerate() {
            let (model, real) = (site.node.visible(), server.data());
            if model != real {
                differs(format!(
                    "on node {node} the model has {model:?}\nand the scripts {real:?}"
                ));
            }
        }
    }
}

/// The command that a node carries out in this step: node, the client whose connection it is on,
/// and the command.
fn command(world: &World, step: Step) -> Option<(usize, Option<usize>, Request)> {
    let (node, client, request) = match step {
        Step::Carry(node, client) => {
            let link = &world.sites[node].links[client];
            let is_reached = !link.is_cut_off;
            (node, Some(client), link.commands.first().filter(|_| is_reached)?.request)
        }
        Step::Fault(Fault::Late { node, client, index, .. }) => {
            (node, None, world.sites[node].links[client].late[index])
        }
        _ => return None,
    };
    (!world.sites[node].node.is_down).then_some((node, client, request))
}

/// The answers of both to a command, and whom they tell what.
fn run(
    world: &World,
    scheme: &Scheme,
    (node, client, request): (usize, Option<usize>, Request),
    server: &mut Server,
) -> (String, String) {
    let mut air = Air { is_mute: scheme.is_mute(), ..Air::default() };
    for (other, link) in world.sites[node].links.iter().enumerate() {
        let subscribes = client == Some(other) && matches!(request, Request::Queue { .. });
        air.hearing |= u8::from(link.is_heard || subscribes) << other;
    }
    let outcome = world.sites[node].node.clone().run(request, scheme, &mut air);
    let real = server.run(client, request);
    (
        format!("{outcome:?}, telling {:?}", air.told),
        format!("{real:?}, telling {:?}", server.told()),
    )
}

/// What happens to nodes and connections in this step without a command.
fn pass(world: &World, step: Step, servers: &mut [Server]) {
    let Step::Fault(fault) = step else { return };
    match fault {
        Fault::EndReservation(node) => servers[node].pass(world.sites[node].node.is_over()),
        Fault::EndToken(node, token) => servers[node].end_token(token),
        Fault::EndLease(node, place) => {
            servers[node].end_lease(world.sites[node].node.queue[place].id);
        }
        Fault::LoseQueue(node) => servers[node].lose_queue(),
        Fault::Notice(node, client) | Fault::Cut(node, client) => servers[node].connect(client),
        Fault::Restart(node) => {
            servers[node].lose_data();
            (0..world.clients.len()).for_each(|client| servers[node].connect(client));
        }
        _ => {}
    }
}
