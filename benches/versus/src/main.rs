//! Compares redlatch with other lock libraries, on redis-server processes that it starts.
//!
//! ```text
//! cargo run --release --manifest-path benches/versus/Cargo.toml [-- options] [scenario...]
//! ```
//!
//! `scenarios` has the measurements as a table, `peers` the libraries, `lane` their order in a run,
//! `worker` the processes of each, `work` the measured loop, and `slice` what its records say.
//! `report` prints tables; `figures` and `chart` are the chart. `servers` has redis-server, and
//! `others` etcd and ZooKeeper; `traffic` counts what they do, and `proxy` moves them away. Results
//! are checked while they are measured: a lock that is not granted, not released or held twice
//! ends the program.
//!
//! The probe among the peers is not a library: it has redlatch's design and nothing of a lock's
//! care. What redlatch spends above it, in time or `instructions/pair`, is what that care costs,
//! and the most that can be saved; `instructions` counts them where the processor can, and
//! `benches/instructions.sh` on any machine.
//!
//! The disk counts: ZooKeeper waits for it with each write. `TMPDIR=/dev/shm` leaves it out.

mod chart;
mod figures;
mod instructions;
mod lane;
mod others;
mod peers;
mod process;
mod proxy;
mod report;
mod resp;
mod scenarios;
mod servers;
mod slice;
mod traffic;
mod work;
mod worker;

use figures::Group;
use scenarios::{ALL, Options, Scenario};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

fn main() -> ExitCode {
    // More than one of the libraries uses rustls: all with the same cryptography.
    let provider = rustls::crypto::ring::default_provider();
    provider
        .install_default()
        .expect("no other was chosen before");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((first, rest)) if first == worker::SUBCOMMAND => worker::serve(rest),
        Some((first, rest)) if first == worker::ACQUIRE => worker::acquire(rest),
        Some((first, [])) if first == "--redraw" => redraw(),
        _ => parse(&arguments)
            .ok_or_else(usage)
            .and_then(|(all, options)| measure(&all, &options)),
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
    let mut text = "usage: redlatch-versus [options] [scenario...]\n       \
                    redlatch-versus --redraw\n\n\
                    --seconds S --turns N    length and number of each lane's parts\n\
                    --clients W --hold-ms H  of handoff and permits; waiting has clients\n\
                    --other-build PROGRAM    another build, compared with each lane of redlatch\n\n\
                    Without arguments, all scenarios run, and the chart is drawn. --redraw draws \
                    it from\nfigures.jsonl, the figures of the last run. Scenarios:\n"
        .to_owned();
    for (name, about, _) in ALL {
        text += &format!("  {name:<12} {about}\n");
    }
    text
}

fn parse(arguments: &[String]) -> Option<(Vec<&'static Scenario>, Options)> {
    let mut options = Options::default();
    let mut scenarios = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => {
                options.slice = Some(Duration::try_from_secs_f64(number(arguments.next())?).ok()?);
            }
            "--turns" => options.turns = Some(number(arguments.next())?),
            "--clients" => options.clients = Some(number(arguments.next())?),
            "--hold-ms" => options.hold = Some(Duration::from_millis(number(arguments.next())?)),
            "--other-build" => options.other_build = Some(PathBuf::from(arguments.next()?)),
            name => scenarios.push(ALL.iter().find(|scenario| scenario.0 == name)?),
        }
    }
    Some((scenarios, options))
}

/// A number above zero.
fn number<T: FromStr + PartialOrd + Default>(text: Option<&String>) -> Option<T> {
    text?.parse().ok().filter(|number| *number > T::default())
}

fn measure(scenarios: &[&Scenario], options: &Options) -> Result<(), String> {
    let draws = scenarios.is_empty() && *options == Options::default();
    let all = ALL
        .iter()
        .filter(|_| scenarios.is_empty())
        .chain(scenarios.iter().copied());
    let mut groups: Vec<Group> = Vec::new();
    for (_, _, stages) in all {
        groups.extend(scenarios::run(stages, options)?);
    }
    if draws {
        let text = figures::to_text(&groups).map_err(|error| error.to_string())?;
        fs::write(folder().join(chart::FIGURES), text).map_err(|error| error.to_string())?;
        redraw()?;
    }
    Ok(())
}

/// Draws the chart from the figures that are there.
fn redraw() -> Result<(), String> {
    chart::redraw(folder()).map_err(|error| error.to_string())
}

/// The folder of this program, where the figures are.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
