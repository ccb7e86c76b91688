//! The scenarios, which are one harness and a table: a scenario has stages, each with servers of its
//! own; a stage has plans; and a plan says which lanes are measured beside one another, and how.
//! `table` has them all. What is no loop of acquire and release is a function in a file of its own.

pub mod columns;
mod memory;
mod places;
mod table;
mod tls;
mod values;
mod waiting;
mod writer;

use crate::figures::{Group, Unit};
use crate::lane::{Lane, measure};
use crate::others::Others;
use crate::peers::registers;
use crate::proxy;
use crate::report::Table;
use crate::servers::Servers;
use crate::slice::Slice;
use crate::work::Kind;
use crate::worker::Job;
use columns::Column;
use std::path::PathBuf;
use std::time::Duration;
pub use table::ALL;

/// What the command line says of all scenarios.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub is_quick: bool,
    /// Clients, and how long each holds the lock, where each is a process that always wants one.
    pub clients: Option<usize>,
    pub hold: Option<Duration>,
    /// How long a slice is, and how many each lane has.
    pub slice: Option<Duration>,
    pub turns: Option<usize>,
    /// Words of the names of the lanes that are measured, if not all.
    pub lanes: Vec<String>,
    /// Another build of this program, to be measured beside this one.
    pub other_build: Option<PathBuf>,
}

/// Measurements under a name.
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    stages: &'static [Stage],
}

/// Servers, and what is measured on them.
struct Stage {
    nodes: usize,
    storage: Storage,
    /// How many servers of etcd and ZooKeeper there are beside them, where these are installed.
    others: usize,
    plans: &'static [Plan],
    /// What no plan can say.
    also: &'static [fn(&Context)],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Storage {
    Memory,
    /// The same for servers that become a group, and keep registers.
    GroupInMemory,
    /// A group whose servers write each change to the disk before they answer.
    GroupOnDisk,
}

/// Lanes beside one another.
#[derive(Clone, Copy)]
pub struct Plan {
    title: &'static str,
    about: &'static str,
    pub rows: &'static [Row],
    pub threads: usize,
    pub processes: usize,
    pub kind: Kind,
    /// How long a lock is held.
    pub hold: Duration,
    pub turns: usize,
    pub slice: Duration,
    /// Until all contend: grants before that do not count.
    pub warm_up: Duration,
    /// Whether `--clients` and `--hold-ms` change it.
    is_crowd: bool,
    /// How many servers are frozen (SIGSTOP) while it is measured, after all lanes have connected.
    pub frozen: usize,
    /// What passes before slices count when servers were frozen.
    pub settling: Duration,
    /// Whether the commands of one more slice are counted.
    pub is_watched: bool,
    columns: &'static [Column],
    /// Its part of the chart: groups of bars, of the lanes that have one.
    bars: &'static [Bars],
    /// What must hold at the end.
    check: fn(&Context, &[Lane]),
}

/// The title of a group in the chart, its unit, and what is shown of a lane.
type Bars = (&'static str, Unit, fn(&Lane) -> f64);

/// A lane of a plan.
#[derive(Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    /// The peer's word.
    pub peer: &'static str,
    pub on: On,
    /// The name in the chart, if it is shown; of several lanes with one name, the fastest is.
    pub bar: &'static str,
    /// If it is not the plan's.
    pub kind: Option<Kind>,
}

/// Which servers a lane uses.
#[derive(Clone, Copy, Debug)]
pub enum On {
    Redis,
    RedisTls,
    /// Behind proxies that add this in each direction.
    RedisAway(Duration),
    /// The leader.
    Etcd,
    ZooKeeper,
}

/// The servers of a stage.
pub struct Context {
    pub servers: Servers,
    etcd: Option<Others>,
    zookeeper: Option<Others>,
    storage: Storage,
    pub options: Options,
}

impl Scenario {
    /// Prints its tables, and returns its part of the chart.
    pub fn run(&self, options: &Options) -> Result<Vec<Group>, String> {
        let mut groups = Vec::new();
        for stage in self.stages {
            let context = Context::start(stage, options)?;
            let all = stage.plans.iter().map(|plan| plan.changed_by(options));
            // What the command line says takes the place of all crowds.
            let is_first = |(index, plan): &(usize, Plan)| {
                *index == 0 || !plan.is_crowd || !options.change_crowds()
            };
            for (_, plan) in all.enumerate().filter(is_first) {
                let lanes = measure(&context, &plan);
                if let Some(first) = lanes.first() {
                    (plan.check)(&context, &lanes);
                    plan.table(&lanes, first).print(&plan.title(&context), plan.about);
                    if !options.change_crowds() {
                        groups.extend(plan.groups(&lanes));
                    }
                }
            }
            stage.also.iter().for_each(|measure| measure(&context));
        }
        Ok(groups)
    }
}

