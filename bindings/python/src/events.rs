//! Events as records of `logging`.

use crate::calls::{COMES_BACK, Running, attached, is_over, stay};
use crate::classes::classes;
use pyo3::prelude::*;
use redlatch::event::{Event, Level};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

/// Are records of calls wanted, those of level `DEBUG`? Asked with the GIL, at the begin of calls
/// that take locks; read by threads that have not got it and need not get it.
static ARE_CALLS_LOGGED: AtomicBool = AtomicBool::new(false);

pub(crate) fn log_calls(are_logged: bool) {
    ARE_CALLS_LOGGED.store(are_logged, Ordering::Relaxed);
}

thread_local! {
    /// Events of failed calls of this thread are no news: another call goes on.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// As long as this lives, a call of this thread that fails is not logged.
pub(crate) struct Quiet(());

pub(crate) fn without_failures() -> Quiet {
    IS_QUIET.set(true);
    Quiet(())
}

impl Drop for Quiet {
    fn drop(&mut self) {
        IS_QUIET.set(false);
    }
}

/// How many records of a client may wait to be logged. More are dropped.
const RECORDS_MAX: usize = 1000;

struct Record {
    level: u8,
    event: &'static str,
    text: String,
    /// The interpreter waits for it when it ends.
    running: Running,
}

/// The listener of a client, which logs events to the logger `redlatch` in a thread of Python's,
/// from the first one on. Not in the thread that the event is of: a handler may switch greenlets,
/// which no call of the library on the same stack would survive, or wait for what the call holds.
pub(crate) fn listener() -> impl Fn(&Event<'_>) + Send + Sync {
    let records = OnceLock::new();
    move |event| {
        // This event is of the thread whose call it is.
        if matches!(event, Event::Failed { .. }) && IS_QUIET.get() {
            return;
        }
        let level = match event.level() {
            Level::Warn => 30,
            Level::Info => 20,
            _ if ARE_CALLS_LOGGED.load(Ordering::Relaxed) => 10,
            _ => return,
        };
        let record = Record {
            level,
            event: event.name(),
            text: event.to_string(),
            running: Running::new(),
        };
        let _ = records.get_or_init(start).try_send(record);
    }
}

fn start() -> SyncSender<Record> {
    let (sender, records) = sync_channel(RECORDS_MAX);
    let records = Records {
        records: Mutex::new(records),
        logged: Mutex::default(),
    };
    // Not where this is called, amid a call that has not got the GIL. Without a thread, nothing is
    // logged, and all else goes on. The thread of Python's inherits the name.
    let _ = thread::Builder::new()
        .name("redlatch-log".to_owned())
        .spawn(|| {
            attached(|py| classes(py)?.start_log.call1(py, (records,)).map(drop));
        });
    sender
}

/// The records of a client, for the thread that logs them.
#[pyclass(frozen, module = "redlatch._native")]
pub(crate) struct Records {
    records: Mutex<Receiver<Record>>,
    /// The end of the interpreter waits for the record that is logged now.
    logged: Mutex<Option<Running>>,
}

#[pymethods]
impl Records {
    /// The next one, or ``None`` if there will be none.
    fn next(&self, py: Python<'_>) -> Option<(u8, &'static str, String)> {
        COMES_BACK.set(true);
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        *logged = None;
        let received = py.detach(|| {
            let record = self
                .records
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv();
            if is_over() {
                drop(record);
                stay();
            }
            record
        });
        let record = received.ok()?;
        *logged = Some(record.running);
        Some((record.level, record.event, record.text))
    }
}
