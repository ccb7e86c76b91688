//! A real Prometheus scrapes `redlatch exporter`: the alerts fire, and the dashboard has data.
//! Where there is no Prometheus, the test is skipped, and says so; with
//! `REDLATCH_REQUIRE_PROMETHEUS=1`, which `./check` sets, it fails instead.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::exporter::Exporter;
use super::program::{Running, redlatch};
use serde_json::Value;
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, take};
use support::port::Port;
use support::servers::Servers;
use support::skip::skip;
use support::waiters::await_queued;

const ALERTS: &str = include_str!("../../../docs/prometheus/alerts.yml");
const DASHBOARD: &str = include_str!("../../../docs/grafana/redlatch.json");

/// Looked at once: where it is not, one line says so for all tests of this file.
fn is_installed() -> bool {
    static IS_INSTALLED: OnceLock<bool> = OnceLock::new();
    *IS_INSTALLED.get_or_init(|| {
        let is_there = ["prometheus", "promtool"].into_iter().all(|program| {
            let status = Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .status();
            status.is_ok_and(|status| status.success())
        });
        if !is_there {
            let missing = "prometheus cannot be run (Debian's package of this name), \
                and no test of it";
            skip("REDLATCH_REQUIRE_PROMETHEUS", missing);
        }
        is_there
    })
}

/// A server that scrapes the exporter every second, with the alerts at once.
struct Prometheus {
    port: Port,
    _running: Running,
}

impl Prometheus {
    fn start(folder: &Path, exporter: &Exporter) -> Self {
        let alerts = ALERTS
            .lines()
            .filter(|line| !line.trim_start().starts_with("for: "));
        let alerts = alerts.collect::<Vec<_>>().join("\n");
        fs::write(folder.join("alerts.yml"), alerts).expect("the folder is there");
        let configuration = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [alerts.yml]\n\
             scrape_configs:\n- job_name: redlatch\n  static_configs: [{{targets: ['{}']}}]\n",
            exporter.address
        );
        let file = folder.join("prometheus.yml");
        fs::write(&file, configuration).expect("the folder is there");
        let port = Port::choose();
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("data").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{}", port.number()))
            .arg("--log.level=error")
            .stdout(Stdio::null());
        Self {
            port,
            _running: Running(command.spawn().expect("it is installed")),
        }
    }

    /// The `data` of an answer of its HTTP API. `None` if it does not answer yet.
    fn data(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port.number())).ok()?;
        stream.set_read_timeout(Some(LIMIT)).ok()?;
        // HTTP/1.0: the body comes in one piece, until the end of the connection.
        let request = format!("GET /api/v1/{path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (_, body) = text.split_once("\r\n\r\n")?;
        let answer: Value = serde_json::from_str(body).ok()?;
        assert_ne!(answer["errorType"], "bad_data", "{path}: {answer}");
        Some(answer["data"].clone())
    }

    /// How many series the expression has now.
    fn series(&self, expression: &str) -> usize {
        let quoted: String = expression
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect();
        let data = self.data(&format!("query?query={quoted}"));
        data.and_then(|data| data["result"].as_array().map(Vec::len))
            .unwrap_or(0)
    }

    fn is_firing(&self, alert: &str) -> bool {
        let alerts = self
            .data("alerts")
            .map_or(Value::Null, |data| data["alerts"].clone());
        let alerts = alerts.as_array().map_or(&[][..], Vec::as_slice);
        alerts
            .iter()
            .any(|it| it["labels"]["alertname"] == alert && it["state"] == "firing")
    }
}

/// All expressions of the dashboard, for all jobs and locks.
fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().expect("targets").clone());
    let expression = |target: Value| target["expr"].as_str().expect("an expression").to_owned();
    targets
        .map(expression)
        .map(|it| it.replace("$job", ".*").replace("$lock", ".*"))
        .collect()
}

#[test]
fn the_dashboard_has_data_and_the_alerts_fire() {
    if !is_installed() {
        return;
    }
    let mut servers = Servers::start(3);
    let held = take(&all_nodes_client(servers.urls()), "orders:1", LONG);
    let waiter = Running::start(&mut redlatch(&servers, &["run", "orders:1", "--", "true"]));
    await_queued(&servers, "orders:1", 1);
    let exporter = Exporter::start(&servers, &["--pattern", "orders:*"]);
    let folder = tempfile::tempdir().expect("a folder");
    let prometheus = Prometheus::start(folder.path(), &exporter);
    let expressions = expressions();
    assert!(expressions.len() > 10, "{expressions:?}");
    let limit = 3 * LIMIT;
    for expression in &expressions {
        assert!(
            eventually(limit, || prometheus.series(expression) > 0),
            "no data: {expression}"
        );
    }
    assert!(
        eventually(limit, || prometheus.is_firing("RedlatchNodeWarning")),
        "on one machine"
    );
    for alert in [
        "RedlatchNodeDown",
        "RedlatchNoQuorum",
        "RedlatchLocksUnknown",
    ] {
        assert!(!prometheus.is_firing(alert), "{alert}");
    }
    servers[0].kill();
    assert!(eventually(limit, || prometheus.is_firing("RedlatchNodeDown")));
    assert!(!prometheus.is_firing("RedlatchNoQuorum"));
    servers[1].kill();
    assert!(eventually(limit, || prometheus.is_firing("RedlatchNoQuorum")));
    assert!(eventually(limit, || prometheus.is_firing("RedlatchLocksUnknown")));
    assert!(
        !prometheus.is_firing("RedlatchQuarantined"),
        "they are down"
    );
    drop((held, waiter));
}

#[test]
fn a_quarantine_of_too_many_nodes_is_an_alert() {
    if !is_installed() {
        return;
    }
    let servers = Servers::start(3);
    let exporter = Exporter::start_guarded(&servers);
    let folder = tempfile::tempdir().expect("a folder");
    let prometheus = Prometheus::start(folder.path(), &exporter);
    assert!(eventually(3 * LIMIT, || prometheus.is_firing("RedlatchQuarantined")));
    assert!(!prometheus.is_firing("RedlatchNoQuorum"), "they are up");
}

/// Runs promtool with this on its stdin.
#[track_caller]
fn promtool(arguments: &[&str], text: &str) {
    let mut command = Command::new("promtool");
    let piped = command.args(arguments).stdin(Stdio::piped());
    let piped = piped.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("it is installed");
    child
        .stdin
        .take()
        .expect("it is piped")
        .write_all(text.as_bytes())
        .expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
}

#[test]
fn promtool_finds_nothing_wrong_with_the_alerts_and_the_metrics() {
    if !is_installed() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("alerts.yml");
    fs::write(&file, ALERTS).expect("the folder is there");
    promtool(&["check", "rules", &file.display().to_string()], "");
    let servers = Servers::start(1);
    let held = take(
        &all_nodes_client(servers.urls()),
        b"odd \"\\\n\xff \xc3\xbc",
        LONG,
    );
    let exporter = Exporter::start(&servers, &["--pattern", "*"]);
    promtool(&["check", "metrics"], &exporter.page());
    drop(held);
}
