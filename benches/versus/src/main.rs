//! Measures redlatch beside other lock libraries, on redis-server processes of its own.
//!
//! ```text
//! cargo run --release --manifest-path benches/versus/Cargo.toml [-- options] [scenario...]
//! ```
//!
//! `scenarios` has the measurements, `peers` the libraries, `lane` their order in a run, `worker`
//! the process of each, `work` the measured loop, and `figures` and `chart` the chart. Where each
//! client is a process, `contender` is one, `handoffs` what their grants say, `traffic` the count
//! of commands, `ensemble` the servers of ZooKeeper, `services` other ones, and `candidate` a
//! library on one of these. `child` runs this program again, as a worker or a contender. Results
//! are checked while they are measured: a lock that is not granted, not released or held twice
//! ends the program.
//!
//! The disk counts: ZooKeeper waits for it with each write. `TMPDIR=/dev/shm` leaves it out.

mod candidate;
mod chart;
mod child;
mod contender;
mod ensemble;
mod figures;
mod handoffs;
mod histogram;
mod lane;
mod peers;
mod proxy;
mod report;
mod scenarios;
mod servers;
mod services;
mod traffic;
mod work;
mod worker;

use figures::Group;
use report::Findings;
use scenarios::{ALL, Context, Scenario, handoff};
use servers::Servers;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The figures of the chart, beside it.
const FIGURES: &str = "figures.tsv";

/// The options of the command line.
struct Options {
    scenarios: Vec<&'static Scenario>,
    nodes: Vec<usize>,
    is_quick: bool,
    handoff: handoff::Options,
    /// Where to write the chart and its figures.
    chart: Option<PathBuf>,
    /// Draws the chart from the figures of the last run, and measures nothing.
    is_redrawn: bool,
    /// What the scenario `builds` compares this build with.
    other_build: Option<PathBuf>,
}

fn main() -> ExitCode {
    // More than one of the libraries uses rustls: all with the same cryptography.
    let provider = rustls::crypto::ring::default_provider();
    provider.install_default().expect("no other was chosen before");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((first, rest)) if first == worker::SUBCOMMAND => worker::serve(rest),
        Some((first, rest)) if first == contender::SUBCOMMAND => contender::serve(rest),
        _ => parse(&arguments).and_then(|options| measure(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut text =
        "usage: redlatch-versus [--quick] [--nodes 1,3,5] [--chart FOLDER] [scenario...]\n\
                    \x20      redlatch-versus --redraw\n\
                    handoff:   [--clients W] [--hold-ms H] [--pause MS] [--margin-ms X] \
                    [--seconds S]\n\
                    \x20          [--turns N] [--lanes WORD,WORD]\n\
                    waiting:   [--clients W] [--seconds S]\n\
                    readers:   [--seconds S]\n\
                    builds:    --other-build PROGRAM\n\
                    permits:   [--clients W] [--hold-ms H] [--pause MS] [--seconds S]\n\n\
                    Without a scenario, all run, and the chart is drawn (not with --quick). \
                    --redraw draws\nit from figures.tsv, the figures of the last run:\n"
            .to_owned();
    for scenario in ALL {
        text += &format!("  {:<12} {}\n", scenario.name, scenario.about);
    }
    text
}

fn parse(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options {
        scenarios: Vec::new(),
        nodes: vec![5],
        is_quick: false,
        handoff: handoff::Options::default(),
        chart: None,
        is_redrawn: false,
        other_build: None,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => options.is_quick = true,
            "--redraw" => options.is_redrawn = true,
            "--nodes" => options.nodes = parse_nodes(arguments.next()).ok_or_else(usage)?,
            "--clients" => {
                let clients = parse_count(arguments.next()).ok_or_else(usage)?;
                options.handoff.clients = Some(usize::try_from(clients.max(1)).unwrap_or(1));
            }
            "--hold-ms" => options.handoff.hold = Some(parse_millis(arguments.next())?),
            "--pause" => options.handoff.pause = parse_millis(arguments.next())?,
            "--margin-ms" => options.handoff.margin = Some(parse_millis(arguments.next())?),
            "--seconds" => {
                let seconds = parse_count(arguments.next()).ok_or_else(usage)?;
                options.handoff.duration = Some(Duration::from_secs(seconds.max(1)));
            }
            "--turns" => {
                let turns = parse_count(arguments.next()).ok_or_else(usage)?;
                options.handoff.turns = Some(usize::try_from(turns.max(1)).unwrap_or(1));
            }
            "--lanes" => {
                let words = arguments.next().ok_or_else(usage)?.to_lowercase();
                options.handoff.lanes = Some(words.split(',').map(str::to_owned).collect());
            }
            "--other-build" => {
                options.other_build = Some(arguments.next().ok_or_else(usage)?.into());
            }
            "--chart" => options.chart = Some(arguments.next().ok_or_else(usage)?.into()),
            name => {
                let scenario = ALL.iter().find(|scenario| scenario.name == name);
                options.scenarios.push(scenario.ok_or_else(usage)?);
            }
        }
    }
    if options.scenarios.is_empty() {
        options.scenarios = ALL.iter().collect();
        if options.chart.is_none() && !options.is_quick {
            options.chart = Some(folder().join(chart::FOLDER));
        }
    }
    Ok(options)
}

fn parse_nodes(text: Option<&String>) -> Option<Vec<usize>> {
    let nodes = text?.split(',').map(|word| word.parse().ok());
    nodes.collect::<Option<Vec<_>>>().filter(|nodes| nodes.iter().all(|n| (1..=64).contains(n)))
}

fn parse_count(text: Option<&String>) -> Option<u64> {
    text?.parse().ok()
}

fn parse_millis(text: Option<&String>) -> Result<Duration, String> {
    parse_count(text).map(Duration::from_millis).ok_or_else(usage)
}

fn measure(options: &Options) -> Result<(), String> {
    if options.is_redrawn {
        return redraw();
    }
    let mut all: Vec<Findings> = Vec::new();
    for &nodes in &options.nodes {
        let context = Context {
            servers: Servers::start(nodes)?,
            nodes,
            turns: if options.is_quick { 2 } else { 7 },
            slice: Duration::from_millis(if options.is_quick { 150 } else { 400 }),
            is_quick: options.is_quick,
            other_build: options.other_build.clone(),
            handoff: options.handoff.clone(),
        };
        for scenario in &options.scenarios {
            for mut findings in (scenario.run)(&context) {
                // The figures that are wanted are wanted of five nodes.
                findings.figures.retain(|_| nodes == 5);
                println!("{}", findings.to_markdown());
                all.push(findings);
            }
        }
    }
    if let Some(path) = &options.chart {
        let groups: Vec<Group> = all.into_iter().flat_map(|findings| findings.groups).collect();
        // Those of the README's chart lie beside this program.
        let beside = if *path == folder().join(chart::FOLDER) { folder() } else { path };
        let text = figures::to_text(&groups);
        std::fs::write(beside.join(FIGURES), text).map_err(|error| error.to_string())?;
        chart::write(path, &groups).map_err(|error| error.to_string())?;
        println!("The chart is in {}.", path.display());
    }
    Ok(())
}

/// Draws the chart from the figures that are there.
fn redraw() -> Result<(), String> {
    let text =
        std::fs::read_to_string(folder().join(FIGURES)).map_err(|error| error.to_string())?;
    chart::write(&folder().join(chart::FOLDER), &figures::from_text(&text)?)
        .map_err(|error| error.to_string())
}

/// The folder of this program, where the figures are.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
