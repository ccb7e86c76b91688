//! The client, which is built anew in each process that uses it.

use crate::arguments::{Given, Names, Seconds, Timeout, urls};
use crate::calls::{CallingThread, contained, detached, is_ending, let_go, undisturbed};
use crate::errors::{closed, raise};
use crate::events;
use crate::lock::{Lock, outcome};
use crate::started::StartedCall;
use crate::views::own_holder;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use redlatch::error::LockTokenError;
use redlatch::{Builder, Error, LockClient, LockRequest, LockToken, TlsSettings};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{mem, process};

/// What a `redlatch.Client` calls.
#[pyclass(frozen, weakref, module = "redlatch._native")]
// The mutexes are taken with the GIL and for a moment, and a process forks by a thread that has the
// GIL: so no child has a copy that is taken.
pub(crate) struct Client {
    /// Of no other client of this process.
    id: u64,
    nodes: Py<PyAny>,
    settings: Py<PyDict>,
    builder: Builder,
    /// Has it an owner of its own, and not that of the process that uses it?
    has_owner: bool,
    current: Mutex<Current>,
    /// Clients of the nodes of tests, the newest last. As long as there is any, each call is one of
    /// the newest: a test must not reach the nodes of the program, in whatever order they end.
    redirects: Mutex<Vec<Py<Self>>>,
}

enum Current {
    /// The client of the process with this id.
    Of(u32, LockClient),
    Closed,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Drop for Client {
    fn drop(&mut self) {
        let current = self
            .current
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let_go(mem::replace(current, Current::Closed));
    }
}

impl Client {
    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn redirects(&self) -> MutexGuard<'_, Vec<Py<Self>>> {
        self.redirects
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn newest_redirect(&self, py: Python<'_>) -> Option<Py<Self>> {
        self.redirects()
            .last()
            .map(|redirect| redirect.clone_ref(py))
    }

    /// The client that is asked, of this process.
    pub(crate) fn here(&self, py: Python<'_>) -> PyResult<LockClient> {
        match self.newest_redirect(py) {
            Some(redirect) => redirect.get().own(py),
            None => self.own(py),
        }
    }

