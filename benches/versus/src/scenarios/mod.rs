//! The scenarios, which are one harness and a table: a scenario has stages, each with servers of
//! its own; a stage has plans; and a plan says which lanes are compared, and how. `table` has them
//! all. What is not a loop of acquire and release is a function in a file of its own.

pub mod columns;
mod memory;
mod plans;
mod table;
mod tls;
mod values;
mod waiting;
mod writer;

use crate::figures::{Group, Unit};
use crate::instructions;
use crate::lane::{Lane, measure};
use crate::others::Others;
use crate::peers::client;
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
    /// Clients, and how long each holds the lock, where each is a process that always wants one.
    pub clients: Option<usize>,
    pub hold: Option<Duration>,
    /// How long a slice is, and how many each lane has.
    pub slice: Option<Duration>,
    pub turns: Option<usize>,
    /// Another build of this program, to compare this one with.
    pub other_build: Option<PathBuf>,
}

/// Name, what it measures, and its stages.
pub type Scenario = (&'static str, &'static str, &'static [Stage]);

/// Servers, and what is measured on them.
pub struct Stage {
    nodes: usize,
    /// If they become a group, which keeps registers.
    group: Option<Storage>,
    /// How many servers of etcd and ZooKeeper there are beside them, where these are installed.
    others: usize,
    plans: &'static [Plan],
    /// What no plan can say.
    also: &'static [fn(&Context)],
}

/// Where servers keep what they know.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Storage {
    Memory,
    /// Each change is written to the disk before it is answered.
    Disk,
}

/// Lanes that are compared.
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
    /// Its part of the chart.
    bars: &'static [Bars],
    /// What must hold at the end.
    check: fn(&Context, &[Lane]),
}

/// A group of the chart: its title, its unit, and what is shown of a lane.
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
    /// Behind proxies.
    RedisAway,
    /// The leader, as for ZooKeeper.
    Etcd,
    ZooKeeper,
}

/// What proxies add in each direction.
const DELAY: Duration = Duration::from_micros(500);

/// The servers of a stage.
pub struct Context {
    pub servers: Servers,
    etcd: Option<Others>,
    zookeeper: Option<Others>,
    group: Option<Storage>,
    pub options: Options,
}

/// Prints the tables of a scenario, and returns its part of the chart.
pub fn run(stages: &[Stage], options: &Options) -> Result<Vec<Group>, String> {
    let mut groups = Vec::new();
    let changes_crowds = options.clients.is_some() || options.hold.is_some();
    for stage in stages {
        let context = Context::start(stage, options)?;
        // What the command line says takes the place of all crowds.
        let is_run =
            |(index, plan): &(usize, &Plan)| *index == 0 || !plan.is_crowd || !changes_crowds;
        for (_, plan) in stage.plans.iter().enumerate().filter(is_run) {
            let plan = plan.changed_by(options);
            let lanes = measure(&context, &plan);
            (plan.check)(&context, &lanes);
            plan.table(&lanes).print(&plan.title(&context), plan.about);
            if plan
                .columns
                .iter()
                .any(|(head, _)| *head == columns::INSTRUCTIONS.0)
            {
                instructions::why_none()
                    .into_iter()
                    .for_each(|why| println!("{why}"));
            }
            groups.extend(plan.groups(&lanes));
        }
        stage.also.iter().for_each(|measure| measure(&context));
    }
    Ok(groups)
}

impl On {
    /// The end of a lane's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Redis | Self::RedisAway => "",
            Self::RedisTls => ", TLS",
            Self::Etcd => ", etcd",
            Self::ZooKeeper => ", ZooKeeper",
        }
    }
}

impl Context {
    fn start(stage: &Stage, options: &Options) -> Result<Self, String> {
        let Stage {
            nodes,
            group,
            others,
            ..
        } = *stage;
        let servers = Servers::start(nodes, group == Some(Storage::Disk))?;
        if let Some(storage) = group {
            let formed = client(&servers.urls())
                .registers()
                .form(storage == Storage::Memory);
            formed.expect("the servers become a group");
        }
        let start = |start: fn(&_, _) -> Result<Others, String>, name| {
            let started = (others > 0).then(|| start(servers.directory(), others))?;
            started
                .inspect_err(|why| println!("{name} is not measured: {why}\n"))
                .ok()
        };
        let etcd = start(Others::etcd, "etcd");
        let zookeeper = start(Others::zookeeper, "ZooKeeper");
        Ok(Self {
            servers,
            etcd,
            zookeeper,
            group,
            options: options.clone(),
        })
    }

    /// What starts a client of the servers of Redis in a process of its own.
    fn job(&self, peer: &'static str) -> Job {
        let urls = self.servers.urls();
        let authority = self.servers.authority();
        Job {
            peer,
            clients: 1,
            urls,
            authority,
            build: None,
        }
    }

    /// Where these servers are, if they are there.
    pub fn urls(&self, on: On) -> Option<Vec<String>> {
        match on {
            On::Redis => Some(self.servers.urls()),
            On::RedisTls => Some(self.servers.secure_urls()),
            On::RedisAway => Some(proxy::start(&self.servers.addresses(), DELAY)),
            On::Etcd => self.etcd.as_ref().map(|others| vec![others.url.clone()]),
            On::ZooKeeper => self
                .zookeeper
                .as_ref()
                .map(|others| vec![others.url.clone()]),
        }
    }
}

impl Plan {
    fn changed_by(&self, options: &Options) -> Self {
        let mut plan = *self;
        plan.turns = options.turns.unwrap_or(plan.turns);
        plan.slice = options.slice.unwrap_or(plan.slice);
        if self.is_crowd {
            plan.processes = options.clients.unwrap_or(plan.processes);
            plan.hold = options.hold.unwrap_or(plan.hold);
        }
        plan
    }

    fn title(&self, context: &Context) -> String {
        let Self {
            title,
            processes,
            hold,
            ..
        } = self;
        let crowd = format!(", {processes} clients that hold for {hold:?}");
        let storage = match context.group {
            None => "",
            Some(Storage::Memory) => " in memory",
            Some(Storage::Disk) => ", each change on disk",
        };
        let nodes = context.servers.addresses().len();
        format!(
            "{title}{}, {nodes} nodes{storage}",
            if self.is_crowd { &crowd } else { "" }
        )
    }

    fn table(&self, lanes: &[Lane]) -> Table {
        let heads = self.columns.iter().map(|(head, _)| *head);
        let mut table = Table::new(&[""].into_iter().chain(heads).collect::<Vec<_>>());
        for lane in lanes {
            let cells = self.columns.iter().map(|(_, cell)| cell(lane, &lanes[0]));
            table.row(
                [lane.name.clone()]
                    .into_iter()
                    .chain(cells)
                    .collect::<Vec<_>>(),
            );
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
            let bars = shown
                .iter()
                .map(|lane| (lane.bar.to_owned(), value(lane)))
                .collect();
            Group {
                title: (*title).to_owned(),
                unit: *unit,
                bars,
            }
        };
        self.bars.iter().map(group).collect()
    }
}
