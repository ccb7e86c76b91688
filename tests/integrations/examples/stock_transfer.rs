//! Two warehouses, each a process with a SQLite file of its own: crates that leave one arrive in
//! the other, or nothing changes, whichever process is killed, and when.
//!
//! ```sh
//! cargo run -p redlatch-integrations --example stock_transfer
//! ```
//!
//! It starts three Redis-like nodes inside this process, and the two warehouses as processes. In
//! the second transfer, one of them is killed after both have voted. The test `killed` does the
//! same at every step of both.
//!
//! A crate that is to leave is set aside at once (`free`), so that the commit cannot fail. The file
//! notes the id in the same transaction as each change, so that a process that comes back knows
//! what it had promised, and does nothing twice.

use redlatch::LockClient;
use redlatch::embedded::Nodes;
use redlatch::transaction::{Participant, TransactionId};
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// For how long a warehouse waits for the other.
const PATIENCE: Duration = Duration::from_millis(500);

/// A warehouse: how many crates it has, and how many of them are not set aside.
pub(crate) struct Shelf {
    file: Connection,
    /// How many crates come in. Below zero, they leave.
    change: i64,
    /// The step before or behind which this process stops, so that it can be killed there.
    stop_at: String,
}

impl Shelf {
    pub(crate) fn open(path: &Path, change: i64, stop_at: &str) -> Result<Self, Failure> {
        let file = Connection::open(path)?;
        // A commit is on the disk when it returns.
        file.pragma_update(None, "synchronous", "FULL")?;
        file.execute_batch(
            "CREATE TABLE IF NOT EXISTS stock(total INTEGER, free INTEGER CHECK (free >= 0));
             CREATE TABLE IF NOT EXISTS pending(id TEXT PRIMARY KEY, change INTEGER, done INTEGER);
             INSERT INTO stock SELECT 10, 10 WHERE NOT EXISTS (SELECT * FROM stock);",
        )?;
        Ok(Self {
            file,
            change,
            stop_at: stop_at.to_owned(),
        })
    }

    /// How many crates there are, and how many are not set aside.
    pub(crate) fn count(&self) -> Result<(i64, i64), Failure> {
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        Ok(self
            .file
            .query_row("SELECT total, free FROM stock", [], row)?)
    }

    /// Changes the file in one step, and stops before or behind it if that was asked for.
    fn step(
        &mut self,
        name: &str,
        change: impl FnOnce(&Transaction<'_>, i64) -> rusqlite::Result<()>,
    ) -> Result<(), Failure> {
        self.stop(&format!("before {name}"));
        let step = self.file.transaction()?;
        change(&step, self.change)?;
        step.commit()?;
        self.stop(&format!("behind {name}"));
        Ok(())
    }

    fn stop(&self, place: &str) {
        if self.stop_at == place {
            say(&format!("stopped {place}"));
            loop {
                thread::park();
            }
        }
    }

    fn ids(&self, done: bool) -> Result<Vec<TransactionId>, Failure> {
        let mut found = self.file.prepare("SELECT id FROM pending WHERE done = ?")?;
        let texts = found.query_map([done], |row| row.get::<_, String>(0))?;
        texts.map(|text| Ok(text?.parse()?)).collect()
    }
}

/// What is noted as prepared under an id, which is removed.
fn take(step: &Transaction<'_>, id: &TransactionId) -> rusqlite::Result<Option<i64>> {
    let text = "DELETE FROM pending WHERE id = ? AND NOT done RETURNING change";
    step.query_row(text, [id.to_string()], |row| row.get(0))
        .optional()
}

impl Participant for Shelf {
    type Error = Failure;

    fn prepare(&mut self, id: &TransactionId) -> Result<(), Failure> {
        self.step("prepare", |step, change| {
            step.execute("UPDATE stock SET free = free + min(?, 0)", [change])?;
            let text = "INSERT INTO pending VALUES (?, ?, FALSE)";
            step.execute(text, params![id.to_string(), change])
                .map(drop)
        })
    }

    fn commit(&mut self, id: &TransactionId) -> Result<(), Failure> {
        self.step("commit", |step, _| {
            let Some(change) = take(step, id)? else {
                return Ok(());
            };
            let text = "UPDATE stock SET total = total + ?1, free = free + max(?1, 0)";
            step.execute(text, [change])?;
            let text = "INSERT INTO pending VALUES (?, ?, TRUE)";
            step.execute(text, params![id.to_string(), change])
                .map(drop)
        })
    }

