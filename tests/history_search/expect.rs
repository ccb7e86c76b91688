//! What the tests expect of walks, and how they walk.

use crate::client::{Client, Held};
use crate::group::Way;
use crate::scheme::{Mistake, Scheme};
use crate::search::Search;
use crate::world::{Step, Violation, World};
use models::Chance;
use models::explore::{self, Model};
use models::walk::{self, Walker};
use std::fmt;

/// No walk has more steps.
const STEPS_MAX: usize = 600;

/// What happened in a number of walks.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    walks: u64,
    steps: u64,
    grants: u64,
    after_promotion: u64,
    proofs: u64,
    in_proven: u64,
    extensions: u64,
    resumed: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            walks,
            steps,
            grants,
            after_promotion,
            proofs,
            in_proven,
            extensions,
            resumed,
        } = self;
        write!(
            f,
            "{walks} walks, {steps} steps, {grants} grants ({after_promotion} after a "
        )?;
        write!(f, "promotion, {in_proven} in a reign that was proven), ")?;
        write!(
            f,
            "{proofs} proofs, {extensions} extensions, {resumed} resumed"
        )
    }
}

/// How likely each kind of step is in a walk.
struct Pace {
    tick: usize,
    fault: usize,
    /// Of this server all is slow, and of this client.
    slow_server: usize,
    slow_client: usize,
}

impl Pace {
    fn any(scheme: &Scheme, random: &mut Chance) -> Self {
        Self {
            tick: random.pick(&[10, 20, 40]),
            fault: random.pick(&[1, 3, 8]),
            slow_server: random.below(2 * scheme.servers),
            slow_client: random.below(2 * scheme.clients),
        }
    }

    fn weight(&self, step: Step) -> usize {
        let of_server = |server: usize, weight| match server == self.slow_server {
            true => weight / 12,
            false => weight,
        };
        let of_client = |client: usize, weight| match client == self.slow_client {
            true => weight / 12,
            false => weight,
        };
        match step {
            Step::Deliver(server) | Step::Acknowledge(server) | Step::Hear(_, server) => {
                of_server(server, 120)
            }
            Step::Execute(client) | Step::Read(client) => of_client(client, 150),
            Step::Expire(_) => 8,
            Step::Begin(_) => 80,
            Step::Connect(..) | Step::Witness(..) => 60,
            Step::Prove(_) => 200,
            Step::Attach(_, _, Way::Continued) => 60,
            Step::Extend(_) | Step::Resume(_) | Step::Close(_) | Step::Load(_) => 40,
            Step::Attach(..) | Step::Release(_) | Step::GiveAway(_) => 12,
            Step::Demote(server) => of_server(server, 24),
            Step::Tick => self.tick,
            Step::Cut(_) | Step::Save(_) | Step::Late(_) | Step::Forget(_) => 3 * self.fault,
            Step::Promote(_) | Step::ElectAgain(_) => 2 * self.fault,
            Step::Restart(..) | Step::Flush | Step::Evict => self.fault,
        }
    }

    fn choose(&self, steps: &[Step], random: &mut Chance) -> Step {
        let total: usize = steps.iter().map(|step| self.weight(*step)).sum();
        let mut at = random.below(total);
        for step in steps {
            let weight = self.weight(*step);
            if at < weight {
                return *step;
            }
            at -= weight;
        }
        unreachable!("it is below the sum")
    }
}

/// Walks, and what takes their steps.
struct Walks {
    search: Search,
    /// The steps of the last walk.
    trace: Vec<Step>,
}

impl Walks {
    fn new(scheme: Scheme) -> Self {
        Self {
            search: Search::new(scheme),
            trace: Vec::new(),
        }
    }
}

/// What a client holds, and held last, before a step.
struct Before {
    held: Option<Held>,
    last: Option<u8>,
}

impl Before {
    fn of(client: &Client) -> Self {
        Self {
            held: client.held,
            last: client.last,
        }
    }
}

impl Totals {
    fn count(&mut self, before: &[Before], after: &World, promoted: bool) {
        for (before, after) in before.iter().zip(&after.clients) {
            match (before.held, after.held) {
                (None, Some(held)) if before.last == Some(held.token) => self.resumed += 1,
                (None, Some(_)) => {
                    self.grants += 1;
                    self.after_promotion += u64::from(promoted);
                }
                (Some(before), Some(after)) => {
                    self.extensions += u64::from(after.until > before.until);
                }
                _ => {}
            }
        }
    }
}

impl Walker for Walks {
    type Violation = Violation;
    type Totals = Totals;

    fn walk(&mut self, random: &mut Chance, totals: &mut Totals) -> Result<(), Violation> {
        let Self { search, trace } = self;
        trace.clear();
        let pace = Pace::any(&search.scheme, random);
        let mut world = search.first();
        totals.walks += 1;
        let mut taken = Ok(());
        while trace.len() < STEPS_MAX && taken.is_ok() {
            let steps = search.steps(&world);
            if !steps.contains(&Step::Tick) {
                break;
            }
            let step = pace.choose(&steps, random);
            let before: Vec<_> = world.clients.iter().map(Before::of).collect();
            trace.push(step);
            totals.steps += 1;
            taken = search.take(&mut world, &step);
            let promoted = world.left.promotions < search.scheme.faults.promotions;
            totals.count(&before, &world, promoted);
        }
        totals.proofs += u64::from(world.proven);
        totals.in_proven += u64::from(world.granted_in_proven);
        taken
    }

    fn tell(&mut self, what: &Violation) -> String {
        let story = explore::story(&mut self.search, what, &self.trace);
        format!("{:?}\n{story}", self.search.scheme)
    }
}

/// No promise is broken, in so many random walks, unless the environment says how many.
#[track_caller]
pub(crate) fn sound_walks(name: &str, walks: u64, scheme: Scheme) {
    let totals = walk::sound(name, walks, &mut Walks::new(scheme));
    let Totals {
        grants,
        after_promotion,
        in_proven,
        extensions,
        ..
    } = totals;
    let has_seen_all = [grants, after_promotion, in_proven, extensions];
    assert!(has_seen_all.iter().all(|count| *count > 0), "{totals}");
    assert!(
        totals.resumed > 0 || scheme.faults.resumptions == 0,
        "{totals}"
    );
}

/// A promise is broken in random walks from this seed on.
#[track_caller]
pub(crate) fn broken_from(first: u64, mistake: Mistake, scheme: Scheme) -> Violation {
    walk::broken(&mistake, first, &mut Walks::new(scheme.with(mistake)))
}
