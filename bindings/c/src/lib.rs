//! The functions of `redlatch.h`, which says what each does. No rule about a lock is here: each
//! function reads its arguments, calls the library, and turns the result into a status.
//!
//! A panic ends at the border, as `REDLATCH_PANIC`. Besides what the header says of a function, it
//! relies on this: a client or a guard is null, or was returned by a function here and not freed;
//! other pointers are null or valid for the call. What frees one gets the address of its variable,
//! and sets that to null.

#![expect(
    clippy::missing_safety_doc,
    reason = "what C must keep to is in the header and above"
)]

mod arguments;
mod last_error;
mod loss;
mod started;

#[doc(hidden)]
pub use arguments::layout;
use arguments::{Bytes, Options, Request, array, read, read_sized};
use last_error::{Failure, Status, attempt, c_text, contain};
use loss::{Callback, Gate, is_of_other_process};
use redlatch::{CancelToken, Error, FencingToken, LockClient, LockGuard, NodeError, NodeStatus};
use started::{Done, End, start};
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;
use std::time::Duration;
use std::{mem, ptr};

/// `redlatch_client`.
pub struct Client(LockClient);

/// `redlatch_guard`.
pub struct Guard {
    lock: LockGuard,
    gate: Arc<Gate>,
}

/// `redlatch_call`.
pub struct Call(CancelToken);

/// Any thread may have a client, a guard or a call, and several may have it at a time.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Client>();
    is_shared::<Guard>();
    is_shared::<Call>();
};

impl Guard {
    /// For C, which frees it.
    fn hand_out(lock: LockGuard) -> *mut Self {
        Box::into_raw(Box::new(Self {
            lock,
            gate: Arc::default(),
        }))
    }
}

/// Writes null where the result will be, so that C may free it whatever comes.
unsafe fn clear<T>(place: *mut *mut T) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::null());
    }
    // SAFETY: it is not null, so it can be written.
    unsafe { place.write(ptr::null_mut()) };
    Ok(())
}

/// Takes a client or a guard out of its variable, which is null from here on.
unsafe fn take<T>(place: *mut *mut T) -> Option<Box<T>> {
    // SAFETY: it is null, or the address of a variable that nobody else uses.
    let given = mem::replace(unsafe { place.as_mut() }?, ptr::null_mut());
    // SAFETY: it was returned by `Box::into_raw` here, and is the only copy that is used.
    (!given.is_null()).then(|| unsafe { Box::from_raw(given) })
}

