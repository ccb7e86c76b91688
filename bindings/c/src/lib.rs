//! The functions of `redlatch.h`, which says what each does. No rule about a lock is here: each
//! function reads its arguments, calls the library, and turns the result into a status.
//!
//! A panic ends at the border, as [`Status::Panic`].

mod arguments;
mod last_error;

use arguments::{Bytes, Options, Request, read};
use last_error::{Failure, Status, attempt};
use redlatch::{LockClient, LockGuard};
use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::time::Duration;

/// A lock that C holds.
pub struct Lock(LockGuard);

/// A client that C holds.
pub struct Client(LockClient);

fn millis(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}

/// Gives C what it frees by a function of its own.
///
/// # Safety
///
/// `place` can be written.
unsafe fn give<T>(place: *mut *mut T, value: T) {
    // SAFETY: as the caller says.
    unsafe { place.write(Box::into_raw(Box::new(value))) };
}

/// # Safety
///
/// `urls` has `count` elements, `options` is null or valid, `client` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_client_new(
    urls: *const Bytes,
    count: usize,
    options: *const Options,
    client: *mut *mut Client,
) -> Status {
    attempt(|| {
        if client.is_null() || urls.is_null() {
            return Err(Failure::null());
        }
        // SAFETY: the caller says that these are valid for the call.
        let (urls, options) =
            unsafe { (std::slice::from_raw_parts(urls, count), options.as_ref()) };
        let urls: Vec<String> = urls.iter().map(Bytes::text).collect::<Result<_, _>>()?;
        let mut builder = LockClient::builder().nodes(urls);
        if let Some(options) = options {
            builder = options.apply(builder)?;
        }
        // SAFETY: it is not null, and the caller says that it can be written.
        unsafe { give(client, Client(builder.build()?)) };
        Ok(Status::Ok)
    })
}

/// # Safety
///
/// `client` is one that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_client_cancel(client: *const Client) {
    // SAFETY: as the caller says.
    let _ = attempt(|| unsafe { read(client) }.map(|client| client.0.cancel_token().cancel()).map(|()| Status::Ok));
}

/// # Safety
///
/// `client` is null, or one that was not freed and that no thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_client_free(client: *mut Client) {
    if !client.is_null() {
        // SAFETY: it was made by `give`, and is not used any more.
        let client = unsafe { Box::from_raw(client) };
        let _ = attempt(|| {
            drop(client);
            Ok(Status::Ok)
        });
    }
}

/// # Safety
///
/// `client` was not freed, `request` is valid, `lock` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_acquire(
    client: *const Client,
    request: *const Request,
    lock: *mut *mut Lock,
) -> Status {
    attempt(|| {
        // SAFETY: as the caller says.
        let (client, request) = unsafe { (read(client)?, read(request)?) };
        if lock.is_null() {
            return Err(Failure::null());
        }
        // SAFETY: it is not null, and the caller says that it can be written.
        unsafe { lock.write(ptr::null_mut()) };
        match request.acquire(&client.0)? {
            // SAFETY: as before.
            Some(guard) => unsafe { give(lock, Lock(guard)) },
            None => return Ok(Status::Held),
        }
        Ok(Status::Ok)
    })
}

/// # Safety
///
/// `lock` was not freed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_extend(lock: *mut Lock, ttl: u64) -> Status {
    attempt(|| {
        // SAFETY: as the caller says.
        let lock = unsafe { lock.as_mut() }.ok_or_else(Failure::null)?;
        lock.0.extend(Duration::from_millis(ttl))?;
        Ok(Status::Ok)
    })
}

/// # Safety
///
/// `lock` was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_remaining(lock: *const Lock) -> u64 {
    let mut left = 0;
    attempt(|| {
        // SAFETY: as the caller says.
        left = millis(unsafe { read(lock)? }.0.remaining());
        Ok(Status::Ok)
    });
    left
}

/// # Safety
///
/// `lock` was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_ensure_held(lock: *const Lock) -> Status {
    attempt(|| {
        // SAFETY: as the caller says.
        unsafe { read(lock)? }.0.ensure_held()?;
        Ok(Status::Ok)
    })
}

/// # Safety
///
/// `lock` was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_fencing_token(lock: *const Lock) -> u64 {
    // SAFETY: as the caller says.
    unsafe { lock.as_ref() }.and_then(|lock| lock.0.fencing_token()).map_or(0, |it| it.as_u64())
}

/// # Safety
///
/// `lock` was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_slot(lock: *const Lock) -> u32 {
    // SAFETY: as the caller says.
    unsafe { lock.as_ref() }.and_then(|lock| lock.0.slot()).unwrap_or(u32::MAX)
}

/// What a callback is given. C says that another thread may use it.
struct Data(*mut c_void);

// SAFETY: `redlatch_on_lost` says that the callback runs in another thread.
unsafe impl Send for Data {}

/// # Safety
///
/// `lock` was not freed, and `lost` may be called with `data` by any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_on_lost(
    lock: *const Lock,
    lost: Option<extern "C" fn(*mut c_void, Bytes)>,
    data: *mut c_void,
) -> Status {
    attempt(|| {
        // SAFETY: as the caller says.
        let lock = unsafe { read(lock)? };
        let (lost, data) = (lost.ok_or_else(Failure::null)?, Data(data));
        lock.0.on_lost(move |why| {
            let Data(data) = { data };
            let why = why.to_string();
            lost(data, Bytes::of(&why));
        })?;
        Ok(Status::Ok)
    })
}

/// # Safety
///
/// `lock` was not freed, and no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_release(lock: *mut Lock) -> Status {
    if lock.is_null() {
        return attempt(|| Err(Failure::null()));
    }
    // SAFETY: it was made by `give`, and is not used any more.
    let lock = unsafe { Box::from_raw(lock) };
    attempt(|| {
        lock.0.release()?;
        Ok(Status::Ok)
    })
}

/// # Safety
///
/// `lock` is null, or was not freed and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_drop(lock: *mut Lock) {
    if !lock.is_null() {
        // SAFETY: it was made by `give`, and is not used any more.
        let lock = unsafe { Box::from_raw(lock) };
        let _ = attempt(|| {
            drop(lock);
            Ok(Status::Ok)
        });
    }
}

/// # Safety
///
/// `client` was not freed, `text` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_nodes(client: *const Client, text: *mut *mut c_char) -> Status {
    attempt(|| {
        // SAFETY: as the caller says.
        let client = unsafe { read(client)? };
        if text.is_null() {
            return Err(Failure::null());
        }
        let lines = client.0.nodes().into_iter().map(|status| {
            let state = match &status.last_error {
                Some(error) if !status.is_connected => error.to_string(),
                _ if status.is_connected => "connected".to_owned(),
                _ => "not connected".to_owned(),
            };
            let warnings = status.warnings().iter().map(|warning| format!("; {warning}"));
            format!("{}: {state}{}\n", status.url, warnings.collect::<String>())
        });
        let lines = CString::new(lines.collect::<String>().replace('\0', "?"));
        // SAFETY: it is not null, and the caller says that it can be written.
        unsafe { text.write(lines.unwrap_or_default().into_raw()) };
        Ok(Status::Ok)
    })
}

/// # Safety
///
/// `text` is null, or was returned by `redlatch_nodes` and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it was made by `CString::into_raw`.
        drop(unsafe { CString::from_raw(text) });
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn redlatch_last_error() -> *const c_char {
    last_error::text()
}

#[unsafe(no_mangle)]
pub extern "C" fn redlatch_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
