//! The log of `redlatch run` and `redlatch lock` on stderr, with `--verbose` or `--log`: a line for
//! each thing that happens to the lock.

use super::acquire::AcquireArguments;
use super::inspect::{exact, not_a_lock_text};
use super::{duration, output};
use clap::ValueEnum;
use redlatch::event::AttemptOutcome;
use redlatch::{Builder, Event, FencingToken, LockGuard, Name};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

/// How many lines wait for a reader of stderr. More are left out: nothing else may wait for it.
const LINES_MAX: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// An object on each line.
    Json,
}

/// When it is dropped, all lines have been written.
pub(crate) struct Log(Option<Arc<Lines>>);

struct Lines {
    format: LogFormat,
    /// Of the locks, on one line.
    shown: String,
    locks: Vec<OsString>,
    names: Vec<Value>,
    is_waited_for: bool,
    is_lost: AtomicBool,
    sender: SyncSender<Message>,
}

enum Message {
    Line(String),
    /// All lines before it are to be written.
    Flush(Sender<()>),
}

impl Log {
    /// One that writes nothing if the arguments ask for none.
    pub(crate) fn start(arguments: &AcquireArguments) -> Self {
        let Some(format) = arguments
            .log
            .or(arguments.verbose.then_some(LogFormat::Text))
        else {
            return Self(None);
        };
        let (sender, inbox) = sync_channel(LINES_MAX);
        // Without the thread there is no log, and the lock is what counts.
        let _ = thread::Builder::new().spawn(move || write_all(&inbox));
        Self(Some(Arc::new(Lines {
            format,
            shown: arguments.shown(),
            locks: arguments.names().map(OsStr::to_owned).collect(),
            names: arguments
                .names()
                .map(|name| exact(name.as_bytes()))
                .collect(),
            is_waited_for: !arguments.no_wait,
            is_lost: AtomicBool::new(false),
            sender,
        })))
    }

    /// Writes the events of the client that is built.
    pub(crate) fn listen(&self, builder: Builder) -> Builder {
        match self.0.clone() {
            Some(lines) => builder.on_event(move |event| lines.of_event(event)),
            None => builder,
        }
    }

    /// Writes what a client that waits for long is told every so often. `None` if there is no log.
    pub(crate) fn waiting(&self) -> Option<impl Fn(&str, Duration) + Send + 'static> {
        let lines = self.0.clone()?;
        Some(move |state: &str, waited: Duration| {
            let text = format!("waiting for {}: {state}", duration::show(waited));
            lines.write(
                "waiting",
                &text,
                json!({ "waited_seconds": duration::seconds(waited) }),
            );
        })
    }

    /// A file of settings is taken to be missing.
    pub(crate) fn unseen(&self, text: &str) {
        if let Some(lines) = &self.0 {
            lines.write("settings", &format!("not looked for: {text}"), json!({}));
        }
    }

    pub(crate) fn held(&self, guard: &LockGuard, waited: Duration) {
        let Some(lines) = &self.0 else { return };
        let token = guard.fencing_token().map(FencingToken::as_u64);
        let mut text = "held".to_owned();
        if let Some(token) = token {
            text += &format!(", fencing token {token}");
        }
        if let Some(permit) = guard.slot() {
            text += &format!(", permit {permit}");
        }
        text += &format!(", waited {}", duration::show(waited));
        let fields = json!({
            "fencing_token": token,
            "permit": guard.slot(),
            "waited_seconds": duration::seconds(waited),
        });
        lines.write("held", &text, fields);
    }

    /// The lock is given up as lost, if no event has told it yet.
    pub(crate) fn lost(&self, text: &str) {
        if let Some(lines) = &self.0 {
            if !lines.is_lost.swap(true, Ordering::Relaxed) {
                lines.write("lost", text, json!({}));
            }
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let (flushed, end) = channel();
        if let Some(lines) = &self.0 {
            let is_sent = lines.sender.send(Message::Flush(flushed));
            let _ = is_sent.is_ok().then(|| end.recv());
        }
    }
}

