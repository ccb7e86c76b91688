//! Draws the terminal session that the README shows, from what the command prints:
//!
//! ```sh
//! cargo test --test cli -- --ignored draws_the_session
//! ```

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::program::{Running, end, redlatch};
use super::terminal::in_terminal;
use support::locks::all_nodes_client;
use support::servers::Servers;
use support::waiters::await_queued;

const LINE: usize = 19;
const COLUMN: f64 = 7.9;

/// The name of the file, and the colours of the window, the text, prompts and commands.
const THEMES: [(&str, [&str; 3]); 2] = [
    ("command-light.svg", ["#f6f8fa", "#1f2328", "#0550ae"]),
    ("command-dark.svg", ["#161b22", "#e6edf3", "#79c0ff"]),
];

#[test]
#[ignore = "it writes the README's picture"]
fn draws_the_session() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    std::thread::sleep(Duration::from_secs(2)); // as an uptime
    let held = client
        .request("deploy")
        .owner("host-7:4711")
        .ttl(Duration::from_secs(30))
        .lock();
    let held = held.expect("it is free");
    let read = |owner: &str| client.request("catalog").owner(owner).shared().lock();
    let readers = [read("host-1:77"), read("host-3:1204")];
    let first = ["run", "deploy", "--owner", "host-2:815", "--", "true"];
    let first = Running::start(&mut redlatch(&servers, &first));
    await_queued(&servers, "deploy", 1);

    let mut session = String::new();
    let mut show = |arguments: &str| {
        let ended = end(&mut redlatch(
            &servers,
            &arguments.split(' ').collect::<Vec<_>>(),
        ));
        let _ = write!(
            session,
            "$ redlatch {arguments}\n{}{}",
            ended.stdout, ended.stderr
        );
    };
    show("status");
    show("inspect deploy");
    show("waiters deploy");
    show("top");
    drop(readers);
    show("run deploy --no-wait -- true");

    let waiting = in_terminal(&servers, "run deploy -- echo deployed");
    await_queued(&servers, "deploy", 2);
    std::thread::sleep(Duration::from_millis(3_600));
    let _ = session.write_str("$ redlatch run deploy -- ./deploy.sh\n");
    drop(held);
    let printed = waiting.end().stdout.replace('\r', "");
    let lines: Vec<&str> = printed.split("\x1b[K").collect();
    let line = lines.iter().rfind(|line| line.contains("second in line"));
    let _ = writeln!(session, "{}\ndeployed", line.expect("the line was shown"));
    assert_eq!(first.end().code, 0);

    session = session.replace("-- true", "-- ./deploy.sh");
    // The ports of the test's servers, as long as nodes of the user's.
    for (index, url) in servers.urls().iter().enumerate() {
        let node = format!("redis://10.0.0.{}:6379", index + 1);
        session = session.replace(url, &format!("{node:<0$}", url.len()));
    }
    // The servers of a test are on one machine and keep nothing, which these are about.
    let is_shown = |line: &&str| !line.starts_with("WARNING ");
    session = session
        .lines()
        .filter(is_shown)
        .map(|line| format!("{line}\n"))
        .collect();
    session = session.replace("  /0", "/0  ").replace(" /0", "/0 ");
    for (file, colours) in THEMES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../docs")
            .join(file);
        fs::write(path, svg(&session, colours)).expect("the folder is there");
    }
}

fn svg(session: &str, [window, text, command]: [&str; 3]) -> String {
    let columns = session
        .lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(80);
    let width = columns as f64 * COLUMN + 32.0;
    let height = (session.lines().count() + 1) * LINE + 12;
    let mut body = String::new();
    for (index, line) in session.lines().enumerate() {
        let line = line.replace('&', "&amp;").replace('<', "&lt;");
        let y = (index + 1) * LINE + 10;
        let is_command = line.starts_with("$ ");
        let fill = if is_command { command } else { text };
        let _ = writeln!(
            body,
            "<text x=\"16\" y=\"{y}\" fill=\"{fill}\">{line}</text>"
        );
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height}\" \
         viewBox=\"0 0 {width:.0} {height}\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" \
         fill=\"{window}\"/>\n<g font-family=\"ui-monospace, monospace\" font-size=\"13\" \
         xml:space=\"preserve\" style=\"white-space: pre\">\n{body}</g>\n</svg>\n"
    )
}
