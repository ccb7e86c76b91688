//! How long a reconnect over TLS takes with and without resumption, and what a connection takes of
//! memory.

use super::{Context, On};
use crate::lane::median;
use crate::report::{Table, seconds};
use crate::work::TTL;
use redlatch::{LockClient, TlsSettings};
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub fn run(context: &Context) {
    let urls = |on| context.urls(on).expect("these servers are always there");
    let plain = urls(On::Redis);
    let secure = urls(On::RedisTls);
    let authority = context.servers.authority();
    let full = TlsSettings::from_config(Arc::new(config(&authority)));
    let resuming = TlsSettings::default().ca_file(authority);
    let clients = [
        client(&plain, TlsSettings::default()),
        client(&secure, full),
        client(&secure, resuming.clone()),
    ];
    let times = reconnects(context, &clients);
    // None of them is dropped before both are measured: its memory would be used again.
    let all = [memory(&plain, &resuming), memory(&secure, &resuming)];
    let [plain, secure] = [&all[0], &all[1]].map(|(_, bytes)| format!("{:.1} KiB", bytes / 1024.0));
    let mut table = Table::new(&["", "plain", "TLS, full handshakes", "TLS, resumed sessions"]);
    let mut cells = vec!["reconnect".to_owned()];
    cells.extend(times.into_iter().map(seconds));
    table.row(cells);
    table.row([
        "a connection's memory".to_owned(),
        plain,
        String::new(),
        secure,
    ]);
    let about = "A lock on all nodes whose connections the servers have just closed, and the \
                 memory of an idle connection.";
    table.print("tls, costs, 5 nodes", about);
}

/// A configuration that trusts the servers, and resumes no session.
fn config(authority: &Path) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(authority).expect("it was written");
    roots.add(certificate).expect("an authority");
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    config
}

fn client(urls: &[String], tls: TlsSettings) -> LockClient {
    let builder = LockClient::builder()
        .nodes(urls)
        .restart_guard(false)
        .tls(tls);
    let builder = builder
        .node_timeout(Duration::from_secs(5))
        .wait_for_all(true);
    builder.build().expect("the servers' URLs can be used")
}

/// How many seconds a lock takes whose connections the servers have just closed.
fn reconnects(context: &Context, clients: &[LockClient]) -> Vec<f64> {
    let mut times = vec![Vec::new(); clients.len()];
    for round in 0..280 {
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
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<f64>().ok());
    pages.expect("the second number") * 4096.0
}

/// Clients that have used their connections, and how many bytes each connection takes with its
/// share of a client.
fn memory(urls: &[String], tls: &TlsSettings) -> (Vec<LockClient>, f64) {
    const CLIENTS: usize = 100;
    let before = resident();
    let clients: Vec<_> = (0..CLIENTS).map(|_| client(urls, tls.clone())).collect();
    for client in &clients {
        drop(
            client
                .lock("versus:memory", TTL)
                .expect("the servers answer"),
        );
    }
    let used = resident() - before;
    (clients, used / (CLIENTS * urls.len()) as f64)
}
