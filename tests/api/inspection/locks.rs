//! Inspecting locks.

use std::time::{Duration, Instant};

use redlatch::error::{NodeAnswer, ResourceError};
use redlatch::{
    Error, Holder, Inspection, LockClient, LockRequest, LockState, NodeError, NotALock,
};
use support::locks::{LIMIT, LONG, all_nodes_client, holders, take, value, with_long_timeout};
use support::servers::Servers;

#[track_caller]
fn look(client: &LockClient, resource: &str) -> Inspection {
    client
        .inspect(resource)
        .unwrap_or_else(|error| panic!("a majority answers: {error}"))
}

#[track_caller]
fn holder(client: &LockClient, resource: &str) -> Holder {
    match look(client, resource).state {
        LockState::Held(holder) => holder,
        other => panic!("{other:?}"),
    }
}

#[test]
fn inspect_says_whether_a_lock_is_free_or_held_and_by_which_owner() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let other = all_nodes_client(servers.urls());
    let free = look(&other, "job");
    assert_eq!(free.state, LockState::Free);
    for (view, url) in free.nodes.iter().zip(servers.urls()) {
        assert!(view.url.starts_with(&url), "{} is {url}", view.url);
        assert_eq!((&view.holder, view.agrees), (&Ok(None), false));
    }

    let request = client.request("job").ttl(LONG).owner("host-7:cron\n\0");
    let lock = request.try_lock().unwrap().unwrap();
    let held = look(&other, "job");
    let LockState::Held(holder) = &held.state else {
        panic!("{held:?}")
    };
    assert!(
        holder
            .owner()
            .is_some_and(|owner| owner == b"host-7:cron\n\0")
    );
    let remaining = holder.remaining.expect("it expires");
    assert!(
        remaining <= LONG && remaining > LONG - LIMIT,
        "{remaining:?}"
    );
    for view in &held.nodes {
        let holder = view.holder.as_ref().unwrap().as_ref().unwrap();
        assert!(
            view.agrees
                && holder
                    .owner()
                    .is_some_and(|owner| owner == b"host-7:cron\n\0")
        );
    }
    assert_eq!(lock.release(), Ok(()), "an inspection changes nothing");
    assert_eq!(look(&other, "job").state, LockState::Free);

    let lock = take(&client, "job", LONG);
    assert_eq!(
        self::holder(&other, "job").owner(),
        None,
        "no owner was set"
    );
    drop(lock);
    let both = client
        .request_all(["a", "b"])
        .owner("me")
        .try_lock()
        .unwrap();
    assert!(
        self::holder(&other, "b")
            .owner()
            .is_some_and(|owner| owner == "me")
    );
    drop(both);
}

#[test]
fn inspect_shows_the_new_owner_after_a_handoff_and_an_extension() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let first = client
        .request("job")
        .ttl(LONG)
        .owner("first")
        .lock()
        .unwrap();
    let waiting = {
        let client = client.clone();
        support::queue::spawn_waiter(move || {
            client
                .request("job")
                .ttl(LONG)
                .owner("second")
                .lock()
                .unwrap()
        })
    };
    assert_eq!(first.release(), Ok(()));
    let mut second = support::queue::finish(waiting);
    assert!(
        holder(&client, "job")
            .owner()
            .is_some_and(|owner| owner == "second")
    );
    // Its release and its extension compare the whole value, with the label.
    servers[0].command(&["DEL", "job"]);
    second.extend(LONG).unwrap();
    let is_back = || value(&servers[0], "job") == value(&servers[1], "job");
    assert!(support::eventually(LIMIT, is_back));
    assert_eq!(second.release(), Ok(()));
    assert_eq!(holders(&servers, "job"), 0);
}

#[test]
fn inspect_shows_any_value_under_the_key() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let all = |words: &[&str]| {
        servers
            .iter()
            .for_each(|server| drop(server.command(words)));
    };

    // Different values, none of them on a majority.
    for (server, foreign) in servers.iter().zip(["x", "y", "z"]) {
        server.command(&["SET", "k", foreign, "PX", "50000"]);
    }
    let seen = look(&client, "k");
    assert_eq!(seen.state, LockState::Undecided);
    assert!(
        seen.nodes
            .iter()
            .all(|view| matches!(&view.holder, Ok(Some(_))) && !view.agrees)
    );
    servers[0].command(&["DEL", "k"]);
    assert_eq!(
        look(&client, "k").state,
        LockState::Undecided,
        "it is free on no majority"
    );
    servers[1].command(&["DEL", "k"]);
    assert_eq!(look(&client, "k").state, LockState::Free);

    // A string with a ttl may be the lock of another program, if it is no longer than ours.
    all(&["SET", "k", "short", "PX", "50000"]);
    let seen = holder(&client, "k");
    assert!(seen.owner().is_none() && seen.remaining.is_some_and(|left| left <= LONG));
    assert!(
        client.nodes().iter().all(|node| node.last_error.is_none()),
        "no connection was lost"
    );
}

