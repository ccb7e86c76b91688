//! Over TLS: one thread and 32 threads beside plain connections and beside rslock, how long a
//! reconnect takes with and without resumption, and what a connection takes of memory.

use super::Context;
use crate::lane::{Lane, Setup, fastest, median, take_turns};
use crate::peers::Peer;
use crate::report::{Figure, Findings, Table, Wanted};
use crate::servers::{AUTHORITY, Servers};
use crate::work::{Kind, Slice, TTL};
use redlatch::{LockClient, TlsSettings};
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

const RSLOCK: [Peer; 3] = [Peer::RslockThreads, Peer::Rslock, Peer::RslockSingle];

pub fn run(context: &Context) -> Vec<Findings> {
    [1, 32]
        .map(|threads| beside_plain(context, threads))
        .into_iter()
        .chain([costs(context)])
        .collect()
}

fn beside_plain(context: &Context, threads: usize) -> Findings {
    let servers = &context.servers;
    let (plain, secure) = (servers.urls(), servers.secure_urls());
    let setup = |urls| Setup { servers, urls, kind: Kind::Free, threads, processes: 1 };
    let named = |lane: Lane, suffix: &str| {
        let name = format!("{}{suffix}", lane.name);
        lane.named(&name)
    };
    let label = format!("tls{threads}");
    let ours = [Peer::Redlatch, Peer::RedlatchDrop];
    let mut lanes: Vec<Lane> =
        ours.map(|peer| setup(&plain).lane(peer, &format!("plain{threads}"))).into();
    let over_tls = ours.into_iter().chain(RSLOCK);
    lanes.extend(over_tls.map(|peer| named(setup(&secure).lane(peer, &label), ", TLS")));
    take_turns(&mut lanes, 2 * context.turns, context.slice, servers);

    let [plain, plain_drop, tls, tls_drop, rslock @ ..] = &lanes[..] else {
        unreachable!("there is a lane for each peer")
    };
    let blocking = &rslock[0];
    let rslock = fastest(&rslock.iter().collect::<Vec<_>>());
    let figure = |what: &str, measured, wanted| Figure {
        what: format!("TLS, threads: {threads}, {what}"),
        measured,
        wanted: Wanted::AtLeast(wanted),
    };
    let rate = Slice::rate;
    let figures = vec![
        figure("release(): times the plain pairs/s", tls.times(plain, rate), 0.6),
        figure("drop: times the plain pairs/s", tls_drop.times(plain_drop, rate), 0.6),
        figure("release(): times rslock's, in threads, TLS", tls.times(blocking, rate), 1.2),
        // With many threads, rslock's fastest way has no threads, but tasks on one.
        figure("release(): times rslock's fastest, TLS", tls.times(rslock, rate), 1.0),
    ];
    Findings {
        title: context.title(&format!("tls, threads: {threads}")),
        about: "Locks that are free, over TLS 1.3 and over plain connections of the same servers. \
                All of the libraries use rustls with ring."
            .to_owned(),
        table: Table::of_lanes(&lanes),
        figures,
        groups: Vec::new(),
    }
}

/// A configuration that trusts the servers, and resumes no session unless it is changed.
fn config(servers: &Servers) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let file = servers.directory().join(AUTHORITY);
    roots.add(CertificateDer::from_pem_file(file).expect("it was written")).expect("an authority");
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.resumption = Resumption::disabled();
    config
}

fn client(urls: &[String], tls: TlsSettings) -> LockClient {
    let builder = LockClient::builder().nodes(urls).restart_guard(false).tls(tls);
    let builder = builder.node_timeout(Duration::from_secs(5)).wait_for_all(true);
    builder.build().expect("the servers' URLs can be used")
}

/// How long a lock takes whose connections the servers have just closed.
fn reconnects(context: &Context, clients: &[LockClient]) -> Vec<f64> {
    let mut times = vec![Vec::new(); clients.len()];
    for round in 0..40 * context.turns {
        for (client, times) in clients.iter().zip(&mut times) {
            let lock = || client.lock(format!("versus:reconnect:{round}"), TTL);
            drop(lock().expect("the servers answer"));
            context.servers.disconnect();
            let start = Instant::now();
            let guard = lock().expect("the servers answer");
            times.push(start.elapsed().as_secs_f64());
            drop(guard);
        }
    }
    times.into_iter().map(median).collect()
}

/// The memory of this process that is in use, in bytes.
fn resident() -> f64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.expect("the second number") * 4096.0
}

/// Clients that have used their connections, and how much each connection takes with its share of a
/// client.
fn memory(urls: &[String], tls: &TlsSettings) -> (Vec<LockClient>, f64) {
    const CLIENTS: usize = 100;
    let before = resident();
    let clients: Vec<_> = (0..CLIENTS).map(|_| client(urls, tls.clone())).collect();
    for client in &clients {
        drop(client.lock("versus:memory", TTL).expect("the servers answer"));
    }
    let used = resident() - before;
    (clients, used / (CLIENTS * urls.len()) as f64)
}

fn costs(context: &Context) -> Findings {
    let servers = &context.servers;
    let (plain, secure) = (servers.urls(), servers.secure_urls());
    let file = servers.directory().join(AUTHORITY);
    let resuming = TlsSettings::default().ca_file(file);
    let full = TlsSettings::from_config(Arc::new(config(servers)));
    let clients = [
        client(&plain, TlsSettings::default()),
        client(&secure, full),
        client(&secure, resuming.clone()),
    ];
    let times = reconnects(context, &clients);
    // None of them is dropped before both are measured: its memory would be used again.
    let all = [memory(&plain, &resuming), memory(&secure, &resuming)];
    let taken = [all[0].1, all[1].1];
    let figure = |what: &str, measured, wanted| Figure {
        what: format!("TLS, {what}"),
        measured,
        wanted: Wanted::AtMost(wanted),
    };
    let mut table = Table::new(&["", "plain", "TLS, full handshakes", "TLS, resumed sessions"]);
    let millis = times.iter().map(|time| format!("{:.2} ms", time * 1e3));
    table.row([["reconnect".to_owned()].into(), millis.collect::<Vec<_>>()].concat());
    let [plain, secure] = taken.map(|bytes| format!("{:.1} KiB", bytes / 1024.0));
    table.row(["a connection's memory".to_owned(), plain, String::new(), secure]);
    Findings {
        title: context.title("tls, costs"),
        about:
            "A lock on all nodes whose connections the servers have just closed, and the memory of \
                an idle connection."
                .to_owned(),
        table,
        figures: vec![
            figure("reconnect without TLS, ms", times[0] * 1e3, 10.0),
            figure("reconnect with full handshakes, ms", times[1] * 1e3, 50.0),
            figure("reconnect with resumption, ms", times[2] * 1e3, 50.0),
            figure("memory of a plain connection, KiB", taken[0] / 1024.0, 100.0),
            figure("memory of a TLS connection, KiB", taken[1] / 1024.0, 200.0),
        ],
        groups: Vec::new(),
    }
}
