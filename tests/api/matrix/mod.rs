//! Every operation of the library on every server that this machine has.
//!
//! Servers are looked for on `PATH` (redis-server, valkey-server, redict-server, keydb-server), and
//! in the folders of `REDLATCH_SERVERS`, separated by colons, or else in `target/servers`, where
//! `tests/servers/fetch` puts them. The result is one table on standard error, with those that
//! `fetch` could get and that were not there. `REDLATCH_REDIS_SERVER` adds one more.

mod found;
mod histories;
mod operations;
mod operations_several;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use operations::{OPERATIONS, Rig};
use support::server_program::{ServerProgram, say};

/// How many servers are tried side by side: most operations wait.
const SIDE_BY_SIDE: usize = 3;

/// What one server did.
struct Row {
    resp: &'static str,
    queue: String,
    passed: usize,
    failed: Vec<String>,
}

#[test]
fn every_operation_works_on_every_server_that_is_there() {
    let programs = found::programs();
    let missing = found::missing(&programs);
    assert!(
        !programs.is_empty(),
        "no server is there: apt-get install redis-server"
    );
    let rows: Mutex<Vec<Option<Row>>> = Mutex::new(programs.iter().map(|_| None).collect());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some((index, program)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    programs.get(index).map(|program| (index, program))
                } {
                    let row = try_all(program);
                    rows.lock().expect("no panic with it locked")[index] = Some(row);
                }
            });
        }
    });
    let rows = rows.into_inner().expect("no panic with it locked");
    let rows: Vec<Row> = rows
        .into_iter()
        .map(|row| row.expect("each was tried"))
        .collect();
    say(&table(&programs, &rows));
    if !missing.is_empty() {
        say(&format!(
            "not there (see tests/servers/fetch): {}",
            missing.join(", ")
        ));
    }
    let failed: Vec<_> = rows.iter().flat_map(|row| &row.failed).cloned().collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// All operations on servers of this program. One that panics has failed.
fn try_all(program: &ServerProgram) -> Row {
    let mut passed = 0;
    let mut failed = Vec::new();
    let mut rig = match catch_unwind(|| Rig::start(program)) {
        Ok(rig) => rig,
        Err(panic) => {
            let text = format!("{program}: {}", words(&*panic));
            return Row {
                resp: "?",
                queue: "?".to_owned(),
                passed: 0,
                failed: vec![text],
            };
        }
    };
    for (name, operation) in OPERATIONS {
        match catch_unwind(AssertUnwindSafe(|| operation(&mut rig))) {
            Ok(()) => passed += 1,
            Err(panic) => failed.push(format!("{program}: {name}: {}", words(&*panic))),
        }
    }
    Row {
        resp: rig.resp(),
        queue: rig.queue(),
        passed,
        failed,
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without words")
}

fn table(programs: &[ServerProgram], rows: &[Row]) -> String {
    let mut text = format!(
        "\n{:<8} {:<8} {:<5} {:<14} {:>6} {:>6}  program\n",
        "server", "version", "RESP", "queue", "passed", "failed"
    );
    for (program, row) in programs.iter().zip(rows) {
        text += &format!(
            "{:<8} {:<8} {:<5} {:<14} {:>6} {:>6}  {}\n",
            program.name(),
            program.version(),
            row.resp,
            row.queue,
            row.passed,
            row.failed.len(),
            program.path().display(),
        );
    }
    text
}