#[test]
fn data_that_is_no_lock_is_not_shown_as_one() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let long = "x".repeat(1_000_000);
    let table: [(&[&str], NotALock); 7] = [
        (&["SET", "k", "value"], NotALock::NoTtl),
        (&["SET", "k", ""], NotALock::Empty),
        (&["SET", "k", "", "PX", "50000"], NotALock::Empty),
        // Longer than a reply may be.
        (&["SET", "k", &long, "PX", "50000"], NotALock::TooLong),
        (&["LPUSH", "k", "x"], NotALock::NotAString),
        (&["HSET", "k", "field", "x"], NotALock::NotAString),
        (&["ZADD", "k", "1", "x"], NotALock::NotAString),
    ];
    for (words, kind) in table {
        for server in servers.iter() {
            server.command(&["DEL", "k"]);
            server.command(words);
        }
        let seen = look(&client, "k");
        assert_eq!(
            (&seen.state, seen.holder_count),
            (&LockState::NotALock(kind), 0),
            "{kind}"
        );
        for node in &seen.nodes {
            assert_eq!((&node.holder, node.not_a_lock), (&Ok(None), Some(kind)));
            assert!(!node.agrees);
        }
        // It is in the way of all clients, and of those without a ttl they are told.
        let tried = client.try_lock("k", LONG);
        let is_refused = match &tried {
            Err(Error::NotALock { reason, .. }) => *reason == kind && !words.contains(&"PX"),
            tried => matches!(tried, Ok(None)) && words.contains(&"PX"),
        };
        assert!(is_refused, "{words:?}: {tried:?}");
        let refused = client.force_release(&seen).unwrap_err();
        assert!(matches!(refused, Error::NotALock { .. }), "{refused}");
        // On a minority, it keeps nobody from the lock.
        servers[1].command(&["DEL", "k"]);
        servers[2].command(&["DEL", "k"]);
        let seen = look(&client, "k");
        assert_eq!(
            (&seen.state, seen.nodes[0].not_a_lock),
            (&LockState::Free, Some(kind))
        );
        let lock = take(&client, "k", LONG);
        assert!(matches!(look(&client, "k").state, LockState::Held(_)));
        assert_eq!(lock.release(), Ok(()));
    }
    assert!(
        client.nodes().iter().all(|node| node.last_error.is_none()),
        "no connection was lost"
    );
}

#[test]
fn a_minority_that_is_down_is_shown_and_a_majority_that_is_down_is_an_error() {
    let mut servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let lock = client.request("job").ttl(LONG).owner("me").lock().unwrap();
    servers[2].kill();
    let seen = look(&client, "job");
    assert!(
        matches!(&seen.state, LockState::Held(holder) if holder.owner().is_some()),
        "{seen:?}"
    );
    let agreeing: Vec<bool> = seen.nodes.iter().map(|view| view.agrees).collect();
    assert_eq!(agreeing, [true, true, false]);
    let error = seen.nodes[2].holder.as_ref().unwrap_err();
    assert!(
        matches!(
            error,
            NodeError::Disconnected(_) | NodeError::Unreachable { .. }
        ),
        "{error}"
    );

    servers[1].kill();
    let Error::NoQuorum(error) = client.inspect("job").unwrap_err() else {
        panic!()
    };
    assert_eq!(
        (error.reports().len(), error.answered(), error.needed()),
        (3, 1, 2)
    );
    let failed = |index: usize| matches!(error.reports()[index].answer, NodeAnswer::Failed(_));
    assert!(!failed(0) && failed(1) && failed(2), "{error}");
    assert_eq!(
        error.reports()[0].answer,
        NodeAnswer::Answered,
        "an inspection grants nothing"
    );
    let Error::NoQuorum(error) = client.force_release(&seen).unwrap_err() else {
        panic!()
    };
    assert_eq!(error.answered(), 1);
    drop(lock);
}

#[test]
fn inspect_waits_for_a_silent_node_for_the_node_timeout_only() {
    let servers = Servers::start(3);
    let lock = take(&all_nodes_client(servers.urls()), "job", LONG);
    let hurried = with_long_timeout(servers.urls())
        .node_timeout(Duration::from_secs(1))
        .build()
        .unwrap();
    assert!(matches!(look(&hurried, "job").state, LockState::Held(_)));
    servers[0].pause();
    let start = Instant::now();
    let seen = look(&hurried, "job");
    assert!(start.elapsed() < LIMIT);
    assert!(matches!(seen.state, LockState::Held(_)), "{seen:?}");
    assert!(
        matches!(seen.nodes[0].holder, Err(NodeError::TimedOut(_))),
        "{seen:?}"
    );
    servers[0].resume();
    drop(lock);
}

