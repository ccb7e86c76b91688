//! Locks that another process resumes, by a token: see also `cli/tests`, with processes.

use std::time::{Duration, Instant};

use redlatch::error::NotResumable;
use redlatch::{Error, LockClient, LockGuard, LockState, LockToken, LossReason};
use support::journal::{names, recorded_client};
use support::locks::{
    BRIEF, LIMIT, LONG, all_nodes_client, can_be_acquired, gone, holders, pause, pttl, resume,
    take, value, with_long_timeout, without_restart_guard,
};
use support::loss::loss_in;
use support::servers::Servers;

/// The token as it goes to another process.
fn sent(guard: LockGuard) -> LockToken {
    let text = guard.into_token().expect("the lock is held").to_string();
    text.parse().expect("it is the text of a token")
}

/// The client that acquires a lock, and one of another process.
fn two(servers: &Servers) -> [LockClient; 2] {
    [
        all_nodes_client(servers.urls()),
        all_nodes_client(servers.urls()),
    ]
}

#[test]
fn another_client_resumes_a_lock_and_has_it_until_it_releases_it() {
    let servers = Servers::start(3);
    let [api, worker] = two(&servers);
    let token = sent(take(&api, "video", LONG));
    assert_eq!(holders(&servers, "video"), 3, "nothing was released");
    assert!(
        api.try_lock("video", LONG).unwrap().is_none(),
        "it is not the first client's now"
    );
    drop(api);
    assert_eq!(holders(&servers, "video"), 3);

    let mut lock = worker.request("video").ttl(LONG).resume(&token).unwrap();
    assert_eq!(lock.resource(), "video");
    assert!(
        lock.remaining() > LONG / 2 && lock.remaining() < LONG,
        "{:?}",
        lock.remaining()
    );
    lock.extend(LONG).unwrap();
    let other = all_nodes_client(servers.urls());
    assert!(other.try_lock("video", LONG).unwrap().is_none());
    assert_eq!(lock.release(), Ok(()));
    assert!(gone(&servers, "video"));
    take(&other, "video", LONG).release().unwrap();
}

#[test]
fn a_lock_is_extended_by_one_side_only() {
    const TTL: Duration = Duration::from_secs(2);
    let servers = Servers::start(3);
    // Rounds so short that a lock with this ttl can be kept alive.
    let client = || without_restart_guard(servers.urls()).node_timeout(Duration::from_millis(400));
    let [api, worker] = [(); 2].map(|()| client().build().expect("the settings are good"));
    let token = sent(api.request("kept").ttl(TTL).keep_alive().lock().unwrap());
    assert!(gone(&servers, "kept"), "nobody extends it any more");
    let lost = worker.request("kept").ttl(LONG).resume(&token);
    assert_eq!(loss_in(lost.map(drop)), Some(LossReason::Gone));

    let token = sent(api.request("kept").ttl(TTL).keep_alive().lock().unwrap());
    let kept = worker
        .request("kept")
        .ttl(TTL)
        .keep_alive()
        .resume(&token)
        .unwrap();
    let start = Instant::now();
    while start.elapsed() < 2 * TTL {
        std::thread::sleep(TTL / 20);
        assert_eq!(kept.ensure_held(), Ok(()), "after {:?}", start.elapsed());
    }
    drop(kept);
    assert!(gone(&servers, "kept"));
}

#[test]
fn only_who_has_the_token_has_the_lock() {
    let servers = Servers::start(3);
    let [api, worker] = two(&servers);
    let other_lock = sent(take(&api, "other", LONG));
    let held = take(&api, "video", LONG);
    let before = value(&servers[0], "video");
    for name in ["video", "nobody"] {
        let refused = worker.request(name).ttl(LONG).resume(&other_lock).map(drop);
        assert_eq!(
            refused,
            Err(Error::NotResumable(NotResumable::OtherNames)),
            "{name}"
        );
    }
    assert_eq!(holders(&servers, "nobody"), 0, "resuming sets nothing");
    assert_eq!(value(&servers[0], "video"), before);
    assert_eq!(held.release(), Ok(()));
    assert!(
        !can_be_acquired(&worker, "other"),
        "a wrong name has released nothing"
    );
}

