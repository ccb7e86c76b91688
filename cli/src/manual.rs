//! `redlatch completions` and `redlatch man`, by the generators of clap.

use super::arguments::Arguments;
use super::exit::{self, Failure};
use super::{lock, names, output, registers, run, token};
use clap::CommandFactory;
use clap_complete::Shell;
use clap_complete::env::Shells;
use clap_mangen::Man;
use std::io;

const ENVIRONMENT: [(&str, &str); 9] = [
    (
        "REDLATCH_NODES",
        "The URLs of the nodes, with commas between them; after --node and --config.",
    ),
    (
        "REDLATCH_KEY_PREFIX",
        "The prefix of the locks' keys; after --key-prefix and --config.",
    ),
    (
        "REDLATCH_TLS_CA, REDLATCH_TLS_CERT, REDLATCH_TLS_KEY",
        "The files of --tls-ca, --tls-cert and --tls-key; after these and --config.",
    ),
    (
        "REDLATCH_LOCK, REDLATCH_FENCING_TOKEN, REDLATCH_PERMIT",
        "Of a command under redlatch run: the name of its lock, the token (--fenced), and the \
         number of the permit (--permits). Not of redlatch itself, which refuses to wait for the \
         exclusive lock under which it runs.",
    ),
    (
        "NOTIFY_SOCKET",
        "Where --notify of run and lock tells systemd.",
    ),
    (
        "SSL_CERT_FILE",
        "The certificates that are trusted in place of those of the system.",
    ),
    (
        "XDG_CONFIG_HOME, HOME",
        "Where the user's file is, see FILES.",
    ),
    (
        "NO_COLOR",
        "If it is set and not empty, nothing on a terminal is coloured or bold.",
    ),
    ("TERM", "With dumb, nothing acts on the terminal."),
];

const FILES: [(&str, &str); 2] = [
    (
        "$XDG_CONFIG_HOME/redlatch.conf or ~/.config/redlatch.conf",
        "Nodes and settings in TOML, if neither --node, --config nor REDLATCH_NODES names any: \
         nodes = [\"redis://10.0.0.1\"], and max_ttl, failover_bound, clock_skew, node_timeout, \
         session_timeout, key_prefix, restart_guard and the other settings of the library; \
         tls.ca_files, tls.client_certificate.file and .key, tls.bundled_roots; and lock.ttl, \
         lock.wait and lock.owner. Times are texts such as \"30s\".",
    ),
    (
        "/etc/redlatch.conf",
        "The same for all users, if the user has no such file.",
    ),
];

/// A script that calls this program to complete a word: names are those that the nodes have.
pub(crate) fn completions(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    let name = shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).expect("those of clap");
    let written = shell.write_registration(
        names::VARIABLE,
        "redlatch",
        "redlatch",
        "redlatch",
        &mut script,
    );
    written.map_err(|error| Failure::system("the script", &error))?;
    print(&script)
}

/// The page of the program, or that of one of its commands.
pub(crate) fn man(names: &[String]) -> Result<u8, Failure> {
    let mut command = Arguments::command();
    // There is no page for `redlatch help`.
    command = command.disable_help_subcommand(true);
    command.build();
    for name in names {
        let Some(found) = command.find_subcommand(name) else {
            let text = format!("{}: no such command", name.escape_debug());
            return Err(Failure::usage(&text));
        };
        command = found.clone();
    }
    let page = page(command).map_err(|error| Failure::system("the manual", &error))?;
    print(&page)
}

/// clap's page, with a synopsis and tables as other manual pages have them.
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
        page.extend(section("EXIT STATUS", &exit::TABLE).bytes());
        page.extend(format!(".PP\n{}\n", escaped(exit::OF_THE_COMMAND)).bytes());
        page.extend(section("ENVIRONMENT", &ENVIRONMENT).bytes());
        page.extend(section("FILES", &FILES).bytes());
    }
    Ok(page)
}

/// A section of terms, each with its meaning.
fn section(name: &str, terms: &[(&str, &str)]) -> String {
    let mut section = format!(".SH \"{name}\"\n");
    for (term, meaning) in terms {
        section += &format!(".TP\n\\fB{}\\fR\n{}\n", escaped(term), escaped(meaning));
    }
    section
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