#[test]
fn no_printed_value_shows_the_token() {
    let servers = Servers::start(1);
    let client = all_nodes_client(servers.urls());
    let request = client.request("job").ttl(LONG).owner("me");
    let shown_request = format!("{request:?}");
    let lock = request.try_lock().unwrap().unwrap();
    let value = value(&servers[0], "job").expect("it is held");
    let (token, label) = value.split_at(20);
    assert_eq!(label, b"me");
    let seen = look(&client, "job");
    let texts = [
        format!("{lock:?}"),
        format!("{client:?}"),
        format!("{seen:?}"),
        shown_request,
    ];
    // As bytes, as digits, and as text with escapes, each in two consecutive bytes.
    let numbers = format!("{}, {}, {}", token[0], token[1], token[2]);
    let digits: String = token[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let escaped = token[..4].escape_ascii().to_string();
    for text in texts {
        for secret in [&numbers, &digits, &escaped] {
            assert!(!text.contains(secret.as_str()), "{text} shows {secret}");
        }
    }
}

#[test]
fn labels_above_the_maximum_length_are_refused() {
    let servers = Servers::start(1);
    let client = all_nodes_client(servers.urls());
    let longest = vec![b'x'; 256];
    let lock = client
        .request("job")
        .owner(&longest)
        .try_lock()
        .unwrap()
        .unwrap();
    assert!(
        holder(&client, "job")
            .owner()
            .is_some_and(|owner| owner == longest)
    );
    assert_eq!(lock.release(), Ok(()));
    let refused = client.request("job").owner([b'x'; 257]).lock().unwrap_err();
    let too_long = ResourceError::OwnerTooLong {
        length: 257,
        most: 256,
    };
    assert_eq!(refused, Error::Resource(too_long));
    // An empty label is not a label.
    let lock = client.request("job").owner("").try_lock().unwrap();
    assert_eq!(holder(&client, "job").owner(), None);
    drop(lock);
}

#[test]
fn owned_by_this_thread_names_host_process_and_thread() {
    let servers = Servers::start(1);
    let client = all_nodes_client(servers.urls());
    let label = |name: &str| {
        let client = client.clone();
        let work = move || {
            let request = client.request("job").owned_by_this_thread();
            let lock = request.try_lock().unwrap().unwrap();
            let holder = holder(&client, "job");
            lock.release().unwrap();
            let owner = holder.owner().expect("it says so");
            owner.as_str().expect("a label that is text").to_owned()
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .unwrap();
        thread.join().unwrap()
    };
    let owner = label("worker 7");
    assert!(
        owner.ends_with(&format!(":{}:worker 7", std::process::id())),
        "{owner}"
    );
    assert!(!owner.starts_with(':'), "the host has a name: {owner}");
    // A long name is cut between two characters.
    let owner = label(&"\u{20ac}".repeat(200));
    assert!(owner.len() <= 256 && owner.len() > 252, "{}", owner.len());
    assert!(owner.ends_with('\u{20ac}'));
}

#[test]
fn a_request_without_an_owner_has_that_of_its_client() {
    let servers = Servers::start(1);
    let builder = || with_long_timeout(servers.urls());
    let owner = |request: LockRequest<'_>, client: &LockClient| {
        let lock = request.ttl(LONG).try_lock().unwrap().unwrap();
        let holder = holder(client, "job");
        drop(lock);
        holder.owner().map(|owner| owner.to_string())
    };
    let client = builder().owner("all").build().unwrap();
    let request = || client.request("job");
    let text = |label: &str| Some(label.to_owned());
    assert_eq!(owner(request(), &client), text("all"));
    assert_eq!(owner(request().owner("mine"), &client), text("mine"));
    assert_eq!(owner(request().owner(""), &client), None);
    assert_eq!(owner(request().fenced(), &client), text("all"));
    let election = client.election("leader").ttl(LONG);
    let term = election.campaign().unwrap();
    let leader = election.leader().unwrap().unwrap();
    assert!(
        leader.owner().is_some_and(|owner| owner == "all"),
        "{leader:?}"
    );
    drop(term);

    let client = builder().owned_by_this_process().build().unwrap();
    let name = owner(client.request("job"), &client).unwrap();
    let (host, process) = name.rsplit_once(':').unwrap();
    assert_eq!(process, std::process::id().to_string());
    assert!(!host.is_empty());
    let client = builder().build().unwrap();
    assert_eq!(owner(client.request("job"), &client), None, "it costs time");
}
