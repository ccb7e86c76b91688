//! `redlatch run` in the foreground of a terminal, which script(1) provides.

use std::io::Write;
use std::process::{Command, Stdio};

use super::program::{
    Left, Running, child_of, end, expect_signals, has_terminal, redlatch, state_of,
};
use rustix::process::{Pid, Signal, kill_process};
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, take};
use support::servers::Servers;
use support::shim::Shim;
use support::waiters::{await_keys, await_queued};

/// Runs the command in a terminal of its own. What is written to its stdin is typed there.
pub(crate) fn in_terminal(servers: &Servers, arguments: &str) -> Running {
    in_terminal_with("", servers, arguments)
}

/// The same with a library that is loaded before the command's.
fn in_terminal_with(library: &str, servers: &Servers, arguments: &str) -> Running {
    let command = format!(
        "exec env LD_PRELOAD={library} {} --no-restart-guard --node-timeout 2s {arguments}",
        env!("CARGO_BIN_EXE_redlatch")
    );
    start_in_terminal(servers, &command)
}

/// The same with the restart guard.
pub(crate) fn in_guarded_terminal(servers: &Servers, arguments: &str) -> Running {
    let redlatch = env!("CARGO_BIN_EXE_redlatch");
    start_in_terminal(
        servers,
        &format!("exec {redlatch} --node-timeout 2s {arguments}"),
    )
}

pub(crate) fn start_in_terminal(servers: &Servers, command: &str) -> Running {
    start_in_terminal_with(&servers.urls().join(","), command)
}

/// The same with nodes at these URLs.
pub(crate) fn start_in_terminal_with(urls: &str, command: &str) -> Running {
    expect_signals();
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", command, "/dev/null"]);
    script
        .env("REDLATCH_NODES", urls)
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm");
    Running::start(script.stdin(Stdio::piped()))
}

pub(crate) fn type_in(running: &mut Running, text: &str) {
    let keyboard = running.0.stdin.as_mut().expect("it is piped");
    keyboard
        .write_all(text.as_bytes())
        .and_then(|()| keyboard.flush())
        .expect("it is read");
}

#[test]
fn a_terminal_gets_a_line_while_it_waits_which_is_cleared() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let held = client
        .request("name")
        .owner("host-7")
        .ttl(LONG)
        .lock()
        .expect("it is free");
    let mut first = in_terminal(&servers, "run name -- echo one");
    await_queued(&servers, "name", 1);
    let mut second = in_terminal(&servers, "run name -- echo two");
    await_queued(&servers, "name", 2);
    for (running, place) in [(&mut first, "first"), (&mut second, "second")] {
        let line = format!("\r\x1b[Kredlatch: {place} in line, held by host-7; waiting for ");
        running.await_text(&line);
        running.await_text("1 s");
    }
    drop(held);
    for (running, text) in [(first, "one"), (second, "two")] {
        let ended = running.end();
        assert_eq!(ended.code, 0);
        assert!(
            ended.stdout.ends_with(&format!("\r\x1b[K{text}\r\n")),
            "{:?}",
            ended.stdout
        );
    }
}

#[test]
fn a_key_that_interrupts_reaches_the_command_once_and_it_decides() {
    let servers = Servers::start(1);
    let script = "trap \"echo INT\" INT; trap \"echo QUIT\" QUIT; trap \"echo TERM\" TERM; \
                  echo ready; while :; do sleep 0.05; done";
    let mut running = in_terminal(&servers, &format!("run name -- sh -c '{script}'"));
    running.await_line("ready\r");
    for (key, text) in [("\x03", "INT\r"), ("\x1c", "QUIT\r"), ("\x03", "INT\r")] {
        type_in(&mut running, key);
        running.await_line(text);
    }
    // What came twice would come before this.
    let redlatch = child_of(Pid::from_child(&running.0));
    kill_process(redlatch, Signal::TERM).expect("it runs");
    running.await_line("TERM\r");
    let command = child_of(redlatch);
    kill_process(command, Signal::KILL).expect("it runs");
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stdout), (128 + 9, ""));
    await_keys(&servers, &[]);
}

#[test]
fn a_key_that_interrupts_ends_what_the_command_has_left_running() {
    let servers = Servers::start(1);
    let script = "sleep 1000 >/dev/null 2>&1 </dev/null & echo $!; exit 3";
    let mut running = in_terminal(&servers, &format!("run name -- sh -c '{script}'"));
    let left = Left::parse(&running.next_line());
    running.await_line(&format!(
        "redlatch: the command has ended; the lock is kept for what it has left running (process \
         {}); ^C ends that, and --close would release the lock\r",
        left.0
    ));
    assert!(!left.has_ended());
    type_in(&mut running, "\x03");
    assert_eq!(running.end().code, 3, "as the command did");
    assert!(eventually(LIMIT, || left.has_ended()));
    await_keys(&servers, &[]);
}

#[test]
fn the_end_of_its_terminal_ends_the_command() {
    let servers = Servers::start(1);
    // The kernel tells only the leader of the session, which redlatch is here, as under ssh -t.
    let mut running = in_terminal(&servers, "run name -- sh -c 'echo $$; exec sleep 60'");
    let child = Left::parse(&running.next_line());
    running.0.kill().expect("it is our child");
    assert!(
        eventually(LIMIT, || child.has_ended()),
        "the command runs on"
    );
    await_keys(&servers, &[]);
}