    /// The client of this process: in a forked child, another one than its parent's, with
    /// connections of its own.
    fn own(&self, py: Python<'_>) -> PyResult<LockClient> {
        let mut current = self.current();
        let client = match &*current {
            Current::Closed => return Err(closed(py)),
            Current::Of(process, client) if *process == process::id() => client.clone(),
            Current::Of(..) => build(py, &self.builder, self.has_owner)?,
        };
        if is_ending() {
            // Nobody would end its waits, also if it was made just now.
            client.cancel_token().cancel();
        }
        *current = Current::Of(process::id(), client.clone());
        Ok(client)
    }
}

fn build(py: Python<'_>, builder: &Builder, has_owner: bool) -> PyResult<LockClient> {
    contained(py, || {
        let mut builder = builder.clone().on_event(events::listener());
        if !has_owner {
            builder = builder.owned_by_this_process();
        }
        builder.build().map_err(|error| raise(py, &error))
    })
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (nodes, **settings))]
    fn new(
        py: Python<'_>,
        nodes: Bound<'_, PyAny>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut builder = LockClient::builder().nodes(urls(&nodes)?);
        let mut tls = None;
        let mut has_owner = false;
        for (name, value) in settings.into_iter().flatten() {
            if !value.is_none() {
                let name: String = name.extract()?;
                has_owner |= name == "owner";
                builder = set(builder, &mut tls, &Given { name: &name, value })?;
            }
        }
        builder = tls.into_iter().fold(builder, Builder::tls);
        let current = Current::Of(process::id(), build(py, &builder, has_owner)?);
        Ok(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            nodes: nodes.unbind(),
            settings: settings
                .map_or_else(|| PyDict::new(py), Bound::clone)
                .unbind(),
            builder,
            has_owner,
            current: Mutex::new(current),
            redirects: Mutex::default(),
        })
    }

    /// The client that is asked: this one, or that of the newest redirect.
    fn asked(slf: Bound<'_, Self>) -> Py<Self> {
        slf.get()
            .newest_redirect(slf.py())
            .unwrap_or_else(|| slf.unbind())
    }

    /// Has calls ask the nodes of another client, until `end_redirect`.
    fn redirect(&self, to: Py<Self>) {
        self.redirects().push(to);
    }

    /// Ends what `redirect` has begun, also if it is not the newest.
    fn end_redirect(&self, to: &Bound<'_, Self>) {
        let ended = {
            let mut redirects = self.redirects();
            redirects
                .iter()
                .rposition(|redirect| redirect.is(to))
                .map(|at| redirects.remove(at))
        };
        drop(ended);
    }

    /// The URLs and the settings of which it was made.
    #[getter]
    fn made_of(&self, py: Python<'_>) -> (Py<PyAny>, Py<PyDict>) {
        (self.nodes.clone_ref(py), self.settings.clone_ref(py))
    }

    /// That of the client that is asked.
    #[getter]
    pub(crate) fn id(&self, py: Python<'_>) -> u64 {
        self.newest_redirect(py)
            .map_or(self.id, |redirect| redirect.get().id)
    }

    /// Takes a lock. `wait`: 0 does not wait, and `None` waits as long as it takes. `goes_on`:
    /// another call follows if this one fails, so that it did is no news.
    #[pyo3(signature = (names, ttl, wait, log_calls, goes_on, shared, **request))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn acquire(
        &self,
        py: Python<'_>,
        names: Names,
        ttl: Seconds,
        wait: Timeout,
        log_calls: bool,
        goes_on: bool,
        shared: Bound<'_, PyAny>,
        request: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<Lock>> {
        events::log_calls(log_calls);
        let id = self.id(py);
        let client = self.here(py)?;
        let shared = is_shared(shared)?;
        let request = requested(&client, &names, ttl, shared, request)?;
        let taken = detached(py, || {
            let _quiet = goes_on.then(events::without_failures);
            match wait.0 {
                None => request.lock().map(Some),
                Some(Duration::ZERO) => request.try_lock(),
                Some(wait) => request.try_lock_for(wait),
            }
        })?;
        Ok(taken.map(|guard| Lock::new(guard, id, shared)))
    }

    /// Begins to take a lock, as `acquire` does, and returns at once.
    #[pyo3(signature = (names, ttl, wait, log_calls, shared, **request))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn start(
        &self,
        py: Python<'_>,
        names: Names,
        ttl: Seconds,
        wait: Timeout,
        log_calls: bool,
        shared: Bound<'_, PyAny>,
        request: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<StartedCall> {
        events::log_calls(log_calls);
        let id = self.id(py);
        let client = self.here(py)?;
        let shared = is_shared(shared)?;
        let request = requested(&client, &names, ttl, shared, request)?;
        StartedCall::begin(py, |token, end| {
            let request = request.cancelled_by(token);
            let ended = move |taken| match taken {
                Err(error @ Error::Spawn(_)) => end.refuse(outcome(Err(error), id, shared)),
                taken => end.set(outcome(taken, id, shared)),
            };
            match wait.0 {
                None => request
                    .lock_async()
                    .then(move |taken| ended(taken.map(Some))),
                Some(wait) => request.try_lock_for_async(wait).then(ended),
            }
        })
    }

    /// What the client knows of a lock that a call did not get: which of its own threads holds it,
    /// and why the data of this name is not a lock. Asks no node.
    #[pyo3(signature = (names, ttl, shared, **request))]
    fn obstacle(
        &self,
        py: Python<'_>,
        names: Names,
        ttl: Seconds,
        shared: bool,
        request: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Option<&'static str>, Option<String>)> {
        let client = self.here(py)?;
        let request = requested(&client, &names, ttl, shared, request)?;
        let (own, other_data) = undisturbed(py, || (request.own_holder(), request.other_data()))?;
        Ok((own.map(own_holder), other_data.map(|why| why.to_string())))
    }

    /// Ends the calls of this client that wait for a lock, now and from now on, with `Cancelled`.
    /// Locks that are held stay held.
    pub(crate) fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let client = self.own(py)?;
        contained(py, || {
            client.cancel_token().cancel();
            Ok(())
        })
    }

    /// Ends the waits, and the connections as soon as no lock is held by them.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let current = mem::replace(&mut *self.current(), Current::Closed);
        contained(py, || {
            if let Current::Of(process, client) = &current {
                // A child does not touch its parent's.
                if *process == process::id() {
                    client.cancel_token().cancel();
                }
            }
            let_go(current);
            Ok(())
        })
    }
}

