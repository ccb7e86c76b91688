//! What the tests expect, and how they walk.

use crate::scheme::{Mistake, Scheme};
use crate::search::{Search, TwoHolders};
use crate::world::{Step, World};
use models::explore::{Found, Model, Order, explore, shorten};
use models::{Chance, budget, number, seeds};
use std::fmt;

/// No walk has more steps.
const STEPS_MAX: usize = 700;

/// So many transitions are remembered from one walk to the next.
const SEEN_MAX: usize = 300_000;

/// More states than the histories have that are searched as a whole.
const STATES_MAX: u64 = 20_000_000;

/// Many more walks than are needed to find each mistake.
const ENOUGH: u64 = 100_000;

/// What happened in a number of walks.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    walks: u64,
    steps: u64,
    grants: u64,
    after_promotion: u64,
    extensions: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            walks,
            steps,
            grants,
            after_promotion,
            extensions,
        } = self;
        write!(
            f,
            "{walks} walks, {steps} steps, {grants} grants ({after_promotion} after a "
        )?;
        write!(f, "promotion), {extensions} extensions")
    }
}

impl Totals {
    fn count(&mut self, before: &World, after: &World, has_promoted: bool) {
        for (before, after) in before.clients.iter().zip(&after.clients) {
            match (before.held, after.held) {
                (None, Some(_)) => {
                    self.grants += 1;
                    self.after_promotion += u64::from(has_promoted);
                }
                (Some(before), Some(after)) => {
                    self.extensions += u64::from(after.until > before.until);
                }
                _ => {}
            }
        }
    }
}

/// How rare each kind of step is in a walk: it is taken once in so many times that it is chosen.
struct Pace {
    tick: usize,
    fault: usize,
    close: usize,
    demotion: usize,
}

impl Pace {
    fn any(scheme: &Scheme, random: &mut Chance) -> Self {
        Self {
            tick: random.pick(&[3, 6, 12, 24, 48]) / scheme.groups,
            fault: random.pick(&[8, 16, 32]),
            close: random.pick(&[6, 12, 50]),
            demotion: random.pick(&[2, 8, 40]),
        }
    }

    fn rarity(&self, step: Step) -> usize {
        match step {
            Step::Promote(..) | Step::Restart(..) | Step::Flush(_) | Step::Evict(_) => self.fault,
            Step::ElectAgain(..) | Step::Forget(_) => self.fault,
            Step::Close(..) | Step::GiveUp(_) | Step::Release(_) => self.close,
            Step::Demote(..) | Step::Sync(..) | Step::Late(_) => self.demotion,
            Step::Tick => self.tick,
            _ => 1,
        }
    }

    fn choose(&self, steps: &[Step], random: &mut Chance) -> Step {
        let mut step = random.pick(steps);
        for _ in 0..6 {
            if random.one_in(self.rarity(step)) {
                break;
            }
            step = random.pick(steps);
        }
        step
    }
}

/// Takes the walk of this seed, and returns its steps if two clients hold the lock at its end.
fn walk(search: &mut Search, seed: u64, totals: &mut Totals) -> Option<Vec<Step>> {
    if search.node.seen() > SEEN_MAX {
        *search = Search::new(search.scheme);
    }
    let mut random = Chance::new(seed);
    let mut trace = Vec::new();
    let pace = Pace::any(&search.scheme, &mut random);
    let mut world = search.first();
    let promotions = world.left.promotions;
    totals.walks += 1;
    while trace.len() < STEPS_MAX {
        let steps = search.steps(&world);
        if !steps.contains(&Step::Tick) {
            break;
        }
        let step = pace.choose(&steps, &mut random);
        let before = world.clone();
        trace.push(step);
        totals.steps += 1;
        let taken = search.take(&mut world, &step);
        totals.count(&before, &world, world.left.promotions < promotions);
        if taken.is_err() {
            return Some(trace);
        }
    }
    None
}

/// The steps, with what they change.
pub(crate) fn tell(search: &mut Search, trace: &[Step]) -> String {
    let mut world = search.first();
    let mut story = format!("{:?}\n", search.scheme);
    for step in trace {
        let _ = search.take(&mut world, step);
        story += &format!("  {} {step:?}, {} holders\n", world.now, world.holders());
    }
    story
}

fn shrink(search: &mut Search, trace: &[Step]) -> Vec<Step> {
    shorten(search, &TwoHolders, trace, |_, _| false)
}

/// Never do two clients hold the lock, in so many random walks, unless the environment says how
/// many.
#[track_caller]
pub(crate) fn sound_walks(name: &str, walks: u64, scheme: Scheme) {
    let (seeds, fresh) = seeds(budget("REDLATCH_WALKS", walks));
    let mut search = Search::new(scheme);
    let mut totals = Totals::default();
    for seed in seeds {
        if let Some(trace) = walk(&mut search, seed, &mut totals) {
            let trace = shrink(&mut search, &trace);
            panic!(
                "{name}: two holders, seed {seed}\n{}",
                tell(&mut search, &trace)
            );
        }
    }
    eprintln!("{name}, a twentieth from seed {fresh}: {totals}");
    assert!(
        totals.after_promotion > 0 && totals.extensions > 0,
        "{totals}"
    );
}

/// The same in all histories of this size.
#[track_caller]
pub(crate) fn sound(name: &str, scheme: Scheme) {
    let mut search = Search::new(scheme);
    let most = number("REDLATCH_STATES", STATES_MAX) as usize;
    let found = explore(&mut search, most, Order::Breadth);
    eprintln!("{name}: {found}");
    match found {
        Found::Nothing { all, .. } => assert!(all, "{name}: it does not end"),
        Found::Violation { trace, .. } => panic!("{name}\n{}", tell(&mut search, &trace)),
    }
}

/// Two holders are found in all histories of this size.
#[track_caller]
pub(crate) fn broken_by_search(mistake: Mistake, scheme: Scheme) {
    let mut search = Search::new(scheme.with(mistake));
    let found = explore(&mut search, STATES_MAX as usize, Order::Breadth);
    eprintln!("{mistake:?}: {found}");
    assert!(
        matches!(found, Found::Violation { .. }),
        "{mistake:?} is not found"
    );
}

/// Two holders are found by random walks. If the environment says how many, all of them are taken,
/// and those counted in which there are two.
#[track_caller]
pub(crate) fn broken(mistake: Mistake, scheme: Scheme) {
    broken_from(0, mistake, scheme);
}

/// The same with walks from this seed on: those before it took seconds, and found nothing.
#[track_caller]
pub(crate) fn broken_from(first: u64, mistake: Mistake, scheme: Scheme) {
    let mut search = Search::new(scheme.with(mistake));
    let mut totals = Totals::default();
    let counted = number("REDLATCH_WALKS", 0);
    let seeds = if counted == 0 {
        first..first + ENOUGH
    } else {
        0..counted
    };
    let mut found = 0;
    let mut shortest = None::<Vec<Step>>;
    for seed in seeds {
        let Some(trace) = walk(&mut search, seed, &mut totals) else {
            continue;
        };
        found += 1;
        shortest = shortest
            .filter(|it| it.len() <= trace.len())
            .or(Some(trace));
        if counted == 0 {
            break;
        }
    }
    eprintln!("{mistake:?}: {found} of {totals}");
    let trace = shortest.unwrap_or_else(|| panic!("{mistake:?} is not found"));
    if std::env::var_os("REDLATCH_TRACE").is_some() {
        let trace = shrink(&mut search, &trace);
        eprintln!("{} steps: {}", trace.len(), tell(&mut search, &trace));
    }
}