/// A guard that C has given.
unsafe fn read_guard<'a>(guard: *const Guard) -> Result<&'a Guard, Failure> {
    // SAFETY: it is null, or valid for as long as the result is used.
    unsafe { guard.as_ref() }.ok_or_else(Failure::no_guard)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_client_new(
    urls: *const Bytes,
    count: usize,
    options: *const Options,
    client: *mut *mut Client,
) -> Status {
    attempt(|| {
        // SAFETY: as the head of this file says.
        let urls = unsafe {
            clear(client)?;
            array(urls, count)?
        };
        let urls: Vec<&str> = urls.iter().map(Bytes::text).collect::<Result<_, _>>()?;
        let mut builder = LockClient::builder().nodes(urls).owned_by_this_process();
        if !options.is_null() {
            // SAFETY: it is not null, and the header says how its size is set.
            builder = unsafe { read_sized(options) }?.apply(builder)?;
        }
        let built = Box::new(Client(builder.build()?));
        // SAFETY: `clear` has written there.
        unsafe { client.write(Box::into_raw(built)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_client_cancel(client: *const Client) {
    // SAFETY: as the head of this file says.
    if let Some(client) = unsafe { client.as_ref() } {
        let _ = contain(|| client.0.cancel_token().cancel());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_client_free(client: *mut *mut Client) {
    // SAFETY: as the head of this file says, and the header says that nobody uses it.
    let client = unsafe { take(client) };
    let _ = contain(|| drop(client));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_acquire(
    client: *const Client,
    request: *const Request,
    guard: *mut *mut Guard,
) -> Status {
    // SAFETY: as the head of this file says.
    attempt(|| unsafe { hold(client, request, guard, Request::acquire) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_resume(
    client: *const Client,
    request: *const Request,
    token: Bytes,
    guard: *mut *mut Guard,
) -> Status {
    // SAFETY: as the head of this file says.
    attempt(|| unsafe {
        hold(client, request, guard, |request, client| {
            request.resume(client, token.text()?)
        })
    })
}

/// Writes the guard of the lock that `take` gets for the request.
unsafe fn hold(
    client: *const Client,
    request: *const Request,
    guard: *mut *mut Guard,
    take: impl FnOnce(&Request, &LockClient) -> Result<LockGuard, Failure>,
) -> Result<(), Failure> {
    // SAFETY: as the head of this file says.
    let (client, request) = unsafe {
        clear(guard)?;
        (read(client)?, read_sized(request)?)
    };
    let lock = take(&request, &client.0)?;
    // SAFETY: `clear` has written there.
    unsafe { guard.write(Guard::hand_out(lock)) };
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_start(
    client: *const Client,
    request: *const Request,
    done: Option<Done>,
    data: *mut c_void,
    call: *mut *mut Call,
) -> Status {
    attempt(|| {
        let token = CancelToken::new();
        if !call.is_null() {
            // SAFETY: as the head of this file says. Before the call begins: from then on it may
            // end, and `done` may free what `call` points to.
            unsafe { call.write(ptr::null_mut()) };
        }
        // SAFETY: as the head of this file says.
        let (client, request) = unsafe { (read(client)?, read_sized(request)?) };
        let end = End::new(done, data)?;
        if !call.is_null() {
            // SAFETY: it is not null, so it can be written.
            unsafe { call.write(Box::into_raw(Box::new(Call(token.clone())))) };
        }
        let started = request.start(&client.0, &token, end);
        if started.is_err() {
            // SAFETY: nothing has begun, so nobody else uses it.
            drop(unsafe { take(call) });
        }
        started
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_call_cancel(call: *const Call) {
    // SAFETY: as the head of this file says.
    if let Some(call) = unsafe { call.as_ref() } {
        let _ = contain(|| call.0.cancel());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_call_free(call: *mut *mut Call) {
    // SAFETY: as the head of this file says, and the header says that nobody uses it.
    let call = unsafe { take(call) };
    let _ = contain(|| drop(call));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_extend(guard: *mut Guard, ttl_ms: u64) -> Status {
    attempt(|| {
        // SAFETY: as the head of this file says, and no other thread uses it.
        let guard = unsafe { guard.as_mut() }.ok_or_else(Failure::no_guard)?;
        Ok(guard.lock.extend(Duration::from_millis(ttl_ms))?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_remaining(guard: *const Guard) -> u64 {
    // SAFETY: as the head of this file says.
    let guard = unsafe { guard.as_ref() };
    let left = contain(|| guard.map_or(Duration::ZERO, |guard| guard.lock.remaining()));
    left.map_or(0, |left| left.as_millis().try_into().unwrap_or(u64::MAX))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_ensure_held(guard: *const Guard) -> Status {
    // SAFETY: as the head of this file says.
    attempt(|| Ok(unsafe { read_guard(guard)? }.lock.ensure_held()?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_fencing_token(guard: *const Guard) -> u64 {
    // SAFETY: as the head of this file says.
    let guard = unsafe { guard.as_ref() };
    guard
        .and_then(|guard| guard.lock.fencing_token())
        .map_or(0, FencingToken::as_u64)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_slot(guard: *const Guard) -> u32 {
    // SAFETY: as the head of this file says.
    unsafe { guard.as_ref() }
        .and_then(|guard| guard.lock.slot())
        .unwrap_or(u32::MAX)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_on_lost(
    guard: *const Guard,
    lost: Option<Callback>,
    data: *mut c_void,
) -> Status {
    attempt(|| {
        // SAFETY: as the head of this file says.
        let guard = unsafe { read_guard(guard)? };
        let lost = lost.ok_or_else(Failure::null)?;
        Ok(loss::on_lost(&guard.lock, &guard.gate, lost, data)?)
    })
}

/// Gives the lock up by `verb`. Afterwards no callback of the guard runs.
unsafe fn end<T>(guard: *mut *mut Guard, verb: impl FnOnce(LockGuard) -> T) -> Result<T, Failure> {
    // SAFETY: as the head of this file says, and the header says that nobody uses it.
    let Guard { lock, gate } = *unsafe { take(guard) }.ok_or_else(Failure::no_guard)?;
    let is_forked = is_of_other_process(&lock);
    let result = verb(lock);
    if !is_forked {
        gate.close();
    }
    Ok(result)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_release(guard: *mut *mut Guard) -> Status {
    // SAFETY: as the head of this file says.
    attempt(|| Ok(unsafe { end(guard, LockGuard::release) }??))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_start_release(
    guard: *mut *mut Guard,
    done: Option<Done>,
    data: *mut c_void,
) -> Status {
    attempt(|| {
        let told = End::new(done, data)?;
        // SAFETY: as the head of this file says, and the header says that nobody uses it.
        let Guard { lock, gate } = *unsafe { take(guard) }.ok_or_else(Failure::no_guard)?;
        let is_forked = is_of_other_process(&lock);
        // One that runs is not waited for: it is over when the next callback, the end, is called.
        gate.refuse();
        let started = start(lock.release_async(), told, |()| Ok(None));
        if started.is_err() && !is_forked {
            gate.close();
        }
        started
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_drop(guard: *mut *mut Guard) {
    // SAFETY: as the head of this file says.
    let _ = contain(|| unsafe { end(guard, drop) }.is_ok());
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_into_token(
    guard: *mut *mut Guard,
    text: *mut *mut c_char,
) -> Status {
    attempt(|| {
        // SAFETY: as the head of this file says.
        let token = unsafe {
            clear(text)?;
            end(guard, LockGuard::into_token)??
        };
        let token = c_text(&token.to_string());
        // SAFETY: `clear` has written there.
        unsafe { text.write(token.into_raw()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_nodes(client: *const Client, text: *mut *mut c_char) -> Status {
    attempt(|| {
        // SAFETY: as the head of this file says.
        let nodes = unsafe {
            clear(text)?;
            read(client)?.0.nodes()
        };
        if nodes
            .iter()
            .any(|node| node.last_error == Some(NodeError::OtherProcess))
        {
            return Err(Error::OtherProcess.into());
        }
        let lines = c_text(&nodes.iter().map(line).collect::<String>());
        // SAFETY: `clear` has written there.
        unsafe { text.write(lines.into_raw()) };
        Ok(())
    })
}

/// A line about a node.
fn line(node: &NodeStatus) -> String {
    let mut facts = vec![
        if node.is_connected {
            "connected"
        } else {
            "not connected"
        }
        .to_owned(),
    ];
    let software = node.server.iter().chain(&node.version);
    facts.extend(
        software
            .cloned()
            .reduce(|name, version| format!("{name} {version}")),
    );
    facts.extend(node.round_trip.map(|time| format!("round trip {time:.1?}")));
    facts.extend(
        node.quarantine
            .map(|left| format!("no vote for {left:.0?}: just started")),
    );
    facts.extend(
        node.last_error
            .as_ref()
            .map(|error| format!("last error: {error}")),
    );
    facts.extend(
        node.warnings()
            .iter()
            .map(|warning| format!("warning: {warning}")),
    );
    format!("{}: {}\n", node.url, facts.join("; "))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn redlatch_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it is a text of this library, by `CString::into_raw`.
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
