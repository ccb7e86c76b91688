//! The example `stock_transfer`, whose two processes are killed at each pair of steps: no crate is
//! lost or made, and no transaction stays open once both have started again, in either order.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use std::env;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use redlatch::LockClient;

#[path = "../../api/transactions/group.rs"]
mod group;
#[path = "../examples/stock_transfer.rs"]
#[allow(
    dead_code,
    reason = "its main reads the command line, which is this test's here"
)]
mod stock_transfer;

use group::formed;
use stock_transfer::{Shelf, warehouse};

/// The arguments of a process, one in each line.
const ARGUMENTS: &str = "REDLATCH_WAREHOUSE";

/// Where a process is killed; the last one is not.
const PLACES: [&str; 9] = [
    "before prepare",
    "behind prepare",
    "before commit",
    "behind commit",
    "before forget",
    "behind forget",
    "before roll back",
    "behind roll back",
    "",
];

/// How many transfers there are at a time: they mostly wait.
const AT_ONCE: usize = 4;

/// Two warehouses that have names, and files, of their own.
struct Warehouses<'a> {
    number: usize,
    folder: &'a Path,
    urls: &'a [String],
}

impl Warehouses<'_> {
    fn name(&self, city: &str) -> String {
        format!("{city}-{}", self.number)
    }

    /// Starts this program once more, as a warehouse.
    fn start(&self, city: &str, change: i64, stop_at: &str, stdin: Stdio) -> Child {
        let file = self.folder.join(city).display().to_string();
        let mut arguments = vec![
            self.name(city),
            file,
            change.to_string(),
            stop_at.to_owned(),
        ];
        arguments.extend(self.urls.iter().cloned());
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["a_warehouse", "--exact", "--ignored", "--nocapture"]);
        command
            .env(ARGUMENTS, arguments.join("\n"))
            .stdin(stdin)
            .stdout(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Starts a warehouse that ends what it finds.
    fn start_again(&self, city: &str) {
        let output = self
            .start(city, 0, "", Stdio::null())
            .wait_with_output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }

    fn count(&self, city: &str) -> (i64, i64) {
        Shelf::open(&self.folder.join(city), 0, "")
            .unwrap()
            .count()
            .unwrap()
    }
}

/// A process that runs, and what it says.
struct Running(Child, Lines<BufReader<ChildStdout>>);

impl Running {
    fn new(mut process: Child) -> Self {
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self(process, lines)
    }

    /// Waits until it says this, or ends.
    fn says(&mut self, words: &str) -> bool {
        self.1
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.contains(words))
    }
}

/// One transfer. Returns how many processes were stopped at their places, and whether it was made.
fn transfer(
    client: &LockClient,
    warehouses: &Warehouses<'_>,
    places: [&str; 2],
    order: [&str; 2],
) -> (usize, bool) {
    let start =
        |city, change, place| Running::new(warehouses.start(city, change, place, Stdio::piped()));
    let mut both = [start("berlin", -3, places[0]), start("paris", 3, places[1])];
    assert!(both.iter_mut().all(|process| process.says("ready")));
    let names = ["berlin", "paris"].map(|city| warehouses.name(city));
    let id = client
        .transactions()
        .begin(&[&names[0], &names[1]])
        .unwrap();
    for Running(process, _) in &mut both {
        writeln!(process.stdin.take().unwrap(), "{id}").unwrap();
    }
    let mut stopped = 0;
    for mut process in both {
        stopped += usize::from(process.says("stopped "));
        process.0.kill().unwrap();
        process.0.wait().unwrap();
    }
    order.iter().for_each(|city| warehouses.start_again(city));
    let counts = ["berlin", "paris"].map(|city| warehouses.count(city));
    let is_made = counts[0].0 == 7;
    let expected = if is_made {
        [(7, 7), (13, 13)]
    } else {
        [(10, 10); 2]
    };
    assert_eq!(counts, expected, "{places:?} {order:?}");
    let left = client.transactions().list().unwrap();
    assert!(
        left.iter().all(|it| it.id != id),
        "{places:?} {order:?}: {left:?}"
    );
    (stopped, is_made)
}

#[test]
fn no_crate_is_lost_or_made_whoever_is_killed_and_whenever() {
    let (servers, client) = formed(3);
    let urls = servers.urls();
    let pairs = PLACES
        .iter()
        .flat_map(|one| PLACES.iter().map(move |other| [*one, *other]));
    let orders = [["berlin", "paris"], ["paris", "berlin"]];
    let all: Vec<_> = pairs
        .enumerate()
        .map(|(index, places)| (places, orders[index % 2]))
        .collect();
    let next = AtomicUsize::new(0);
    let stopped = AtomicUsize::new(0);
    let made = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((places, order)) = all.get(number) else {
                        break;
                    };
                    let folder = tempfile::tempdir().unwrap();
                    let folder = folder.path();
                    let urls = &urls[..];
                    let warehouses = Warehouses {
                        number,
                        folder,
                        urls,
                    };
                    let (at_places, is_made) = transfer(&client, &warehouses, *places, *order);
                    stopped.fetch_add(at_places, Ordering::Relaxed);
                    made.fetch_add(usize::from(is_made), Ordering::Relaxed);
                }
            });
        }
    });
    let stopped = stopped.into_inner();
    let made = made.into_inner();
    println!(
        "{} transfers, {stopped} processes stopped at a step, {made} made",
        all.len()
    );
    // On a very slow machine, more are aborted for lack of patience.
    assert!(stopped > all.len() / 2 && made > 0, "{stopped} {made}");
}

#[test]
#[ignore = "a process of the test above"]
fn a_warehouse() {
    let arguments = env::var(ARGUMENTS).unwrap();
    let arguments: Vec<String> = arguments.split('\n').map(str::to_owned).collect();
    warehouse(&arguments).unwrap();
}
