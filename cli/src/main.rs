//! The command `redlatch`: runs commands under a lock, shows and releases locks, and reads and
//! changes registers. It uses only the library's public interface. The page `guide::command`
//! describes it.

#[cfg(not(unix))]
compile_error!("the command needs Unix: processes, signals and terminals");

mod acquire;
mod arguments;
mod bench;
mod doctor;
mod duration;
mod ensemble;
mod exit;
mod exporter;
mod groups;
mod inspect;
mod lock;
mod log;
mod manual;
mod names;
mod output;
mod registers;
mod release;
mod run;
mod service;
mod settings;
mod status;
mod table;
mod tls;
mod token;
mod top;
mod transactions;

use arguments::{Arguments, Command};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use exit::Failure;
use groups::Change;
use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = run::exec_if_asked() {
        return ExitCode::from(code);
    }
    CompleteEnv::with_factory(Arguments::command)
        .var(names::VARIABLE)
        .complete();
    let code = parse().and_then(carry_out).unwrap_or_else(|failure| {
        if !failure.text.is_empty() {
            // A URL in the place of the command is not found.
            let is_of_command = failure.code == exit::NOT_FOUND;
            let is_secret = if is_of_command {
                is_url_or_its_rest
            } else {
                is_url
            };
            output::note(&without(is_secret, failure.text));
        }
        failure.code
    });
    ExitCode::from(code)
}

fn carry_out(Arguments { nodes, command }: Arguments) -> Result<u8, Failure> {
    if !command.catches_signals() {
        run::signals::end_first_process()?;
    }
    match command {
        Command::Run(arguments) => run::run(&nodes, arguments),
        Command::Lock(arguments) => lock::lock(&nodes, arguments),
        Command::Acquire(arguments) => token::acquire(&nodes, arguments),
        Command::Extend(arguments) => token::extend(&nodes, &arguments),
        Command::Status(arguments) => status::status(&nodes, &arguments),
        Command::Doctor(arguments) => doctor::doctor(&nodes, &arguments),
        Command::Inspect(arguments) => inspect::inspect(&nodes, &arguments),
        Command::Waiters(arguments) => inspect::waiters(&nodes, &arguments),
        Command::Top(arguments) => top::top(&nodes, &arguments),
        Command::Exporter(arguments) => exporter::exporter(&nodes, &arguments),
        Command::Release(arguments) => release::release(&nodes, &arguments),
        Command::Registers(arguments) => registers::registers(&nodes, &arguments),
        Command::Transactions(arguments) => transactions::transactions(&nodes, &arguments),
        Command::Adopt(arguments) => groups::change(nodes, arguments, Change::Adopt),
        Command::Renew(arguments) => groups::change(nodes, arguments, Change::Renew),
        Command::Bench(arguments) => bench::bench(&nodes, &arguments),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { command } => manual::man(&command),
    }
}

/// Reads the command line. Help and the version are printed, and end the program.
fn parse() -> Result<Arguments, Failure> {
    let error = match Arguments::try_parse() {
        Ok(arguments) => return Ok(arguments),
        Err(error) => error,
    };
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        let text = error.render();
        let is_coloured = output::stdout_has_colours();
        let text = if is_coloured {
            text.ansi().to_string()
        } else {
            text.to_string()
        };
        output::print(&text)?;
        return Err(Failure::silent(exit::SUCCESS));
    }
    let text = without(is_url_or_its_rest, error.render().to_string());
    output::write_to_stderr(&output::visible(&text));
    Err(Failure::silent(exit::USAGE))
}

/// The text without those arguments of the program. A URL in the wrong place may have a password.
fn without(is_secret: fn(&str) -> bool, mut text: String) -> String {
    for argument in env::args_os() {
        let argument = argument.to_string_lossy();
        if is_secret(&argument) {
            text = text.replace(&*argument, "<a URL>");
        }
    }
    text
}

fn is_url(argument: &str) -> bool {
    argument.contains("://") && argument.contains('@')
}

/// Is it a URL, perhaps without its scheme? A lock's name may look like that, but errors of usage
/// are not about names.
fn is_url_or_its_rest(argument: &str) -> bool {
    argument
        .split_once(':')
        .is_some_and(|(_, rest)| rest.contains('@'))
}
