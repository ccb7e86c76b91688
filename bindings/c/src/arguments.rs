//! What C passes, as the header declares it.

use crate::last_error::{Failure, Status};
use crate::started::{End, start};
use redlatch::{
    Builder, CancelToken, Error, LockClient, LockGuard, LockRequest, LockToken, OwnHolder,
    TlsSettings,
};
use std::ffi::c_char;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::time::Duration;

/// `redlatch_bytes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    data: *const c_char,
    size: usize,
}

impl Bytes {
    pub(crate) fn get(&self) -> Result<&[u8], Failure> {
        // SAFETY: the header says that these bytes are valid for the call.
        unsafe { array(self.data.cast(), self.size) }
    }

    pub(crate) fn text(&self) -> Result<&str, Failure> {
        std::str::from_utf8(self.get()?).map_err(|_| Failure::invalid("a text is not UTF-8"))
    }

    /// What is set, also if that is nothing: a null pointer is not set.
    fn given(&self) -> Result<Option<&[u8]>, Failure> {
        if self.data.is_null() && self.size == 0 {
            return Ok(None);
        }
        self.get().map(Some)
    }

    /// What is set, if anything is.
    fn set_text(&self) -> Result<Option<&str>, Failure> {
        Ok(Some(self.text()?).filter(|text| !text.is_empty()))
    }
}

/// A structure that may have more members in another version of the header.
///
/// # Safety
///
/// It is `repr(C)`, its first member is its size in bytes, and any bytes are a value of it.
pub(crate) unsafe trait Versioned {
    const NAME: &str;
    /// Its size in the first header, which had the members up to there.
    const FIRST_SIZE: usize;
}

/// `redlatch_options`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Options {
    size: usize,
    flags: u32,
    node_timeout_ms: u32,
    max_ttl_ms: u64,
    key_prefix: Bytes,
    client_name: Bytes,
    ca_file: Bytes,
    certificate: Bytes,
    key: Bytes,
    connect_timeout_ms: u64,
    failover_bound_ms: u64,
    fencing_expiry_ms: u64,
    session_timeout_ms: u64,
    drift_factor: f64,
    owner: Bytes,
    clock_skew_ms: u64,
}

// SAFETY: it has only numbers and pointers, and its size first.
unsafe impl Versioned for Options {
    const NAME: &str = "redlatch_options";
    const FIRST_SIZE: usize = offset_of!(Self, key) + size_of::<Bytes>();
}

type Setter = fn(Builder, Duration) -> Builder;

impl Options {
    const NO_RESTART_GUARD: u32 = 1;
    const IO_THREAD: u32 = 2;

    pub(crate) fn apply(&self, mut builder: Builder) -> Result<Builder, Failure> {
        known(self.flags, Self::NO_RESTART_GUARD | Self::IO_THREAD)?;
        if self.flags & Self::NO_RESTART_GUARD != 0 {
            builder = builder.restart_guard(false);
        }
        // As in the header: 0 is the default.
        let times: [(u64, Setter); 7] = [
            (self.node_timeout_ms.into(), Builder::node_timeout),
            (self.max_ttl_ms, Builder::max_ttl),
            (self.connect_timeout_ms, Builder::connect_timeout),
            (self.failover_bound_ms, Builder::failover_bound),
            (self.clock_skew_ms, Builder::clock_skew),
            (self.fencing_expiry_ms, Builder::fencing_expiry),
            (self.session_timeout_ms, Builder::session_timeout),
        ];
        for (milliseconds, set) in times {
            if milliseconds > 0 {
                builder = set(builder, Duration::from_millis(milliseconds));
            }
        }
        if self.drift_factor != 0.0 {
            builder = builder.drift_factor(self.drift_factor);
        }
        if let Some(name) = self.client_name.set_text()? {
            builder = builder.client_name(name);
        }
        builder = match self.owner.given()? {
            Some(owner) => builder.owner(owner),
            None => builder,
        };
        builder = builder.io_thread(self.flags & Self::IO_THREAD != 0);
        Ok(builder.key_prefix(self.key_prefix.get()?).tls(self.tls()?))
    }

    fn tls(&self) -> Result<TlsSettings, Failure> {
        let mut tls = TlsSettings::default();
        if let Some(file) = self.ca_file.set_text()? {
            tls = tls.ca_file(file);
        }
        match (self.certificate.set_text()?, self.key.set_text()?) {
            (Some(file), Some(key)) => tls = tls.client_certificate(file, key),
            (None, None) => {}
            _ => {
                return Err(Failure::invalid(
                    "a certificate needs its key, and a key its certificate",
                ));
            }
        }
        Ok(tls)
    }
}