#[test]
fn a_lock_goes_with_its_fencing_token_its_slot_its_owner_and_all_its_names() {
    let servers = Servers::start(3);
    let [api, worker] = two(&servers);
    let fenced = api
        .request("fenced")
        .ttl(LONG)
        .fenced()
        .owner("the API")
        .lock()
        .unwrap();
    let fence = fenced.fencing_token();
    let token = sent(fenced);
    assert!(fence.is_some() && token.fencing_token() == fence);
    let lock = worker.request("fenced").ttl(LONG).resume(&token).unwrap();
    assert_eq!(lock.fencing_token(), fence);
    let LockState::Held(holder) = worker.inspect("fenced").unwrap().state else {
        panic!()
    };
    assert_eq!(
        holder.owner().map(|name| name.to_string()),
        Some("the API".to_owned())
    );
    lock.release().unwrap();
    let next = worker.request("fenced").ttl(LONG).fenced().lock().unwrap();
    assert!(next.fencing_token() > fence);

    let request = || api.request("gpu").ttl(LONG).one_of(2);
    let first = request().lock().unwrap();
    let second = request().lock().unwrap();
    let slot = second.slot();
    let token = sent(second);
    assert!(request().try_lock().unwrap().is_none(), "both are taken");
    let lock = worker.request("gpu").ttl(LONG).resume(&token).unwrap();
    assert_eq!(lock.slot(), slot);
    assert_eq!(lock.release(), Ok(()));
    assert_eq!(request().lock().unwrap().slot(), slot);
    drop(first);

    let reader = sent(api.request("read").ttl(LONG).shared().lock().unwrap());
    let reader = worker.request("read").ttl(LONG).resume(&reader).unwrap();
    assert!(!can_be_acquired(&api, "read"));
    assert!(
        api.request("read")
            .ttl(LONG)
            .shared()
            .try_lock()
            .unwrap()
            .is_some()
    );
    assert_eq!(reader.release(), Ok(()));

    let both = ["b", "a"];
    let token = sent(api.request_all(both).ttl(LONG).lock().unwrap());
    let lock = worker.request_all(both).ttl(LONG).resume(&token).unwrap();
    assert_eq!(lock.resources().count(), 2);
    assert_eq!(lock.release(), Ok(()));
    assert!(gone(&servers, "a") && gone(&servers, "b"));
}

#[test]
fn a_token_with_other_names_resumes_nothing_and_ends_nothing() {
    let servers = Servers::start(3);
    let [api, worker] = two(&servers);
    let refused = |names: &[&str], token: &LockToken| {
        let result = worker.request_all(names).ttl(LONG).resume(token).map(drop);
        assert_eq!(
            result,
            Err(Error::NotResumable(NotResumable::OtherNames)),
            "{names:?}"
        );
    };
    let one = sent(take(&api, "a", LONG));
    [&["b"][..], &["a", "b"]]
        .iter()
        .for_each(|names| refused(names, &one));
    let both = sent(api.request_all(["c", "d"]).ttl(LONG).lock().unwrap());
    [&["c"][..], &["c", "e"], &["c", "d", "e"]]
        .iter()
        .for_each(|names| refused(names, &both));
    for name in ["a", "c", "d"] {
        assert_eq!(holders(&servers, name), 3, "{name}");
    }
    let lock = worker
        .request_all(["d", "c"])
        .ttl(LONG)
        .resume(&both)
        .unwrap();
    assert_eq!(lock.release(), Ok(()));
    // Of a prefix as well.
    let urls = servers.urls();
    let elsewhere = LockClient::builder()
        .nodes(urls)
        .restart_guard(false)
        .key_prefix("x:");
    let lost = elsewhere
        .build()
        .unwrap()
        .request("a")
        .ttl(LONG)
        .resume(&one)
        .map(drop);
    assert_eq!(lost, Err(Error::NotResumable(NotResumable::OtherNames)));
}

