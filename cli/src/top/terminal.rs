//! `redlatch top` on a terminal: keys, signals, and the terminal as it was before, however it ends.

use super::screen::{Request, Screen};
use super::search::{self, Ages, Row};
use super::view::{self, Theme};
use crate::exit::{self, Failure};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::{cursor, execute, terminal};
use redlatch::LockClient;
use rustix::process::{Signal, kill_current_process_group};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io::{self, IsTerminal, Stdout};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;
use std::{env, panic, process, thread};

/// How often the locks are looked at.
const PAUSE: Duration = Duration::from_secs(2);

/// How long a key is waited for before signals are looked for.
const TICK: Duration = Duration::from_millis(100);

/// How many ticks the screen stays as it is if nothing comes: times are shown anew then.
const TICKS_OF_SCREEN: u32 = 10;

/// These end the screen.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// How long the main loop has after such a signal. When its terminal is gone, crossterm reads the
/// end of it for good, and does not come back.
const END_LIMIT: Duration = Duration::from_secs(1);

/// What the thread that looks at the locks has seen.
type Seen = Result<Vec<Row>, Failure>;

/// Can the screen be shown, and keys be read?
pub(super) fn is_possible() -> bool {
    let can_move = env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
    // A terminal that nobody has told its size has none.
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let has_size = size.is_ok_and(|size| size.ws_row > 0 && size.ws_col > 0);
    can_move && has_size && io::stdin().is_terminal()
}

/// Shows the locks until a key or a signal ends it.
pub(super) fn show(
    client: LockClient,
    pattern: &[u8],
    limit: Option<usize>,
) -> Result<u8, Failure> {
    let fails = |error| Failure::system("the terminal", &error);
    let pattern = pattern.to_vec();
    let look = move |ages: &mut Ages| {
        let mut rows = search::listed(&client, &pattern)?;
        rows.truncate(limit.unwrap_or(rows.len()));
        ages.fill(&mut rows);
        Ok(rows)
    };
    let (seen, again) = spawn(look).map_err(fails)?;
    let signals = catch_signals().map_err(|error| Failure::system("signals", &error))?;
    let mut session = Session::enter().map_err(fails)?;
    let ended = session.run(&seen, &signals);
    drop(session);
    drop(again);
    ended.map_err(fails)?
}

/// Starts the thread that looks at the locks again and again, until the sender is dropped.
fn spawn(
    mut look: impl FnMut(&mut Ages) -> Seen + Send + 'static,
) -> io::Result<(Receiver<Seen>, mpsc::Sender<()>)> {
    let (sender, seen) = mpsc::channel();
    let (again, pause) = mpsc::channel::<()>();
    let thread = thread::Builder::new().name("look".to_owned());
    thread.spawn(move || {
        let mut ages = Ages::default();
        while sender.send(look(&mut ages)).is_ok() {
            if pause.recv_timeout(PAUSE) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
        }
    })?;
    Ok((seen, again))
}

/// Starts the thread that signals reach.
fn catch_signals() -> io::Result<Receiver<i32>> {
    let (sender, caught) = mpsc::channel();
    let mut signals = Signals::new(ENDING.into_iter().chain([SIGTSTP, SIGCONT]))?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                let is_over = sender.send(signal).is_err();
                if ENDING.contains(&signal) && !is_over {
                    thread::sleep(END_LIMIT);
                    restore();
                    process::exit(i32::from(exit::SIGNAL) + signal);
                }
            }
        })?;
    Ok(caught)
}

/// The terminal while the screen is shown. It is restored when this is dropped, and before the
/// message of a panic.
struct Session {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    theme: Theme,
    /// Is the other screen of the terminal shown?
    is_set_up: bool,
}

