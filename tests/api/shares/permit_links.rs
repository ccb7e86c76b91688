//! Permits over links that differ: a permit that is free is found by whoever waits for one.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use support::locks::LONG;
use support::proxy::{Mode, Proxy};
use support::servers::Servers;
use support::waiters::{BY_PUSH, await_keys, pushed};

const CLIENTS: usize = 12;
const PERMITS: usize = 6;

/// How often some of the holders release.
const ROUNDS: usize = 250;

/// A proxy before each server, each with a delay of its own.
fn link(servers: &Servers, number: usize) -> Vec<Proxy> {
    let proxies = servers.iter().map(|server| Proxy::start(server.port()));
    let proxies: Vec<_> = proxies.collect();
    for (index, proxy) in proxies.iter().enumerate() {
        let delay = Duration::from_micros([500, 1_500, 2_500][(number + index) % 3]);
        proxy.set(Mode::Delay {
            to_server: delay,
            to_client: delay,
        });
    }
    proxies
}

/// Half of the clients hold permits, and make no call meanwhile; the other half wait.
#[test]
fn a_permit_that_is_free_goes_to_a_waiter_whatever_the_links_differ() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let links: Vec<_> = (0..3).map(|number| link(&servers, number)).collect();
    let (report, granted) = channel();
    thread::scope(|scope| {
        let mut holders = Vec::new();
        let mut give_back = Vec::new();
        for index in 0..CLIENTS {
            let client = pushed(links[index % 3].iter().map(Proxy::url));
            let (sender, go_on) = channel::<()>();
            give_back.push(sender);
            let report = report.clone();
            scope.spawn(move || {
                loop {
                    let request = client.request("name").ttl(LONG).one_of(PERMITS as u32);
                    let guard = request.lock().unwrap();
                    report.send((index, guard.slot().unwrap())).unwrap();
                    let is_over = go_on.recv().is_err();
                    assert_eq!(guard.release(), Ok(()));
                    if is_over {
                        return;
                    }
                }
            });
        }
        let observer = pushed(servers.urls());
        for round in 0..ROUNDS {
            while holders.len() < PERMITS {
                let Ok(holder) = granted.recv_timeout(BY_PUSH) else {
                    panic!(
                        "round {round}: {holders:?} of {:#?}",
                        observer.inspect("name")
                    );
                };
                holders.push(holder);
            }
            // From one of them to all but one.
            for _ in 0..1 + round % (PERMITS - 1) {
                let (index, _) = holders.remove(round * 7 % holders.len());
                give_back[index].send(()).unwrap();
            }
        }
    });
    await_keys(&servers, &[]);
}
