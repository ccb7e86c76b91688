//! What the nodes have said, as the data classes of `redlatch._views`.

use crate::arguments::Name;
use crate::calls::detached;
use crate::classes::classes;
use crate::client::Client;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use redlatch::error::{NodeAnswer, NodeReport};
use redlatch::{Holder, Inspection, LockState, NodeStatus, OwnHolder, OwnThreads, QueuedWaiter};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time of the day. Not as pyo3 would make it: the `timedelta` that it adds to the epoch crashes
/// Python 3.13.0 at the end of the interpreter.
pub(crate) fn moment(py: Python<'_>, time: SystemTime) -> PyResult<Bound<'_, PyAny>> {
    let since = time.duration_since(UNIX_EPOCH).map_or_else(
        |before| -before.duration().as_secs_f64(),
        |since| since.as_secs_f64(),
    );
    let classes = classes(py)?;
    let utc = classes.timezone.getattr(py, "utc")?;
    classes
        .datetime
        .bind(py)
        .call_method1("fromtimestamp", (since, utc))
}

pub(crate) fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// A name: text if it is, and otherwise its bytes.
pub(crate) fn name<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyAny> {
    match std::str::from_utf8(bytes) {
        Ok(text) => PyString::new(py, text).into_any(),
        Err(_) => PyBytes::new(py, bytes).into_any(),
    }
}

/// `view!(py, Class, field: value, …)`: an instance of a data class.
macro_rules! view {
    ($py:expr, $class:ident, $($field:ident: $value:expr),+ $(,)?) => {{
        let fields = PyDict::new($py);
        $(fields.set_item(stringify!($field), $value)?;)+
        let class = $crate::classes::classes($py)?.$class.bind($py);
        $crate::calls::in_python($py, || class.call((), Some(&fields)))
    }};
}

pub(crate) use view;

/// An answer: the word for it, and the text of the error if it is one.
pub(crate) fn report<'py>(py: Python<'py>, node: &NodeReport) -> PyResult<Bound<'py, PyAny>> {
    let (answer, is_permanent) = match &node.answer {
        NodeAnswer::Failed(error) => (error.to_string(), error.is_permanent()),
        answer => (answer.to_string(), false),
    };
    let has_failed = matches!(node.answer, NodeAnswer::Failed(_));
    view!(
        py, NodeReport,
        url: &*node.url,
        answer: answer,
        has_failed: has_failed,
        is_permanent: is_permanent,
    )
}

fn status<'py>(py: Python<'py>, node: &NodeStatus) -> PyResult<Bound<'py, PyAny>> {
    let warnings: Vec<String> = node.warnings().iter().map(ToString::to_string).collect();
    view!(
        py, NodeStatus,
        url: &*node.url,
        is_connected: node.is_connected,
        server: node.server.as_deref(),
        version: node.version.as_deref(),
        uptime: node.uptime.map(seconds),
        quarantine: node.quarantine.map(seconds),
        round_trip: node.round_trip.map(seconds),
        last_error: node.last_error.as_ref().map(ToString::to_string),
        warnings: warnings,
    )
}

pub(crate) fn holder<'py>(py: Python<'py>, holder: &Holder) -> PyResult<Bound<'py, PyAny>> {
    view!(
        py, Holder,
        owner: holder.owner().map(|owner| name(py, owner.as_bytes())),
        remaining: holder.remaining.map(seconds),
        slot: holder.slot,
        other_program: holder.other_program.as_ref().map(ToString::to_string),
    )
}

fn waiter<'py>(py: Python<'py>, waiter: &QueuedWaiter) -> PyResult<Bound<'py, PyAny>> {
    view!(
        py, Waiter,
        owner: waiter.owner().map(|owner| name(py, owner.as_bytes())),
        since: moment(py, waiter.since)?,
        is_for_share: waiter.is_for_share(),
    )
}

/// The word for who of a client holds a lock.
pub(crate) fn own_holder(holder: OwnHolder) -> &'static str {
    if holder == OwnHolder::ThisThread {
        "this_thread"
    } else {
        "other_thread"
    }
}

fn own_threads<'py>(py: Python<'py>, own: OwnThreads) -> PyResult<Bound<'py, PyAny>> {
    view!(
        py, OwnThreads,
        holder: own.holder.map(own_holder),
        waiting: own.waiting,
        longest_wait: own.longest_wait.map(seconds),
    )
}

/// What `force_release` removes: the values that an inspection has seen, and no others.
#[pyclass(frozen, module = "redlatch._native")]
pub(crate) struct Seen(Inspection);

fn inspection<'py>(py: Python<'py>, seen: Inspection) -> PyResult<Bound<'py, PyAny>> {
    let (state, holders) = match &seen.state {
        LockState::Free => ("free", &[][..]),
        LockState::Held(holder) => ("held", std::slice::from_ref(holder)),
        LockState::Shared(holders) => ("shared", &**holders),
        LockState::Reserved => ("reserved", &[][..]),
        LockState::NotALock(_) => ("not_a_lock", &[][..]),
        _ => ("undecided", &[][..]),
    };
    let holders: PyResult<Vec<_>> = holders.iter().map(|it| holder(py, it)).collect();
    let waiters: PyResult<Vec<_>> = seen.waiters.iter().map(|it| waiter(py, it)).collect();
    view!(
        py, Inspection,
        state: state,
        holders: holders?,
        waiters: waiters?,
        own_threads: own_threads(py, seen.own_threads)?,
        quarantine: seen.quarantine.map(seconds),
        seen: Seen(seen),
    )
}

#[pyfunction]
pub(crate) fn nodes<'py>(client: &Client, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let client = client.here(py)?;
    let nodes = detached(py, || Ok::<_, redlatch::Error>(client.nodes()))?;
    nodes.iter().map(|node| status(py, node)).collect()
}

#[pyfunction]
pub(crate) fn inspect<'py>(
    client: &Client,
    py: Python<'py>,
    name: Name,
) -> PyResult<Bound<'py, PyAny>> {
    let client = client.here(py)?;
    inspection(py, detached(py, || client.inspect(&name))?)
}

#[pyfunction]
pub(crate) fn force_release(client: &Client, py: Python<'_>, seen: &Seen) -> PyResult<bool> {
    let client = client.here(py)?;
    detached(py, || client.force_release(&seen.0))
}

#[pyfunction]
pub(crate) fn locks<'py>(
    client: &Client,
    py: Python<'py>,
    pattern: Name,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let client = client.here(py)?;
    let found: Vec<_> = detached(py, || client.locks(&pattern).collect::<Result<_, _>>())?;
    Ok(found
        .iter()
        .map(|lock| name(py, lock.resource().as_bytes()))
        .collect())
}