impl Options {
    pub fn has_lane(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.lanes.is_empty() || self.lanes.iter().any(|word| name.contains(word))
    }

    fn change_crowds(&self) -> bool {
        self.clients.is_some() || self.hold.is_some()
    }
}

impl Context {
    fn start(stage: &Stage, options: &Options) -> Result<Self, String> {
        let servers = Servers::start(stage.nodes, stage.storage == Storage::GroupOnDisk)?;
        if stage.storage != Storage::Memory {
            registers::form(&servers.urls(), stage.storage == Storage::GroupInMemory);
        }
        let other = |name, start: fn(&std::path::Path, usize) -> Result<Others, String>| {
            if stage.others == 0 {
                return None;
            }
            let started = start(servers.directory(), stage.others);
            started.inspect_err(|why| println!("{name} is not measured: {why}\n")).ok()
        };
        let (etcd, zookeeper) =
            (other("etcd", Others::etcd), other("ZooKeeper", Others::zookeeper));
        Ok(Self { servers, etcd, zookeeper, storage: stage.storage, options: options.clone() })
    }

    /// What starts a client of the servers of Redis in a process of its own.
    fn job(&self, peer: &'static str) -> Job {
        let (urls, authority) = (self.servers.urls(), self.servers.authority());
        Job { peer, clients: 1, urls, authority, build: None }
    }

    /// Where these servers are, if they are there.
    pub fn urls(&self, on: On) -> Option<Vec<String>> {
        let url = |others: &Option<Others>| others.as_ref().map(|others| vec![others.url.clone()]);
        match on {
            On::Redis => Some(self.servers.urls()),
            On::RedisTls => Some(self.servers.secure_urls()),
            On::RedisAway(delay) => {
                let proxies = proxy::start(&self.servers.addresses(), delay);
                let proxies = proxies.expect("proxies can be started");
                Some(proxies.iter().map(|address| format!("redis://{address}")).collect())
            }
            On::Etcd => url(&self.etcd),
            On::ZooKeeper => url(&self.zookeeper),
        }
    }
}

impl Plan {
    fn changed_by(&self, options: &Options) -> Self {
        let mut plan = *self;
        if options.is_quick {
            plan.turns = plan.turns.min(2);
            plan.slice = (plan.slice / 4).max(Duration::from_millis(150));
        }
        plan.turns = options.turns.unwrap_or(plan.turns);
        plan.slice = options.slice.unwrap_or(plan.slice);
        if self.is_crowd {
            plan.processes = options.clients.unwrap_or(plan.processes);
            plan.hold = options.hold.unwrap_or(plan.hold);
        }
        plan
    }

    fn title(&self, context: &Context) -> String {
        let nodes = context.servers.addresses().len();
        let crowd = match self.is_crowd {
            true => format!(", {} clients that hold for {:?}", self.processes, self.hold),
            false => String::new(),
        };
        let storage = match context.storage {
            Storage::Memory => "",
            Storage::GroupInMemory => " in memory",
            Storage::GroupOnDisk => ", each change on disk",
        };
        format!("{}{crowd}, {nodes} nodes{storage}", self.title)
    }

    fn table(&self, lanes: &[Lane], first: &Lane) -> Table {
        let heads: Vec<&str> = self.columns.iter().map(|(head, _)| *head).collect();
        let mut table = Table::new(&[&[""], &heads[..]].concat());
        for lane in lanes {
            let cells = self.columns.iter().map(|(_, cell)| cell(lane, first));
            table.row([lane.name.clone()].into_iter().chain(cells).collect::<Vec<_>>());
        }
        table
    }

    fn groups(&self, lanes: &[Lane]) -> Vec<Group> {
        let mut shown: Vec<&Lane> = Vec::new();
        for lane in lanes.iter().filter(|lane| !lane.bar.is_empty()) {
            match shown.iter_mut().find(|other| other.bar == lane.bar) {
                Some(other) if other.median(Slice::rate) >= lane.median(Slice::rate) => {}
                Some(other) => *other = lane,
                None => shown.push(lane),
            }
        }
        let group = |(title, unit, value): &Bars| {
            let bars = shown.iter().map(|lane| (lane.bar.to_owned(), value(lane))).collect();
            Group { title: (*title).to_owned(), unit: *unit, bars }
        };
        self.bars.iter().map(group).collect()
    }
}
