//! Random walks through histories that are too large for a search.

use crate::client::{Client, Phase};
use crate::fair;
use crate::kind::Kind;
use crate::scheme::Scheme;
use crate::violation::Violation;
use crate::world::{Step, World};
use models::Chance;
use models::explore;
use models::walk::Walker;
use std::collections::BTreeMap;
use std::fmt;

/// What happened in a number of walks.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) walks: u64,
    pub(crate) steps: u64,
    pub(crate) grants: u64,
    /// Grants to a client that began when another one had joined and waits still.
    pub(crate) overtaking: u64,
    pub(crate) faults: BTreeMap<Kind, u64>,
    /// How many states were followed to their end on a fair schedule.
    pub(crate) ends: u64,
    /// The most times that time had to pass on the way to an end.
    pub(crate) periods_max: u32,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            walks,
            steps,
            grants,
            overtaking,
            faults,
            ends,
            periods_max,
        } = self;
        writeln!(
            f,
            "{walks} walks, {steps} steps, {grants} grants, {overtaking} overtaking"
        )?;
        writeln!(f, "{ends} fair ends, after at most {periods_max} periods")?;
        write!(f, "faults: {faults:?}")
    }
}

/// Walks, each through histories of the scheme that is drawn for it.
pub(crate) struct Walks<D> {
    draw: D,
    /// The scheme and the steps of the last walk.
    last: Option<(Scheme, Vec<Step>)>,
}

impl<D: Fn(&mut Chance) -> Scheme> Walks<D> {
    pub(crate) fn new(draw: D) -> Self {
        Self { draw, last: None }
    }
}

impl<D: Fn(&mut Chance) -> Scheme> Walker for Walks<D> {
    type Violation = Violation;
    type Totals = Totals;

    fn walk(&mut self, random: &mut Chance, totals: &mut Totals) -> Result<(), Violation> {
        let scheme = (self.draw)(random);
        let mut trace = Vec::new();
        totals.walks += 1;
        let walked = follow(&scheme, random, &mut trace, totals);
        self.last = Some((scheme, trace));
        walked
    }

    fn tell(&mut self, what: &Violation) -> String {
        let (scheme, trace) = self.last.as_mut().expect("a walk");
        format!("{scheme:?}\n{}", explore::story(scheme, what, trace))
    }
}

/// Follows a walk, and notes its steps.
fn follow(
    scheme: &Scheme,
    random: &mut Chance,
    trace: &mut Vec<Step>,
    totals: &mut Totals,
) -> Result<(), Violation> {
    let mut world = World::new(scheme);
    let calm = 3 + random.below(30);
    let length = 20 + random.below(60 * scheme.clients);
    for _ in 0..length {
        let Some(step) = choose(&world, scheme, calm, random) else {
            break;
        };
        trace.push(step);
        totals.steps += 1;
        if let Step::Fault(fault) = step {
            *totals.faults.entry(fault.kind()).or_default() += 1;
        }
        let held: Vec<bool> = world.clients.iter().map(is_holder).collect();
        world.take(step, scheme)?;
        for (client, held) in world.clients.iter().zip(held) {
            if !held && is_holder(client) {
                totals.grants += 1;
                totals.overtaking += u64::from(client.before != 0);
            }
        }
        if random.one_in(100) {
            let length = trace.len();
            end(&world, scheme, random, trace, totals)?;
            trace.truncate(length);
        }
    }
    end(&world, scheme, random, trace, totals)
}

fn is_holder(client: &Client) -> bool {
    client.phase == Phase::Holding
}

fn end(
    world: &World,
    scheme: &Scheme,
    random: &mut Chance,
    trace: &mut Vec<Step>,
    totals: &mut Totals,
) -> Result<(), Violation> {
    let periods = fair::run(world.clone(), scheme, random, trace)?;
    totals.ends += 1;
    totals.periods_max = totals.periods_max.max(periods);
    Ok(())
}

/// Mostly a message; sometimes a look or a fault, whose kind is chosen before the fault is.
fn choose(world: &World, scheme: &Scheme, calm: usize, random: &mut Chance) -> Option<Step> {
    let mut steps = Vec::new();
    if random.one_in(calm) {
        world.faults(scheme, &mut steps);
        let mut kinds: Vec<Kind> = steps.iter().map(|step| kind(*step)).collect();
        kinds.dedup();
        if !kinds.is_empty() {
            let chosen = random.pick(&kinds);
            steps.retain(|step| kind(*step) == chosen);
            return Some(random.pick(&steps));
        }
    }
    if random.one_in(20) {
        world.looks(scheme, &mut steps);
    }
    if steps.is_empty() {
        world.steps(&mut steps);
    }
    if steps.is_empty() {
        world.looks(scheme, &mut steps);
    }
    match steps.is_empty() {
        true => None,
        false => Some(random.pick(&steps)),
    }
}

fn kind(step: Step) -> Kind {
    match step {
        Step::Fault(fault) => fault.kind(),
        _ => unreachable!("only faults are listed"),
    }
}
