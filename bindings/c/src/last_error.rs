//! Statuses, and the text of the last failure of each thread.

use redlatch::{Error, LossReason, NotALock};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `redlatch_status`.
#[repr(i32)]
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
    HeldByThisThread,
}

pub(crate) struct Failure {
    status: Status,
    text: String,
}

impl Failure {
    /// The lock was not free. The text says why, as far as the client knows: who of it holds the
    /// lock, or which data has its key.
    pub(crate) fn held(own_holder: Option<String>, other_data: Option<NotALock>) -> Self {
        let text = match (own_holder, other_data) {
            (Some(own), _) => own,
            (None, Some(why)) => format!("the lock's key has data that is not a lock: {why}"),
            (None, None) => "others hold the lock".to_owned(),
        };
        Self {
            status: Status::Held,
            text,
        }
    }

    pub(crate) fn null() -> Self {
        Self::invalid("a null pointer was passed")
    }

    pub(crate) fn no_guard() -> Self {
        Self::invalid("the guard is null: it was released already, or has held no lock")
    }

    /// A call has panicked in a thread of the library, which has reported the text.
    pub(crate) fn panic() -> Self {
        Self {
            status: Status::Panic,
            text: "a bug of redlatch: the call has panicked".to_owned(),
        }
    }

    pub(crate) fn invalid(text: &str) -> Self {
        Self {
            status: Status::Invalid,
            text: text.to_owned(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::NoQuorum(_) | Error::TooSlow { .. } => Status::NoQuorum,
            Error::Lost(lost) if lost.reason() == LossReason::OtherProcess => Status::OtherProcess,
            Error::Lost(_) => Status::Lost,
            Error::Cancelled => Status::Cancelled,
            Error::Config(_)
            | Error::Resource(_)
            | Error::Ttl(_)
            | Error::HeldTooLong { .. }
            | Error::NotALock { .. } => Status::Invalid,
            Error::NotResumable(_) | Error::LockToken(_) => Status::Invalid,
            Error::OtherProcess => Status::OtherProcess,
            Error::HeldByThisThread => Status::HeldByThisThread,
            _ => Status::Other,
        };
        Self {
            status,
            text: error.to_string(),
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The text is valid until this thread's next failure. Empty also in a thread that is about to end,
/// whose texts are freed.
pub(crate) fn text() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// Runs a call, and keeps the text if it fails.
pub(crate) fn attempt(call: impl FnOnce() -> Result<(), Failure>) -> Status {
    let Failure { status, text } = match contain(call) {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(failure)) => failure,
        Err(text) => Failure {
            status: Status::Panic,
            text,
        },
    };
    let text = c_text(&text);
    let _ = LAST.try_with(|last| last.replace(text));
    status
}

/// Runs what must not unwind into C. The error is the text of a panic.
pub(crate) fn contain<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|thrown| {
        let text = panic_text(&*thrown);
        // The payload may panic when it is dropped.
        std::mem::forget(thrown);
        text
    })
}

pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

fn panic_text(thrown: &(dyn Any + Send)) -> String {
    let text = thrown
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| thrown.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a text");
    format!("a bug of redlatch: {text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: it is a text, and this thread fails only below.
        unsafe { CStr::from_ptr(text()) }
            .to_str()
            .expect("UTF-8")
            .to_owned()
    }

    #[test]
    fn a_panic_is_a_status_and_a_success_leaves_the_text() {
        assert_eq!(last(), "");
        assert_eq!(attempt(|| panic!("so it goes\0on")), Status::Panic);
        assert_eq!(last(), "a bug of redlatch: so it goes?on");
        assert_eq!(attempt(|| Ok(())), Status::Ok);
        assert_eq!(last(), "a bug of redlatch: so it goes?on");
    }

    #[test]
    fn a_name_that_other_data_has_is_a_mistake_and_the_text_says_what_to_do() {
        let key = b"app:x"[..].into();
        let reason = NotALock::NoTtl;
        let error = Error::NotALock {
            key,
            reason,
            urls: vec!["redis://a".into()],
        };
        assert_eq!(attempt(|| Err(error.into())), Status::Invalid);
        assert!(
            last().contains("'app:x'") && last().contains("key_prefix"),
            "{}",
            last()
        );
    }
}