/// `redlatch_request`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Request {
    size: usize,
    flags: u32,
    one_of: u32,
    name: Bytes,
    ttl_ms: u64,
    wait_ms: u64,
    max_hold_ms: u64,
    owner: Bytes,
    more: *const Bytes,
    more_count: usize,
}

// SAFETY: it has only numbers and pointers, and its size first.
unsafe impl Versioned for Request {
    const NAME: &str = "redlatch_request";
    const FIRST_SIZE: usize = offset_of!(Self, owner) + size_of::<Bytes>();
}

/// `REDLATCH_FOREVER`.
const FOREVER: u64 = u64::MAX;

impl Request {
    const KEEP_ALIVE: u32 = 1;
    const FENCED: u32 = 2;
    const SHARED: u32 = 4;

    pub(crate) fn acquire(&self, client: &LockClient) -> Result<LockGuard, Failure> {
        let request = self.request(client)?;
        // Of a wait that ends, the status says so; of one that does not, nothing would.
        if self.wait_ms == FOREVER && request.own_holder() == Some(OwnHolder::ThisThread) {
            return Err(Error::HeldByThisThread.into());
        }
        let acquired = match self.wait_ms {
            0 => request.try_lock()?,
            FOREVER => Some(request.lock()?),
            wait => request.try_lock_for(Duration::from_millis(wait))?,
        };
        match acquired {
            Some(lock) => Ok(lock),
            None => {
                let request = self.request(client)?;
                let own_holder = request.own_holder().map(|own| own.to_string());
                Err(Failure::held(own_holder, request.other_data()))
            }
        }
    }

    /// As [`acquire`](Self::acquire), without waiting here: `end` is told how it has ended. Unless
    /// this fails.
    pub(crate) fn start(
        &self,
        client: &LockClient,
        token: &CancelToken,
        end: End,
    ) -> Result<(), Failure> {
        let request = self.request(client)?.cancelled_by(token);
        if self.wait_ms == FOREVER {
            return start(request.lock_async(), end, |lock| Ok(Some(lock)));
        }
        let pending = match self.wait_ms {
            0 => request.try_lock_async(),
            wait => request.try_lock_for_async(Duration::from_millis(wait)),
        };
        // What C has passed is gone when the call ends.
        let lock = self.lock()?;
        let client = client.clone();
        start(pending, end, move |acquired| match acquired {
            Some(guard) => Ok(Some(guard)),
            None => Err(lock.held(&client)),
        })
    }

    pub(crate) fn resume(&self, client: &LockClient, token: &str) -> Result<LockGuard, Failure> {
        let request = self.request(client)?;
        let token: LockToken = token.parse().map_err(Error::LockToken)?;
        Ok(request.resume(&token)?)
    }

    fn request<'a>(&self, client: &'a LockClient) -> Result<LockRequest<'a>, Failure> {
        known(self.flags, Self::KEEP_ALIVE | Self::FENCED | Self::SHARED)?;
        let mut request = self
            .lock()?
            .request(client)
            .ttl(Duration::from_millis(self.ttl_ms));
        if self.flags & Self::KEEP_ALIVE != 0 {
            request = request.keep_alive();
        }
        if self.flags & Self::FENCED != 0 {
            request = request.fenced();
        }
        if self.max_hold_ms > 0 {
            request = request.max_hold(Duration::from_millis(self.max_hold_ms));
        }
        if let Some(owner) = self.owner.given()? {
            request = request.owner(owner);
        }
        Ok(request)
    }

    /// What it asks for.
    fn lock(&self) -> Result<Lock, Failure> {
        let mut names = vec![self.name.get()?.to_vec()];
        // SAFETY: the header says that there are as many.
        for name in unsafe { array(self.more, self.more_count) }? {
            names.push(name.get()?.to_vec());
        }
        let is_shared = self.flags & Self::SHARED != 0;
        if is_shared && self.one_of != 0 {
            return Err(Failure::invalid("a reader has no slot: one_of must be 0"));
        }
        Ok(Lock {
            names,
            is_shared,
            one_of: self.one_of,
        })
    }
}

/// A lock, or a share of one, that a request asks for; copied from what C has passed.
struct Lock {
    names: Vec<Vec<u8>>,
    is_shared: bool,
    one_of: u32,
}

