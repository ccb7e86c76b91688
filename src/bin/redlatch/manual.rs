//! `redlatch completions` and `redlatch man`, by the generators of clap.

use super::arguments::Arguments;
use super::exit::{self, Failure};
use super::output;
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
pub(crate) fn man(name: Option<&str>) -> Result<u8, Failure> {
    let mut command = Arguments::command();
    command.build();
    let command = match name {
        None => command,
        Some(name) => {
            let found = command.find_subcommand(name);
            let unknown = || Failure::usage(&format!("{}: no such command", name.escape_debug()));
            found.ok_or_else(unknown)?.clone()
        }
    };
    let mut page = Vec::new();
    let rendered: io::Result<()> = Man::new(command).render(&mut page);
    rendered.map_err(|error| Failure::system("the manual", &error))?;
    print(&page)
}

fn print(bytes: &[u8]) -> Result<u8, Failure> {
    output::print(&String::from_utf8_lossy(bytes))?;
    Ok(exit::SUCCESS)
}
