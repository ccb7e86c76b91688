//! `redlatch completions` and `redlatch man`, by the generators of clap.

use super::arguments::Arguments;
use super::exit::{self, Failure};
use super::{lock, output, registers, run, token};
use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use std::io;

pub(crate) fn completions(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "redlatch", &mut script);
    print(&script)
}

/// The page of the program, or that of one of its commands.
pub(crate) fn man(names: &[String]) -> Result<u8, Failure> {
    let mut command = Arguments::command();
    // There is no page for `redlatch help`.
    command = command.disable_help_subcommand(true);
    command.build();
    for name in names {
        let found = command.find_subcommand(name);
        let unknown = || Failure::usage(&format!("{}: no such command", name.escape_debug()));
        command = found.ok_or_else(unknown)?.clone();
    }
    let page = page(command).map_err(|error| Failure::system("the manual", &error))?;
    print(&page)
}

/// clap's page, with a synopsis and a table of exit codes as other manual pages have them.
fn page(mut command: clap::Command) -> io::Result<Vec<u8>> {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let has_codes = command.get_after_long_help().is_some();
    let examples = match command.get_name() {
        "run" => Some(run::arguments::EXAMPLES),
        "lock" => Some(lock::EXAMPLES),
        "acquire" => Some(token::EXAMPLES),
        "registers" => Some(registers::arguments::EXAMPLES),
        _ => None,
    };
    let has_subcommands = command.has_subcommands();
    let man = Man::new(command.after_long_help(None));
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    let usage = escaped(usage).replace("\n       ", "\n.br\n");
    page.extend(format!(".SH SYNOPSIS\n{usage}\n").bytes());
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(examples) = examples {
        page.extend(format!(".SH EXAMPLES\n.nf\n{}.fi\n", escaped(examples)).bytes());
    }
    if has_codes {
        page.extend_from_slice(b".SH \"EXIT STATUS\"\n");
        for (code, meaning) in exit::TABLE {
            let (code, meaning) = (escaped(code), escaped(meaning));
            page.extend(format!(".TP\n\\fB{code}\\fR\n{meaning}\n").bytes());
        }
        page.extend(format!(".PP\n{}\n", escaped(exit::OF_THE_COMMAND)).bytes());
    }
    Ok(page)
}

/// Text in which nothing is a request of roff.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    text.replace("\n.", "\n\\&.")
}

fn print(bytes: &[u8]) -> Result<u8, Failure> {
    output::print(&String::from_utf8_lossy(bytes))?;
    Ok(exit::SUCCESS)
}
