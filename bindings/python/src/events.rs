//! Events as records of `logging`.

use pyo3::prelude::*;
use redlatch::event::{Event, Level};
use std::sync::atomic::{AtomicBool, Ordering};

/// Are records of calls wanted, those of level `DEBUG`? Asked with the GIL, at the begin of calls
/// that take locks; read by threads that have not got it and need not get it.
static ARE_CALLS_LOGGED: AtomicBool = AtomicBool::new(false);

pub(crate) fn log_calls(are_logged: bool) {
    ARE_CALLS_LOGGED.store(are_logged, Ordering::Relaxed);
}

/// Logs an event to the logger `redlatch`. Not if Python is ending.
pub(crate) fn log(event: &Event<'_>) {
    let level = match event.level() {
        Level::Warn => 30,
        Level::Info => 20,
        _ if ARE_CALLS_LOGGED.load(Ordering::Relaxed) => 10,
        _ => return,
    };
    let text = event.to_string();
    Python::try_attach(|py| {
        let logged = py
            .import("redlatch._log")
            .and_then(|log| log.getattr("log")?.call1((level, event.name(), text)));
        if let Err(error) = logged {
            error.write_unraisable(py, None);
        }
    });
}
