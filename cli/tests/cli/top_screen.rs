//! `redlatch top` on a terminal, which script(1) provides.

use std::process::Command;
use std::time::Instant;

use super::program::{Running, child_of, end, has_ended, redlatch, state_of};
use super::terminal::{in_terminal, shell, start_in_terminal, type_in};
use rustix::process::{Pid, Signal, kill_process};
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, take};
use support::servers::Servers;
use support::waiters::await_queued;

/// With a size, which the terminal of script(1) has none of.
fn script_of(top: &str) -> String {
    let redlatch = env!("CARGO_BIN_EXE_redlatch");
    let options = "--no-restart-guard --node-timeout 2s";
    format!("stty cols 80 rows 24; {redlatch} {options} {top}")
}

/// A terminal, and what it shows.
struct Screen {
    running: Running,
    terminal: vt100::Parser,
    /// All that was written to it.
    written: Vec<u8>,
}

impl Screen {
    /// Of the command, in a shell that then says how the terminal was left.
    fn start(servers: &Servers, top: &str) -> Self {
        let script = format!("{}; echo code $?; stty -a", script_of(top));
        Self::of(start_in_terminal(servers, &script))
    }

    fn of(running: Running) -> Self {
        Self {
            running,
            terminal: vt100::Parser::new(24, 80, 0),
            written: Vec::new(),
        }
    }

    /// The lines that it shows, without blanks at their ends.
    fn text(&self) -> String {
        let text = self.terminal.screen().contents();
        text.lines()
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }

    /// Waits until the command's screen shows this.
    #[track_caller]
    fn await_shown(&mut self, text: &str) {
        self.read_until(text, vt100::Screen::alternate_screen);
    }

    /// Waits until the command has given the terminal back, and it shows this.
    #[track_caller]
    fn await_outside(&mut self, text: &str) {
        self.read_until(text, |screen| {
            !screen.alternate_screen() && !screen.hide_cursor()
        });
    }

    #[track_caller]
    fn read_until(&mut self, text: &str, is_right: fn(&vt100::Screen) -> bool) {
        let start = Instant::now();
        while !(is_right(self.terminal.screen()) && self.text().contains(text)) {
            assert!(
                start.elapsed() < 2 * LIMIT,
                "no {text:?} in:\n{}",
                self.text()
            );
            let terminal = &self.terminal;
            let byte = self.running.next_byte(&|| terminal.screen().contents());
            self.terminal.process(&[byte]);
            self.written.push(byte);
        }
    }

    fn press(&mut self, keys: &str) {
        type_in(&mut self.running, keys);
    }

    /// It ends with this code, and the terminal is as it was.
    #[track_caller]
    fn assert_restored(mut self, code: u8) {
        self.await_outside(&format!("code {code}\n"));
        let after = self.running.end().stdout;
        assert!(
            after.contains(" icanon") && !after.contains("-icanon"),
            "{after:?}"
        );
        assert!(
            after.contains(" echo ") && !after.contains("-echo "),
            "{after:?}"
        );
    }
}

/// The process of the command, which a shell in script(1) has started.
#[track_caller]
fn process(running: &Running) -> Pid {
    child_of(child_of(Pid::from_child(&running.0)))
}

#[test]
fn keys_show_the_waiters_of_a_lock_and_quit() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let held = client
        .request("name")
        .owner("host-7")
        .ttl(LONG)
        .lock()
        .expect("it is free");
    let other = take(&client, "another", LONG);
    let waits = ["run", "name", "--owner", "host-8", "--", "true"];
    let waiter = Running::start(&mut redlatch(&servers, &waits));
    await_queued(&servers, "name", 1);
    let mut screen = Screen::start(&servers, "top");
    screen.await_shown("2 locks, 1 waiting");
    screen.await_shown("held by host-7 ");
    assert!(screen.terminal.screen().hide_cursor());
    screen.press("\r");
    screen.await_shown("1     host-8");
    screen.press("\x1b");
    screen.await_shown("2 locks, 1 waiting");
    screen.press("n");
    screen.await_shown("LOCK↓");
    screen.press("q");
    screen.assert_restored(0);
    drop((held, other));
    assert_eq!(waiter.end().code, 0);
}

#[test]
fn a_key_and_signals_that_end_it_restore_the_terminal() {
    let servers = Servers::start(1);
    let mut screen = Screen::start(&servers, "top");
    screen.await_shown("0 locks, 0 waiting");
    screen.press("\x03");
    screen.assert_restored(128 + 2);
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
        let mut screen = Screen::start(&servers, "top");
        screen.await_shown("0 locks, 0 waiting");
        kill_process(process(&screen.running), signal).expect("it runs");
        let number = u8::try_from(signal.as_raw()).expect("a small number");
        screen.assert_restored(128 + number);
    }
}

#[test]
fn the_end_of_its_terminal_ends_it() {
    let servers = Servers::start(1);
    let mut screen = Screen::start(&servers, "top");
    screen.await_shown("0 locks, 0 waiting");
    let redlatch = process(&screen.running);
    screen.running.0.kill().expect("it is our child");
    assert!(eventually(LIMIT, || has_ended(redlatch)));
}