#[pyfunction]
#[pyo3(signature = (client, token, names, ttl, shared, **request))]
pub(crate) fn resume(
    py: Python<'_>,
    client: &Client,
    token: Bound<'_, PyAny>,
    names: Names,
    ttl: Seconds,
    shared: Bound<'_, PyAny>,
    request: Option<&Bound<'_, PyDict>>,
) -> PyResult<Lock> {
    let id = client.id(py);
    let shared = is_shared(shared)?;
    let client = client.here(py)?;
    let request = requested(&client, &names, ttl, shared, request)?;
    let token = Given {
        name: "token",
        value: token,
    }
    .text()?;
    let token: LockToken = token
        .parse()
        .map_err(|error: LockTokenError| raise(py, &error.into()))?;
    detached(py, || request.resume(&token)).map(|guard| Lock::new(guard, id, shared))
}

/// Whether the lock is to be shared.
fn is_shared(value: Bound<'_, PyAny>) -> PyResult<bool> {
    let name = "shared";
    Given { name, value }.flag()
}

/// The request with the options of `Client.lock` in Python: methods of the library's request.
fn requested<'a>(
    client: &'a LockClient,
    names: &Names,
    ttl: Seconds,
    shared: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<LockRequest<'a>> {
    let mut request = match names {
        Names::One(name) => client.request(name),
        Names::Several(names) => client.request_all(names),
    }
    .ttl(ttl.0);
    if shared {
        request = request.shared();
    }
    let mut keep_alive = true;
    let mut thread = None;
    for (name, value) in options.into_iter().flatten() {
        if value.is_none() {
            continue;
        }
        let name: String = name.extract()?;
        let given = Given { name: &name, value };
        request = match &*name {
            "keep_alive" => {
                keep_alive = given.flag()?;
                request
            }
            "thread" => {
                thread = Some(given.value.cast::<CallingThread>()?.get().0);
                request
            }
            "fenced" if given.flag()? => request.fenced(),
            "fenced" => request,
            "one_of" => request.one_of(given.number("a number of holders, 1 or more,")?),
            "owner" => request.owner(given.label()?),
            "min_validity" => request.min_validity(given.time()?),
            "max_hold" => request.max_hold(given.time()?),
            "hold_at_least" => request.hold_at_least(given.time()?),
            name => return Err(unexpected("a lock", name)),
        };
    }
    // Without a thread, tasks or greenlets share those that call.
    request = request.for_thread(thread);
    Ok(if keep_alive {
        request.keep_alive()
    } else {
        request
    })
}

fn unexpected(of: &str, name: &str) -> PyErr {
    PyTypeError::new_err(format!("{of} has no option {name:?}"))
}

/// Sets what `Client` has under this name in Python: a method of the builder.
fn set(
    builder: Builder,
    tls: &mut Option<TlsSettings>,
    given: &Given<'_, '_>,
) -> PyResult<Builder> {
    Ok(match given.name {
        "nodes_from_env" => builder.nodes_from_env(&given.text()?),
        "node_timeout" => builder.node_timeout(given.time()?),
        "connect_timeout" => builder.connect_timeout(given.time()?),
        "session_timeout" => builder.session_timeout(given.time()?),
        "max_ttl" => builder.max_ttl(given.time()?),
        "max_hold" => builder.max_hold(given.time()?),
        "min_validity" => builder.min_validity(given.time()?),
        "failover_bound" => builder.failover_bound(given.time()?),
        "clock_skew" => builder.clock_skew(given.time()?),
        "waiter_lease" => builder.waiter_lease(given.time()?),
        "fencing_expiry" => builder.fencing_expiry(given.time()?),
        "drift_factor" => builder.drift_factor(given.number("a number, such as 0.01,")?),
        "restart_guard" => builder.restart_guard(given.flag()?),
        "wait_for_all" => builder.wait_for_all(given.flag()?),
        "io_thread" => builder.io_thread(given.flag()?),
        "queue" => builder.queue(given.flag()?),
        "key_prefix" => builder.key_prefix(given.label()?),
        "owner" => builder.owner(given.label()?),
        "client_name" => builder.client_name(given.text()?),
        "ca_file" => {
            let file: PathBuf = given.get("a path")?;
            change(tls, |tls| tls.ca_file(&file));
            builder
        }
        "client_certificate" => {
            let files = given.get("a pair of paths, of a certificate and of its key,")?;
            let (certificate, key): (PathBuf, PathBuf) = files;
            change(tls, |tls| tls.client_certificate(&certificate, &key));
            builder
        }
        "bundled_roots" => {
            if given.flag()? {
                change(tls, TlsSettings::bundled_roots);
            }
            builder
        }
        name => return Err(unexpected("a client", name)),
    })
}

fn change(tls: &mut Option<TlsSettings>, by: impl FnOnce(TlsSettings) -> TlsSettings) {
    *tls = Some(by(tls.take().unwrap_or_default()));
}
