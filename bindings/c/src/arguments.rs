//! What C passes, as the header declares it.

use crate::last_error::Failure;
use redlatch::{Builder, Error, LockClient, LockGuard};
use std::ffi::c_char;
use std::time::Duration;

/// `redlatch_bytes`.
#[repr(C)]
pub struct Bytes {
    data: *const c_char,
    size: usize,
}

impl Bytes {
    pub(crate) fn of(text: &str) -> Self {
        Self { data: text.as_ptr().cast(), size: text.len() }
    }

    pub(crate) fn get(&self) -> &[u8] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: the header says that the bytes are valid for the call.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size) }
    }

    pub(crate) fn text(&self) -> Result<String, Failure> {
        let text = std::str::from_utf8(self.get());
        text.map(ToOwned::to_owned).map_err(|_| Failure::invalid("a text is not UTF-8"))
    }
}

/// `redlatch_options`.
#[repr(C)]
pub struct Options {
    node_timeout: u32,
    max_ttl: u64,
    without_restart_guard: bool,
    key_prefix: Bytes,
    client_name: Bytes,
}

impl Options {
    pub(crate) fn apply(&self, mut builder: Builder) -> Result<Builder, Failure> {
        if self.node_timeout > 0 {
            builder = builder.node_timeout(Duration::from_millis(self.node_timeout.into()));
        }
        if self.max_ttl > 0 {
            builder = builder.max_ttl(Duration::from_millis(self.max_ttl));
        }
        if self.without_restart_guard {
            builder = builder.restart_guard(false);
        }
        if !self.key_prefix.get().is_empty() {
            builder = builder.key_prefix(self.key_prefix.get());
        }
        if !self.client_name.get().is_empty() {
            builder = builder.client_name(self.client_name.text()?);
        }
        Ok(builder)
    }
}

/// `redlatch_request`.
#[repr(C)]
pub struct Request {
    name: Bytes,
    ttl: u64,
    wait: u64,
    keep_alive: bool,
    fenced: bool,
    shared: bool,
    one_of: u32,
}

impl Request {
    pub(crate) fn acquire(&self, client: &LockClient) -> Result<Option<LockGuard>, Error> {
        let mut request = client.request(self.name.get()).ttl(Duration::from_millis(self.ttl));
        if self.keep_alive {
            request = request.keep_alive();
        }
        if self.fenced {
            request = request.fenced();
        }
        if self.shared {
            request = request.shared();
        }
        if self.one_of > 0 {
            request = request.one_of(self.one_of);
        }
        match self.wait {
            0 => request.try_lock(),
            u64::MAX => request.lock().map(Some),
            wait => request.try_lock_for(Duration::from_millis(wait)),
        }
    }
}

/// What C has given.
///
/// # Safety
///
/// It is null, or valid for the call.
pub(crate) unsafe fn read<'a, T>(given: *const T) -> Result<&'a T, Failure> {
    // SAFETY: as the caller says.
    unsafe { given.as_ref() }.ok_or_else(Failure::null)
}
