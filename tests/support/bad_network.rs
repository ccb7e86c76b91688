//! What must hold in a bad network, whatever its faults do to: bytes of RESP, or of TLS.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::eventually;
use super::locks::{LIMIT, LONG, all_nodes_client, can_be_acquired, take, with_long_timeout};
use super::proxy::{Mode, Proxy, proxied_by};
use super::redis::Server;
use super::servers::Servers;

/// All operations work on new connections through these proxies, which pass single bytes.
#[track_caller]
pub fn check_single_bytes(proxies: &[Proxy], urls: Vec<String>) {
    proxies.iter().for_each(|proxy| proxy.set(Mode::Bytewise));
    let client = all_nodes_client(urls);
    for round in 0..10 {
        let name = format!("bytes-{round}\r\n\0");
        let mut guard = take(&client, &name, LONG);
        assert!(
            client
                .try_lock(&name, LONG)
                .expect("all nodes answer")
                .is_none()
        );
        guard.extend(LONG).expect("all nodes answer");
        assert_eq!(guard.release(), Ok(()));
    }
    assert!(
        client
            .nodes()
            .iter()
            .all(|node| node.is_connected && node.version.is_some())
    );
    assert_eq!(proxies.iter().map(Proxy::accepted).sum::<usize>(), 3);
}

/// Four clients contend for a lock on five servers, whose proxies change between the faults of any
/// connection and these.
#[track_caller]
pub fn check_mutual_exclusion(proxy: impl Fn(&Server) -> Proxy, others: &[Mode]) {
    let servers = Servers::start(5);
    let (proxies, urls) = proxied_by(&servers, proxy);
    let delay = Duration::from_millis(30);
    let common = [
        Mode::Reset,
        Mode::Delay {
            to_server: delay,
            to_client: delay,
        },
        Mode::Bytewise,
        Mode::Refuse,
        Mode::Swallow,
        Mode::Vanish,
        Mode::Delay {
            to_server: Duration::ZERO,
            to_client: 4 * delay,
        },
    ];
    let modes = [&common, others].concat();
    let is_over = AtomicBool::new(false);
    let is_inside = AtomicBool::new(false);
    let turns = AtomicUsize::new(0);
    let round = Duration::from_millis(100);
    let contend = || {
        let client = with_long_timeout(urls.clone())
            .node_timeout(round)
            .build()
            .expect("good settings");
        while !is_over.load(Ordering::SeqCst) {
            let ttl = Duration::from_secs(5);
            if let Ok(Some(guard)) = client.request("chaos").ttl(ttl).try_lock_for(ttl) {
                assert!(!is_inside.swap(true, Ordering::SeqCst), "two at once");
                thread::sleep(Duration::from_micros(200));
                let was_inside = is_inside.swap(false, Ordering::SeqCst);
                assert!(was_inside && guard.ensure_held().is_ok());
                turns.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(contend);
        }
        let start = Instant::now();
        for step in 0.. {
            if start.elapsed() > Duration::from_secs(4) {
                break;
            }
            // Mostly one or two nodes have a fault, and sometimes three.
            proxies[step % 5].set(modes[step % modes.len()]);
            proxies[(step + 3 - usize::from(step % 11 == 0)) % 5].set(Mode::Pass);
            thread::sleep(Duration::from_millis(40));
        }
        proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(turns.into_inner() > 0);
    // Whatever was lost: the lock can be acquired again.
    assert!(eventually(LIMIT, || can_be_acquired(
        &all_nodes_client(servers.urls()),
        "chaos"
    )));
}