#[test]
fn a_key_and_signals_that_stop_it_give_the_terminal_back_until_it_is_continued() {
    let servers = Servers::start(1);
    let mut screen = Screen::of(shell(&servers));
    screen.press(&format!("{}\n", script_of("top")));
    screen.await_shown("0 locks, 0 waiting");
    let redlatch = child_of(child_of(Pid::from_child(&screen.running.0)));
    for (number, is_key) in [true, false].into_iter().enumerate() {
        match is_key {
            true => screen.press("\x1a"),
            false => kill_process(redlatch, Signal::TSTP).expect("it runs"),
        }
        screen.await_outside("Stopped");
        assert!(eventually(LIMIT, || state_of(redlatch) == Some('T')));
        screen.press(&format!("clear; echo go''ne {number}\n"));
        screen.await_outside(&format!("gone {number}"));
        screen.press("fg\n");
        screen.await_shown("0 locks, 0 waiting");
    }
    // One that the program does not see come.
    kill_process(redlatch, Signal::STOP).expect("it runs");
    assert!(eventually(LIMIT, || state_of(redlatch) == Some('T')));
    screen.press("fg\n");
    assert!(eventually(LIMIT, || state_of(redlatch) != Some('T')));
    screen.press("n");
    screen.await_shown("LOCK↓");
    screen.press("q");
    screen.await_outside("> ");
    // The shell shows what is typed.
    screen.press("echo co''de $?\n");
    screen.await_outside("code 0");
    screen.press("exit\n");
    assert_eq!(screen.running.end().code, 0);
}

#[test]
fn colours_are_left_out_if_the_user_wants_none() {
    let servers = Servers::start(1);
    let client = all_nodes_client(servers.urls());
    let request = client.request("name").owner("host-7").ttl(LONG).shared();
    let held = request.lock().expect("it is free");
    for (variable, has_colours) in [("NO_COLOR=1", false), ("NO_COLOR=", true)] {
        let script = script_of("top").replace("24; ", &format!("24; {variable} "));
        let mut screen = Screen::of(start_in_terminal(&servers, &script));
        screen.await_shown("shared by host-7");
        let cells = (0..80).filter_map(|column| screen.terminal.screen().cell(2, column));
        let is_coloured = cells
            .clone()
            .any(|cell| cell.fgcolor() != vt100::Color::Default);
        assert_eq!(is_coloured, has_colours, "{variable}");
        assert!(cells.take(4).all(vt100::Cell::inverse), "it is selected");
        let mut heads = (0..2).filter_map(|row| screen.terminal.screen().cell(row, 0));
        assert!(heads.all(|cell| cell.bold() == has_colours), "{variable}");
        screen.press("q");
        assert_eq!(screen.running.end().code, 0);
    }
    drop(held);
}

#[test]
fn a_loss_of_the_majority_is_shown_and_ends_nothing() {
    let mut servers = Servers::start(1);
    let mut screen = Screen::start(&servers, "top");
    screen.await_shown("0 locks, 0 waiting");
    servers[0].kill();
    screen.await_shown("no quorum");
    servers[0].restart();
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    screen.await_shown("1 lock, 0 waiting");
    screen.await_shown("\nq quit");
    screen.press("q");
    screen.assert_restored(0);
    drop(held);
}

#[test]
fn a_pattern_that_cannot_be_used_ends_it() {
    let servers = Servers::start(1);
    let mut screen = Screen::start(&servers, "top \"\"");
    screen.await_outside("redlatch: ");
    screen.assert_restored(2);
}

#[test]
fn a_terminal_that_becomes_smaller_shows_less() {
    let servers = Servers::start(1);
    let held = take(&all_nodes_client(servers.urls()), "name", LONG);
    let mut screen = Screen::of(shell(&servers));
    screen.press(&format!("tty; {}; echo co''de $?\n", script_of("top")));
    screen.await_shown("1 lock, 0 waiting");
    let written = String::from_utf8_lossy(&screen.written).into_owned();
    let terminal = written
        .split_whitespace()
        .find(|word| word.starts_with("/dev/pts/"));
    let terminal = terminal.expect("the terminal's name");
    screen.terminal.set_size(10, 20);
    let mut stty = Command::new("stty");
    let status = stty
        .args(["-F", terminal, "cols", "20", "rows", "10"])
        .status();
    assert!(status.expect("stty(1) is there").success());
    screen.await_shown("q quit  ↑↓ move  ⏎ …");
    screen.await_shown("LOCK        WAITERS\nname        0\n");
    screen.press("q");
    screen.await_outside("code 0");
    screen.press("exit\n");
    assert_eq!(screen.running.end().code, 0);
    drop(held);
}

#[test]
fn it_prints_where_there_is_no_screen_or_none_is_wanted() {
    let servers = Servers::start(1);
    for top in ["top --plain", "top --json", "top | cat", "top < /dev/null"] {
        let ended = start_in_terminal(&servers, &script_of(top)).end();
        assert_eq!(ended.code, 0);
        let text = if top.contains("json") {
            "[]\r\n"
        } else {
            "0 locks, 0 waiting\r\n"
        };
        assert_eq!(ended.stdout, text, "{top}");
    }
    let dumb = script_of("top").replace("24; ", "24; TERM=dumb ");
    assert_eq!(
        start_in_terminal(&servers, &dumb).end().stdout,
        "0 locks, 0 waiting\r\n"
    );
    // A terminal without a size.
    assert_eq!(
        in_terminal(&servers, "top").end().stdout,
        "0 locks, 0 waiting\r\n"
    );
    assert_eq!(
        end(&mut redlatch(&servers, &["top"])).stdout,
        "0 locks, 0 waiting\n"
    );
}