#[test]
fn a_key_ends_the_waiting() {
    let servers = Servers::start(3);
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    let mut running = in_terminal(&servers, "run name -- echo never");
    await_queued(&servers, "name", 1);
    type_in(&mut running, "\x03");
    let ended = running.end();
    assert_eq!(ended.code, 130, "{:?}", ended.stdout);
    assert!(!ended.stdout.contains("never"));
    await_queued(&servers, "name", 0);
    drop(held);
}

/// A shell with job control, and where to type.
pub(crate) fn shell(servers: &Servers) -> Running {
    let mut running = start_in_terminal(servers, "exec bash --norc --noprofile -i");
    let redlatch = env!("CARGO_BIN_EXE_redlatch");
    let options = "--no-restart-guard --node-timeout 2s";
    type_in(
        &mut running,
        "PS1='> '; stty -echo; bind 'set enable-bracketed-paste off'\n",
    );
    type_in(
        &mut running,
        &format!("run='{redlatch} {options} run'; echo rea''dy\n"),
    );
    running.await_text("ready\r\n");
    running
}

#[test]
fn a_key_stops_both_and_the_shell_continues_them() {
    let servers = Servers::start(1);
    let mut shell = shell(&servers);
    // The key must not come while the shell starts a process: between vfork and exec, the new one
    // is stopped, and the shell, which waits for it, is not.
    type_in(
        &mut shell,
        "$run name -- sh -c 'sleep 1 & echo go; wait; echo done'\n",
    );
    shell.await_text("go\r\n");
    type_in(&mut shell, "\x1a");
    shell.await_text("Stopped");
    type_in(&mut shell, "fg\n");
    shell.await_text("done\r\n");
    type_in(&mut shell, "exit\n");
    assert_eq!(shell.end().code, 0);
    await_keys(&servers, &[]);
}

#[test]
fn the_lock_of_a_command_that_ignores_the_key_that_stops_is_extended() {
    let servers = Servers::start(1);
    let script = "trap \"\" TSTP; echo ready; sleep 8; echo done";
    let arguments = format!("run name --ttl 7s -- sh -c '{script}'");
    // Also if the key comes before redlatch knows that the command runs.
    let shim = Shim::spawn();
    let (_, slowly) = shim.preload();
    for library in ["", &slowly] {
        let mut running = in_terminal_with(library, &servers, &arguments);
        running.await_line("ready\r");
        type_in(&mut running, "\x1a");
        running.await_line("done\r");
        assert_eq!(running.end().code, 0);
    }
}

#[test]
fn a_command_in_the_background_that_reads_the_terminal_stops_until_it_has_it() {
    let servers = Servers::start(1);
    let mut shell = shell(&servers);
    let script = "echo $PPID $$ processes; read x; echo got $x";
    type_in(&mut shell, &format!("$run name -- sh -c '{script}' &\n"));
    let text = shell.await_text("processes\r\n");
    // Before them may be a prompt.
    let numbers = text.split_whitespace().rev().skip(1);
    let [command, redlatch] = &numbers.take(2).map(Left::parse).collect::<Vec<_>>()[..] else {
        panic!("{text:?}");
    };
    assert!(eventually(LIMIT, || state_of(redlatch.0) == Some('T')));
    let shell_knows = || {
        type_in(&mut shell, "jobs; echo the''se\n");
        shell.await_text("these\r\n").contains("Stopped")
    };
    assert!(eventually(LIMIT, shell_knows));
    type_in(&mut shell, "fg\n");
    // What is typed earlier is the shell's.
    assert!(eventually(LIMIT, || has_terminal(command.0)));
    type_in(&mut shell, "hello\n");
    shell.await_text("got hello\r\n");
    type_in(&mut shell, "exit\n");
    assert_eq!(shell.end().code, 0);
    await_keys(&servers, &[]);
}

#[test]
fn the_command_reads_the_terminal() {
    let servers = Servers::start(1);
    let script = "stty -echo; echo ready; read -r line < /dev/tty; echo \"got $line\"";
    let mut running = in_terminal(&servers, &format!("run name -- sh -c '{script}'"));
    running.await_line("ready\r");
    type_in(&mut running, "hello\n");
    running.await_line("got hello\r");
    assert_eq!(running.end().code, 0);
}

#[test]
fn headings_are_bold_on_a_terminal_unless_no_color_is_set() {
    let servers = Servers::start(1);
    let shown = |variable: &str| {
        let redlatch = env!("CARGO_BIN_EXE_redlatch");
        let command = format!("exec env {variable} {redlatch} --node-timeout 2s inspect name");
        start_in_terminal(&servers, &command).end().stdout
    };
    assert!(
        shown("A=1").contains("\r\n\x1b[1mNODE "),
        "{:?}",
        shown("A=1")
    );
    for variable in ["NO_COLOR=1", "TERM=dumb"] {
        let text = shown(variable);
        assert!(
            text.contains("\r\nNODE ") && !text.contains('\x1b'),
            "{text:?}"
        );
    }
    let piped = end(&mut redlatch(&servers, &["inspect", "name"])).stdout;
    assert!(
        piped.contains("\nNODE ") && !piped.contains('\x1b'),
        "{piped:?}"
    );
}

#[test]
fn tables_do_not_break_words_at_80_columns() {
    let servers = Servers::start(3);
    let redlatch = env!("CARGO_BIN_EXE_redlatch");
    for command in ["doctor -v", "status"] {
        let script = format!("stty cols 80; exec {redlatch} --node-timeout 2s {command}");
        let shown = start_in_terminal(&servers, &script).end().stdout;
        let plain = shown.replace("\x1b[1m", "").replace("\x1b[0m", "");
        let wide = plain.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{plain}");
        let text = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("both run on this machine, and fail together: good"),
            "{plain}"
        );
    }
}
