//! Who asks the nodes.

use crate::client::Client;
use crate::plan::Plan;
use crate::repairer::Repairer;
use crate::server::epoch;
use std::rc::Rc;

/// A client of registers, or one that repairs nodes.
#[derive(Clone, Debug)]
pub(crate) enum Actor {
    Client(Rc<Client>),
    Repairer(Rc<Repairer>),
}

impl Actor {
    /// A client. `knows`: it knows the first epoch.
    pub(crate) fn client(index: usize, plan: &Plan, knows: bool) -> Self {
        let known = knows.then(|| epoch(plan.nodes));
        Self::Client(Rc::new(Client::new(
            index,
            plan.registers,
            plan.nodes,
            known,
        )))
    }

    pub(crate) fn repairer(index: usize, plan: &Plan) -> Self {
        Self::Repairer(Rc::new(Repairer::new(index, plan.nodes)))
    }

    pub(crate) fn as_client(&mut self) -> &mut Client {
        let Self::Client(client) = self else {
            unreachable!("a client")
        };
        Rc::make_mut(client)
    }

    pub(crate) fn as_repairer(&mut self) -> &mut Repairer {
        let Self::Repairer(repairer) = self else {
            unreachable!("a repairer")
        };
        Rc::make_mut(repairer)
    }
}