impl Session {
    fn enter() -> io::Result<Self> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let has_colours = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let theme = Theme { has_colours };
        let mut session = Self {
            terminal,
            theme,
            is_set_up: false,
        };
        session.set_up()?;
        Ok(session)
    }

    fn set_up(&mut self) -> io::Result<()> {
        terminal::enable_raw_mode()?;
        // To enter it twice would lose where the cursor was before.
        if !self.is_set_up {
            execute!(io::stdout(), terminal::EnterAlternateScreen)?;
            self.is_set_up = true;
        }
        execute!(io::stdout(), cursor::Hide)?;
        self.terminal.clear()
    }

    /// The main loop.
    fn run(
        &mut self,
        seen: &Receiver<Seen>,
        signals: &Receiver<i32>,
    ) -> io::Result<Result<u8, Failure>> {
        let mut screen = Screen::new();
        let mut age = 0;
        loop {
            if age == 0 {
                let theme = self.theme;
                self.terminal
                    .draw(|frame| view::draw(frame, &mut screen, theme))?;
            }
            age = (age + 1) % TICKS_OF_SCREEN;
            if event::poll(TICK)? {
                age = 0;
                let request = match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => screen.press(key),
                    // Another size is seen at the next drawing.
                    _ => Request::Nothing,
                };
                match request {
                    Request::Nothing => {}
                    Request::Quit => return Ok(Ok(exit::SUCCESS)),
                    Request::Interrupt => return Ok(Ok(exit::SIGNAL + number(SIGINT))),
                    // As the terminal would do: it reaches this program as well, below.
                    Request::Suspend => kill_current_process_group(Signal::TSTP)?,
                }
            }
            for signal in signals.try_iter() {
                age = 0;
                match signal {
                    SIGTSTP => {
                        restore();
                        self.is_set_up = false;
                        emulate_default_handler(SIGTSTP)?;
                    }
                    // The shell may have set its own modes meanwhile.
                    SIGCONT => {
                        terminal::disable_raw_mode()?;
                        self.set_up()?;
                    }
                    signal => return Ok(Ok(exit::SIGNAL + number(signal))),
                }
            }
            match seen.try_recv() {
                // It will not become better.
                Ok(Err(failure)) if failure.code == exit::USAGE => return Ok(Err(failure)),
                Ok(seen) => {
                    screen.take(seen.map_err(|failure| failure.text));
                    age = 0;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => {
                    let gone = io::Error::other("the thread that looks at the locks has ended");
                    return Ok(Err(Failure::system("top", &gone)));
                }
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        restore();
    }
}

/// The terminal as it was. What cannot be restored, as when the terminal is gone, stays.
fn restore() {
    let _ = execute!(io::stdout(), terminal::LeaveAlternateScreen, cursor::Show);
    let _ = terminal::disable_raw_mode();
}

fn number(signal: i32) -> u8 {
    u8::try_from(signal).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The process of the test below.
    #[test]
    #[ignore = "it panics, on a terminal of its own"]
    fn panics_on_a_terminal() {
        assert!(is_possible(), "script has given it a terminal");
        let _session = Session::enter().expect("a terminal");
        panic!("so it goes");
    }

    #[test]
    fn a_panic_restores_the_terminal_before_its_message() {
        let program = env::current_exe().expect("this program");
        let name = "top::terminal::tests::panics_on_a_terminal";
        let command = format!(
            "stty cols 80 rows 24; {} --exact {name} --ignored --nocapture; stty -a",
            program.display()
        );
        let mut script = Command::new("script");
        script.args(["--quiet", "--command", &command, "/dev/null"]);
        script.env("TERM", "xterm").env("SHELL", "/bin/sh");
        let text = script.output().expect("script(1) is there").stdout;
        let text = String::from_utf8_lossy(&text);
        let place = |part: &str| {
            text.find(part)
                .unwrap_or_else(|| panic!("no {part:?}: {text}"))
        };
        assert!(place("\x1b[?1049h") < place("\x1b[?1049l"), "{text}");
        assert!(place("\x1b[?1049l") < place("so it goes"), "{text}");
        assert!(place("\x1b[?25h") < place("so it goes"), "{text}");
        let modes = &text[place("so it goes")..];
        assert!(
            modes.contains(" icanon") && !modes.contains("-icanon"),
            "{modes}"
        );
    }
}
