//! This library.

use crate::work::{Cycle, Note, TTL};
use ::redlatch::LockClient;
use std::time::Duration;

/// How many permits there are.
const PERMITS: u32 = 8;

/// Which kind of lock is acquired, and how it is released.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// With `release()`, which waits for a majority's answer. So do the next four.
    Release,
    /// With a fencing token.
    Fenced,
    /// Two resources at once.
    Two,
    /// As a reader.
    Reader,
    /// One of [`PERMITS`].
    Permit,
    /// On servers that are the masters of replicated groups.
    Group,
    /// By dropping the guard, which waits for nothing.
    Drop,
}

/// A client of servers that were just started.
pub fn client(urls: &[String]) -> LockClient {
    // They have forgotten no lock that is still held. The restart guard changes no command; it
    // would only delay the first lock by a minute.
    // A long timeout: a machine that stalls for a moment must not end the whole run.
    let client = LockClient::builder().nodes(urls).restart_guard(false);
    let client = client.node_timeout(Duration::from_secs(1)).build();
    client.expect("the servers' URLs can be used")
}

/// A client of groups, for which the quarantine of the first use is as short as it can be.
fn group_client(urls: &[String]) -> LockClient {
    let urls = urls.iter().map(|url| format!("{url}?failover=true"));
    let client = LockClient::builder()
        .nodes(urls)
        .node_timeout(Duration::from_secs(1));
    let client = client
        .max_ttl(TTL)
        .failover_bound(Duration::from_millis(1))
        .build();
    client.expect("the servers' URLs can be used")
}

/// One client for all threads.
pub fn redlatch(urls: &[String], way: Way) -> Cycle {
    let client = if way == Way::Group {
        group_client(urls)
    } else {
        client(urls)
    };
    // Connects and waits as long as a busy machine needs: the measured calls do not wait.
    let resource = format!("versus:connect:{}", std::process::id());
    drop(
        client
            .lock(resource, TTL)
            .expect("a majority of the servers can be reached"),
    );
    Box::new(move |resource, waits, while_held| {
        let request = match way {
            Way::Release | Way::Group | Way::Drop => client.request(resource),
            Way::Fenced => client.request(resource).fenced(),
            Way::Two => client.request_all([resource, &format!("{resource}:second")]),
            Way::Reader => client.request(resource).shared(),
            Way::Permit => client.request(resource).one_of(PERMITS),
        };
        let request = request.ttl(TTL);
        let guard = if waits {
            request.lock().map(Some)
        } else {
            request.try_lock()
        };
        let guard = guard
            .expect("a majority of the servers answers")
            .expect("the lock is free");
        let permit = guard.slot();
        while_held(Note {
            permit: permit.map(u64::from),
            unknown: 0,
        });
        assert_eq!(
            permit.is_some_and(|permit| permit < PERMITS),
            way == Way::Permit
        );
        assert_eq!(guard.fencing_token().is_some(), way == Way::Fenced);
        if way == Way::Drop {
            assert!(guard.ensure_held().is_ok());
            drop(guard);
        } else {
            assert_eq!(guard.release(), Ok(()));
        }
    })
}