impl Lock {
    fn request<'a>(&self, client: &'a LockClient) -> LockRequest<'a> {
        // For a single name it is the same as `request`.
        let request = client.request_all(&self.names);
        match (self.is_shared, self.one_of) {
            (true, _) => request.shared(),
            (false, 0) => request,
            (false, count) => request.one_of(count),
        }
    }

    /// Why a call without a thread did not get it.
    fn held(&self, client: &LockClient) -> Failure {
        let request = self.request(client).for_thread(None);
        let own_holder = request.own_holder().map(|_| "this client holds it itself");
        Failure::held(own_holder.map(str::to_owned), request.other_data())
    }
}

/// A flag that a later header has must not be ignored by this library.
fn known(flags: u32, known: u32) -> Result<(), Failure> {
    let unknown = flags & !known;
    if unknown != 0 {
        return Err(Failure::invalid(&format!(
            "flags {unknown:#x} are unknown to this version"
        )));
    }
    Ok(())
}

/// What C has given.
///
/// # Safety
///
/// It is null, or valid for as long as the result is used.
pub(crate) unsafe fn read<'a, T>(given: *const T) -> Result<&'a T, Failure> {
    // SAFETY: as the caller says.
    unsafe { given.as_ref() }.ok_or_else(Failure::null)
}

/// A structure that C has given. What one of an earlier header does not have is zero. One of a
/// later header is accepted if what this library does not know of it is zero.
///
/// # Safety
///
/// It is null, or as many bytes as its first member says can be read.
pub(crate) unsafe fn read_sized<T: Versioned + Copy>(given: *const T) -> Result<T, Failure> {
    // SAFETY: as the caller says; the first member is the size.
    let size = *unsafe { read(given.cast::<usize>()) }?;
    if size < T::FIRST_SIZE {
        let name = T::NAME;
        return Err(Failure::invalid(&format!(
            "{name}.size is {size}: it was not initialized"
        )));
    }
    // SAFETY: as the caller says, it has this size.
    let given = unsafe { array(given.cast::<u8>(), size)? };
    let (known, later) = given.split_at(size.min(size_of::<T>()));
    if later.iter().any(|byte| *byte != 0) {
        let name = T::NAME;
        return Err(Failure::invalid(&format!(
            "{name} has members unknown to this version"
        )));
    }
    let mut read = MaybeUninit::<T>::zeroed();
    // SAFETY: these are no more bytes than it has, and any bytes are a value.
    Ok(unsafe {
        read.as_mut_ptr()
            .cast::<u8>()
            .copy_from_nonoverlapping(known.as_ptr(), known.len());
        read.assume_init()
    })
}

/// # Safety
///
/// So many elements can be read from there, for as long as the result is used.
pub(crate) unsafe fn array<'a, T>(data: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Failure::null());
    }
    if count
        .checked_mul(size_of::<T>())
        .is_none_or(|size| isize::try_from(size).is_err())
    {
        return Err(Failure::invalid("a size is negative or too large"));
    }
    // SAFETY: as the caller says; it is not null, and not too large.
    Ok(unsafe { std::slice::from_raw_parts(data, count) })
}

/// The sizes, the places of all members and the numbers, as `tests/layout.c` prints those of the
/// header.
#[doc(hidden)]
#[must_use]
pub fn layout() -> String {
    macro_rules! layout {
        ($($name:literal $type:ident: $($member:ident)*),*) => {[$(
            format!(concat!($name, " {}"), size_of::<$type>()),
            $(format!("{}.{} {}", $name, stringify!($member), offset_of!($type, $member)),)*
        )*].join("\n")};
    }
    let members = layout!(
        "bytes" Bytes: data size,
        "options" Options: size flags node_timeout_ms max_ttl_ms key_prefix client_name ca_file
            certificate key connect_timeout_ms failover_bound_ms fencing_expiry_ms
            session_timeout_ms drift_factor owner clock_skew_ms,
        "request" Request: size flags one_of name ttl_ms wait_ms max_hold_ms owner more more_count
    );
    let statuses = {
        use Status::*;
        [
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
        ]
    };
    let statuses = statuses.map(|it| (it as i32).to_string()).join(" ");
    let flags = [
        Options::NO_RESTART_GUARD,
        Options::IO_THREAD,
        Request::KEEP_ALIVE,
        Request::FENCED,
        Request::SHARED,
    ];
    let flags = flags.map(|flag| flag.to_string()).join(" ");
    let size = size_of::<Status>();
    format!("{members}\nstatus {size}: {statuses}\nflags: {flags}\n")
}