    fn roll_back(&mut self, id: &TransactionId) -> Result<(), Failure> {
        self.step("roll back", |step, _| {
            let Some(change) = take(step, id)? else {
                return Ok(());
            };
            step.execute("UPDATE stock SET free = free - min(?, 0)", [change])
                .map(drop)
        })
    }

    fn prepared(&mut self) -> Result<Vec<TransactionId>, Failure> {
        self.ids(false)
    }

    fn committed(&mut self) -> Result<Vec<TransactionId>, Failure> {
        self.ids(true)
    }

    fn forget(&mut self, id: &TransactionId) -> Result<(), Failure> {
        self.step("forget", |step, _| {
            let text = "DELETE FROM pending WHERE id = ? AND done";
            step.execute(text, [id.to_string()]).map(drop)
        })
    }
}

/// A process of a warehouse: brings to its end what it finds, then takes part in the transfer whose
/// id it reads from stdin, if there is one.
/// `arguments`: name, file, change, where to stop, and the URLs of the nodes.
pub(crate) fn warehouse(arguments: &[String]) -> Result<(), Failure> {
    let [name, file, change, stop_at, urls @ ..] = arguments else {
        return Err("too few arguments".into());
    };
    // Patient with nodes: this process is one of many on a busy machine.
    let client = LockClient::builder()
        .nodes(urls)
        .node_timeout(Duration::from_secs(1))
        .build()?;
    let mut shelf = Shelf::open(Path::new(file), change.parse()?, stop_at)?;
    for (id, decision) in client.transactions().recover(name, &mut shelf)? {
        say(&format!("{name} finds {id}: {decision:?}"));
    }
    say("ready");
    let mut id = String::new();
    if std::io::stdin().read_line(&mut id)? > 0 {
        let decision =
            client
                .transactions()
                .join(&id.trim().parse()?, name, &mut shelf, PATIENCE)?;
        say(&format!("{name}: {decision:?}"));
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.is_empty() {
        return warehouse(&arguments);
    }
    let nodes = Nodes::start(3)?;
    let urls = nodes.urls();
    let client = LockClient::new(&urls)?;
    let folder = tempfile::tempdir()?;
    let start = |name: &str, change: &str, stop_at: &str| -> Result<Child, Failure> {
        let file = folder.path().join(name).display().to_string();
        let mut command = Command::new(std::env::current_exe()?);
        command.args([name, &file, change, stop_at]).args(&urls);
        Ok(command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?)
    };
    for stop_at in ["", "before commit"] {
        let mut berlin = start("berlin", "-3", "")?;
        let mut paris = start("paris", "3", stop_at)?;
        let output = [hear(&mut berlin, "ready")?, hear(&mut paris, "ready")?];
        let id = client.transactions().begin(&["berlin", "paris"])?;
        for process in [&mut berlin, &mut paris] {
            writeln!(process.stdin.take().ok_or("it is piped")?, "{id}")?;
        }
        output
            .into_iter()
            .try_for_each(|output| tell(output, "stopped"))?;
        for mut process in [berlin, paris] {
            process.kill()?;
            process.wait()?;
        }
    }
    say("Paris was killed before its commit; it starts again.");
    let mut paris = start("paris", "0", "")?;
    drop(paris.stdin.take());
    hear(&mut paris, "ready")?;
    paris.wait()?;
    let count = |name: &str| Shelf::open(&folder.path().join(name), 0, "")?.count();
    let berlin = count("berlin")?;
    let paris = count("paris")?;
    say(&format!("berlin: {}, paris: {}", berlin.0, paris.0));
    let is_right =
        (berlin, paris) == ((4, 4), (16, 16)) && client.transactions().list()?.is_empty();
    if is_right {
        Ok(())
    } else {
        Err("crates are lost, or a transaction is left".into())
    }
}

/// Passes on what a process says, until it says this word, or ends. Returns the rest.
fn hear(process: &mut Child, word: &str) -> Result<BufReader<ChildStdout>, Failure> {
    let mut output = BufReader::new(process.stdout.take().ok_or("it is piped")?);
    let mut line = String::new();
    while output.read_line(&mut line)? > 0 && !line.starts_with(word) {
        say(line.trim_end());
        line.clear();
    }
    Ok(output)
}

/// The same of its last words.
fn tell(output: BufReader<ChildStdout>, word: &str) -> Result<(), Failure> {
    for line in output.lines() {
        let line = line?;
        say(&line);
        if line.starts_with(word) {
            break;
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