impl Lines {
    fn of_event(&self, event: &Event<'_>) {
        // What remembers the runs of `--once-per` has a name of its own.
        let is_other = |name: Name<'_>| self.locks.iter().all(|lock| name != *lock.as_bytes());
        if event.resource().is_some_and(is_other) {
            return;
        }
        let (name, text, fields) = match event {
            Event::Attempt {
                number: 1, outcome, ..
            } if self.is_waited_for => match outcome {
                AttemptOutcome::Granted => return,
                AttemptOutcome::Contended => ("waiting", "waiting: others are first", json!({})),
                _ => ("waiting", "waiting: too few nodes grant it", json!({})),
            },
            // Such as granted: `held` says more.
            Event::Attempt { .. } | Event::Woken { .. } | Event::Acquired { .. } => return,
            Event::Queued { ahead: place, .. } => {
                let text = format!("waiting: place {} in line", place + 1);
                return self.write("waiting", &text, json!({ "place": place + 1 }));
            }
            _ => return self.of_other(event),
        };
        self.write(name, text, fields);
    }

    fn of_other(&self, event: &Event<'_>) {
        let show = duration::show;
        let seconds = |time: &Duration| duration::seconds(*time);
        let (text, fields) = match event {
            Event::Quarantined { left, .. } => {
                let text = format!("waiting: quarantined for another {}", show(*left));
                let fields = json!({ "quarantine_seconds": seconds(left) });
                return self.write("waiting", &text, fields);
            }
            Event::NotALock { reason, .. } => (
                not_a_lock_text(*reason),
                json!({ "error": reason.to_string() }),
            ),
            Event::Extended { validity, .. } => (
                format!("extended, valid for {}", show(*validity)),
                json!({ "validity_seconds": seconds(validity) }),
            ),
            Event::NotExtended {
                validity, error, ..
            } => (
                format!("not extended, valid for {}: {error}", show(*validity)),
                json!({ "validity_seconds": seconds(validity), "error": error.to_string() }),
            ),
            Event::Lost { held, reason, .. } => {
                self.is_lost.store(true, Ordering::Relaxed);
                let text = format!("lost after {}: {reason}", show(*held));
                (
                    text,
                    json!({ "held_seconds": seconds(held), "error": reason.to_string() }),
                )
            }
            Event::Released {
                held, remaining, ..
            } => {
                let mut text = format!("released after {}", show(*held));
                if !remaining.is_zero() {
                    text += &format!(", stays taken for {}", show(*remaining));
                }
                let remaining = seconds(remaining);
                (
                    text,
                    json!({ "held_seconds": seconds(held), "remaining_seconds": remaining }),
                )
            }
            Event::Failed { error, .. } => (
                format!("failed: {error}"),
                json!({ "error": error.to_string() }),
            ),
            event => match event.url() {
                Some(url) => (event.to_string(), json!({ "node": url })),
                None => (event.name().to_owned(), json!({})),
            },
        };
        self.write(event.name(), &text, fields);
    }

    fn write(&self, event: &str, text: &str, mut fields: Value) {
        let time = humantime::format_rfc3339_millis(SystemTime::now());
        let line = match self.format {
            LogFormat::Text => output::visible(&format!("{time} redlatch: {}: {text}", self.shown)),
            LogFormat::Json => {
                fields["time"] = json!(time.to_string());
                fields["event"] = json!(event);
                fields["lock"] = self.names[0].clone();
                fields["message"] = json!(text);
                if self.names.len() > 1 {
                    fields["also"] = json!(self.names[1..]);
                }
                fields.to_string()
            }
        };
        let _ = self.sender.try_send(Message::Line(line + "\n"));
    }
}

fn write_all(inbox: &Receiver<Message>) {
    for message in inbox {
        match message {
            Message::Line(line) => output::write_to_stderr(&line),
            Message::Flush(flushed) => drop(flushed),
        }
    }
}