#[test]
fn a_token_is_good_for_another_worker_when_the_first_one_is_gone() {
    let servers = Servers::start(3);
    let [api, worker] = two(&servers);
    let token = sent(take(&api, "video", LONG));
    std::mem::forget(worker.request("video").ttl(LONG).resume(&token).unwrap());
    let lock = api.request("video").ttl(LONG).resume(&token).unwrap();
    assert_eq!(lock.release(), Ok(()));
    let lost = worker.request("video").ttl(LONG).resume(&token);
    assert_eq!(
        loss_in(lost.map(drop)),
        Some(LossReason::Gone),
        "it was released"
    );
}

#[test]
fn resuming_needs_a_majority_and_can_be_tried_again() {
    let mut servers = Servers::start(3);
    let api = all_nodes_client(servers.urls());
    let token = sent(take(&api, "video", LONG));
    pause(&servers, 2);
    let hasty = with_long_timeout(servers.urls()).node_timeout(Duration::from_millis(200));
    let hasty = hasty
        .connect_timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    let refused = hasty.request("video").ttl(LONG).resume(&token).map(drop);
    assert!(matches!(refused, Err(Error::NoQuorum(_))), "{refused:?}");
    resume(&servers, 2);

    // One node has forgotten the lock, and gets it back.
    servers[0].restart();
    let worker = all_nodes_client(servers.urls());
    let lock = worker.request("video").ttl(LONG).resume(&token).unwrap();
    assert!(support::eventually(LIMIT, || holders(&servers, "video") == 3));
    assert!(servers.iter().all(|server| pttl(server, "video") > 0));
    assert_eq!(lock.release(), Ok(()));
    assert!(gone(&servers, "video"));
}

#[test]
fn resuming_shortens_nothing() {
    let servers = Servers::start(3);
    let [api, worker] = two(&servers);
    let token = sent(take(&api, "video", LONG));
    let lock = worker.request("video").ttl(BRIEF).resume(&token).unwrap();
    assert!(lock.remaining() <= BRIEF);
    let half = i64::try_from(LONG.as_millis() / 2).unwrap();
    assert!(servers.iter().all(|server| pttl(server, "video") > half));
    drop(lock);
    assert!(
        gone(&servers, "video"),
        "the release is sent to all of them"
    );
}

#[test]
fn what_cannot_be_given_away_is_refused() {
    let servers = Servers::start(3);
    let [api, worker] = two(&servers);
    let lost = take(&api, "lost", BRIEF);
    assert!(lost.wait_lost(LIMIT).is_some());
    assert_eq!(
        loss_in(lost.into_token().map(drop)),
        Some(LossReason::Expired)
    );

    let reader = || api.request("read").ttl(LONG).shared();
    let readers = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| reader().lock().unwrap()));
        threads.map(|thread| thread.join().unwrap())
    });
    let [first, second] = readers.map(LockGuard::into_token);
    // Unless the second came too late for a share with the first, which a slow machine may do.
    let are_apart = first.is_ok();
    assert!(
        are_apart || matches!(first, Err(Error::NotResumable(_))),
        "{first:?}"
    );
    let second = second.expect("it is alone by now");
    drop(worker.request("read").ttl(LONG).resume(&second).unwrap());

    let text = worker
        .request("video")
        .ttl(LONG)
        .resume(&second)
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(!text.contains(&second.to_string()), "{text}");
    assert!(worker.request("").resume(&second).is_err());
    let ttl = worker
        .request("read")
        .ttl(Duration::MAX)
        .resume(&second)
        .map(drop);
    assert!(matches!(ttl, Err(Error::Ttl(_))), "{ttl:?}");
    worker.cancel_token().cancel();
    let cancelled = worker.request("read").ttl(LONG).resume(&second).map(drop);
    assert_eq!(cancelled, Err(Error::Cancelled));
}

#[test]
fn a_listener_is_told_that_a_lock_goes_and_comes() {
    let servers = Servers::start(3);
    let (client, journal) = recorded_client(with_long_timeout(servers.urls()));
    let token = sent(take(&client, "video", LONG));
    client
        .request("video")
        .ttl(LONG)
        .resume(&token)
        .unwrap()
        .release()
        .unwrap();
    drop(client.request("video").ttl(LONG).resume(&token));
    let told = journal.take_lock_events();
    let expected = [
        "attempt",
        "acquired",
        "let_expire",
        "acquired",
        "released",
        "failed",
    ];
    assert_eq!(names(&told), expected);
}
