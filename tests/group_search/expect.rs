//! What the tests expect, and how they walk.

use crate::scheme::{Mistake, Scheme};
use crate::search::{Search, TwoHolders};
use crate::world::{Step, World};
use models::explore::{self, Model, Order};
use models::walk::{self, Walker};
use models::{Chance, number};
use std::fmt;

/// No walk has more steps.
const STEPS_MAX: usize = 700;

/// So many transitions are remembered from one walk to the next.
const SEEN_MAX: usize = 300_000;

/// More states than the histories have that are searched as a whole.
const STATES_MAX: u64 = 20_000_000;

/// What happened in a number of walks.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    walks: u64,
    steps: u64,
    grants: u64,
    after_promotion: u64,
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
            extensions,
            resumed,
        } = self;
        write!(
            f,
            "{walks} walks, {steps} steps, {grants} grants ({after_promotion} after a "
        )?;
        write!(f, "promotion), {extensions} extensions, {resumed} resumed")
    }
}

impl Totals {
    fn count(&mut self, before: &World, after: &World, has_promoted: bool) {
        for (client, after) in before.clients.iter().zip(&after.clients) {
            match (client.held, after.held) {
                (None, Some(held)) if client.last.is_some_and(|it| it.token == held.token) => {
                    self.resumed += 1;
                }
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
            Step::Close(..) | Step::GiveUp(_) | Step::Release(_) | Step::GiveAway(_) => self.close,
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

impl Walker for Walks {
    type Violation = TwoHolders;
    type Totals = Totals;

    fn walk(&mut self, random: &mut Chance, totals: &mut Totals) -> Result<(), TwoHolders> {
        let Self { search, trace } = self;
        if search.node.seen() > SEEN_MAX {
            *search = Search::new(search.scheme);
        }
        trace.clear();
        let pace = Pace::any(&search.scheme, random);
        let mut world = search.first();
        let promotions = world.left.promotions;
        totals.walks += 1;
        while trace.len() < STEPS_MAX {
            let steps = search.steps(&world);
            if !steps.contains(&Step::Tick) {
                break;
            }
            let step = pace.choose(&steps, random);
            let before = world.clone();
            trace.push(step);
            totals.steps += 1;
            let taken = search.take(&mut world, &step);
            totals.count(&before, &world, world.left.promotions < promotions);
            taken?;
        }
        Ok(())
    }

    fn tell(&mut self, what: &TwoHolders) -> String {
        let story = explore::story(&mut self.search, what, &self.trace);
        format!("{:?}\n{story}", self.search.scheme)
    }
}

/// Never do two clients hold the lock, in so many random walks, unless the environment says how
/// many.
#[track_caller]
pub(crate) fn sound_walks(name: &str, walks: u64, scheme: Scheme) {
    let totals = walk::sound(name, walks, &mut Walks::new(scheme));
    let has_resumed = totals.resumed > 0 || scheme.faults.resumptions == 0;
    assert!(
        totals.after_promotion > 0 && totals.extensions > 0 && has_resumed,
        "{totals}"
    );
}

/// The same in all histories of this size.
#[track_caller]
pub(crate) fn sound(name: &str, scheme: Scheme) {
    let most = number("REDLATCH_STATES", STATES_MAX) as usize;
    explore::all_sound(name, &mut Search::new(scheme), most);
}

/// Two holders are found in all histories of this size.
#[track_caller]
pub(crate) fn broken_by_search(mistake: Mistake, scheme: Scheme) {
    let mut search = Search::new(scheme.with(mistake));
    let rule = format!("{mistake:?}");
    explore::broken(&rule, &mut search, STATES_MAX as usize, Order::Breadth);
}

/// Two holders are found by random walks.
#[track_caller]
pub(crate) fn broken(mistake: Mistake, scheme: Scheme) {
    broken_from(0, mistake, scheme);
}

/// The same with walks from this seed on.
#[track_caller]
pub(crate) fn broken_from(first: u64, mistake: Mistake, scheme: Scheme) {
    walk::broken(&mistake, first, &mut Walks::new(scheme.with(mistake)));
}
