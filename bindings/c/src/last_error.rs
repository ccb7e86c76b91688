//! Statuses, and why the last call of each thread has failed.

use redlatch::Error;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `redlatch_status`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ok,
    Held,
    NoQuorum,
    Lost,
    Cancelled,
    Invalid,
    OtherProcess,
    Other,
    Panic,
}

pub(crate) struct Failure {
    status: Status,
    text: String,
}

impl Failure {
    pub(crate) fn null() -> Self {
        Self::invalid("a null pointer was passed")
    }

    pub(crate) fn invalid(text: &str) -> Self {
        Self { status: Status::Invalid, text: text.to_owned() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::NoQuorum(_) | Error::TooSlow { .. } => Status::NoQuorum,
            Error::Lost(_) | Error::HeldTooLong { .. } => Status::Lost,
            Error::Cancelled => Status::Cancelled,
            Error::Config(_) | Error::Resource(_) | Error::Ttl(_) => Status::Invalid,
            Error::OtherProcess => Status::OtherProcess,
            _ => Status::Other,
        };
        Self { status, text: error.to_string() }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The text is valid until the next call of this thread.
pub(crate) fn text() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

/// Runs a call, and keeps why it has failed.
pub(crate) fn attempt(call: impl FnOnce() -> Result<Status, Failure>) -> Status {
    let result = catch_unwind(AssertUnwindSafe(call));
    let (status, text) = match result {
        Ok(Ok(status)) => (status, String::new()),
        Ok(Err(failure)) => (failure.status, failure.text),
        Err(panic) => (Status::Panic, message(&*panic)),
    };
    let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
    LAST.set(text);
    status
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", text.unwrap_or("without a text"))
}
