//! Clients and threads that get in each other's way.

use super::setting::{LIMIT, append, client, formed, in_time, text, with_timeout};
use redlatch::{LockClient, RegisterError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::proxy::{Mode, proxied};

#[test]
fn a_distant_client_is_not_starved_by_one_that_is_near() {
    let (servers, near) = formed(3);
    let (proxies, urls) = proxied(&servers);
    let delay = Duration::from_millis(40);
    for proxy in &proxies {
        proxy.set(Mode::Delay {
            to_server: delay,
            to_client: delay,
        });
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let is_over_too = Arc::clone(&is_over);
    let busy = thread::spawn(move || {
        let register = near.register("a").unwrap();
        let mut changes = 0_u64;
        while !is_over_too.load(Ordering::SeqCst) {
            register.change(|_| Some(b"near".to_vec())).unwrap();
            changes += 1;
        }
        changes
    });
    let distant = client(&urls).register("a").unwrap();
    let start = Instant::now();
    let took = in_time(move || {
        for _ in 0..5 {
            distant.change(|_| Some(b"far".to_vec())).unwrap();
        }
        start.elapsed()
    });
    is_over.store(true, Ordering::SeqCst);
    eprintln!(
        "5 distant changes in {took:?}, {} near ones",
        busy.join().unwrap()
    );
}

#[test]
fn threads_that_wait_together_learn_together_that_there_is_no_majority() {
    let (servers, _) = formed(3);
    let client = with_timeout(&servers.urls(), Duration::from_millis(500));
    let register = client.register("a").unwrap();
    register.change(|_| Some(vec![1])).unwrap();
    servers.iter().for_each(|server| server.pause());
    let start = Instant::now();
    let threads: Vec<_> = (0..100)
        .map(|_| {
            let register = register.clone();
            thread::spawn(move || {
                let _ = register.change(|_| Some(vec![2])).unwrap_err();
                start.elapsed()
            })
        })
        .collect();
    let longest = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .max()
        .unwrap();
    eprintln!("100 threads have their errors after {longest:?}");
    assert!(longest < LIMIT, "{longest:?}");
}

#[test]
fn very_many_threads_of_one_client_lose_nothing() {
    const THREADS: usize = 300;
    let (servers, first) = formed(3);
    let second = client(&servers.urls());
    let calls = AtomicU64::new(0);
    let unsure = AtomicUsize::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let register = [&first, &second][number % 2].register("a").unwrap();
            let calls = &calls;
            let unsure = &unsure;
            scope.spawn(move || {
                for _ in 0..10 {
                    let add = |value: Option<&_>| {
                        calls.fetch_add(1, Ordering::Relaxed);
                        let count: u64 = text(value).map_or(0, |text| text.parse().unwrap());
                        Some((count + 1).to_string().into_bytes())
                    };
                    match register.change(add) {
                        Ok(_) => {}
                        // The other client has made more than eight changes before it could look.
                        Err(RegisterError::Unknown) => _ = unsure.fetch_add(1, Ordering::Relaxed),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let took = start.elapsed();
    eprintln!(
        "{} changes in {took:?}, {} calls",
        THREADS * 10,
        calls.into_inner()
    );
    let value = first.register("a").unwrap().read().unwrap();
    let count: usize = text(value.as_ref()).unwrap().parse().unwrap();
    let unsure = unsure.into_inner();
    assert!(
        (THREADS * 10 - unsure..=THREADS * 10).contains(&count),
        "{count}, {unsure} unsure"
    );
}

#[test]
fn clients_with_the_restart_guard_contend_on_new_servers() {
    contend(true);
}

#[test]
fn clients_without_the_restart_guard_contend_on_new_servers() {
    contend(false);
}

fn contend(has_guard: bool) {
    let (servers, _) = formed(3);
    let timeout = Duration::from_secs(5);
    let builder = || {
        let builder = LockClient::builder().nodes(servers.urls());
        builder.restart_guard(has_guard).node_timeout(timeout)
    };
    let clients: Vec<LockClient> = (0..8).map(|_| builder().build().unwrap()).collect();
    let start = Instant::now();
    let made = AtomicUsize::new(0);
    let unsure = AtomicUsize::new(0);
    thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| {
                for _ in 0..10 {
                    match client
                        .register("a")
                        .unwrap()
                        .change(|value| append(value, "x"))
                    {
                        Ok(_) => made.fetch_add(1, Ordering::Relaxed),
                        // A thread that the machine has left out while eight changes were made.
                        Err(RegisterError::Unknown) => unsure.fetch_add(1, Ordering::Relaxed),
                        Err(error) => panic!("{error}"),
                    };
                }
            });
        }
    });
    let made = made.into_inner();
    let unsure = unsure.into_inner();
    let value = clients[0].register("a").unwrap().read().unwrap();
    let count = text(value.as_ref()).map_or(0, |text| text.len());
    assert!(
        (made..=made + unsure).contains(&count),
        "{made} and {unsure} unsure, {count}"
    );
    assert!(unsure <= 8, "{unsure} of 80");
    eprintln!(
        "80 changes of 8 clients, {has_guard}, in {:?}",
        start.elapsed()
    );
    assert!(start.elapsed() < LIMIT);
}
