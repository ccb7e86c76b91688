//! The statements that the guide gives for PostgreSQL, on a real server, which is killed, as are
//! those who take part: two databases, and crates that move from one to the other.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use redlatch::LockClient;
use redlatch::transaction::{Decision, JoinError, Participant, TransactionId};
use support::eventually;
use support::locks::LIMIT;
use support::postgres::{Database, Postgres};

use super::group::{client, formed};

const GUIDE: &str = include_str!("../../../src/guide/transactions.md");

const SHORT: Duration = Duration::from_millis(100);

/// A step, and whether its process dies before it or behind it.
type Death = (&'static str, bool);

/// The statements below this comment of the guide, or before it on its line.
#[track_caller]
fn sql(label: &str) -> String {
    let block = GUIDE
        .split("```sql\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let mut parts = block.expect("the guide has statements").split("\n\n");
    let heading = format!("-- {label}");
    let is_meant = |line: &&str| line.contains(&heading);
    let part = parts
        .find(|part| part.contains(&heading))
        .unwrap_or_else(|| panic!("no {label}"));
    if part.starts_with(&heading) {
        return part.to_owned();
    }
    part.lines()
        .find(is_meant)
        .expect("it has the heading")
        .to_owned()
}

/// One side: a database, how it changes, and when its process dies.
struct Stock {
    name: &'static str,
    database: Database,
    prepare: String,
    dies: Cell<Option<Death>>,
}

impl Stock {
    /// Ten crates, of which three leave Berlin for Paris.
    fn new(server: &Postgres, name: &'static str) -> Self {
        let database = server.create(name);
        let table = "CREATE TABLE stock AS SELECT 10 AS crates;";
        database.run(&[table, &sql("once")].concat()).unwrap();
        let given = sql("prepare");
        // The error is a division by zero: the transaction ends with its connection.
        let mut prepare =
            given.replace("-- no row: ROLLBACK, and an error", "SELECT 1/:ROW_COUNT;");
        assert_ne!(prepare, given);
        if name != "berlin" {
            prepare = prepare.replace("crates - 3 WHERE crates >= 3", "crates + 3");
            assert!(prepare.contains("crates + 3"));
        }
        Self {
            name,
            database,
            prepare,
            dies: Cell::new(None),
        }
    }

    fn run(&self, statements: &str) -> Result<String, String> {
        self.database
            .run(&[sql("first on each connection"), statements.to_owned()].join("\n"))
    }

    fn step(&self, step: &'static str, statements: &str, id: &TransactionId) -> Result<(), String> {
        let dies = |behind| self.dies.get() == Some((step, behind));
        let died = || Err("died".to_owned());
        if dies(false) {
            return died();
        }
        self.run(&self.of(statements, id))?;
        if dies(true) { died() } else { Ok(()) }
    }

    /// The guide's statements, which are Berlin's, for this transaction.
    fn of(&self, statements: &str, id: &TransactionId) -> String {
        statements
            .replace(":berlin", &format!(":{}", self.name))
            .replace("<id>", &id.to_string())
    }

    fn ids(&self, label: &str) -> Result<Vec<TransactionId>, String> {
        let statement = sql(label).replace(":berlin", &format!(":{}", self.name));
        Ok(self
            .run(&statement)?
            .lines()
            .map(|id| id.parse().unwrap())
            .collect())
    }

    fn crates(&self) -> i64 {
        self.run("SELECT crates FROM stock")
            .unwrap()
            .parse()
            .unwrap()
    }

    /// What a new process of this side does first.
    fn start_again(&mut self, client: &LockClient) -> Vec<(TransactionId, Decision)> {
        self.dies.set(None);
        self.run(&sql("before recover")).unwrap();
        client.transactions().recover(self.name, self).unwrap()
    }
}

impl Participant for Stock {
    type Error = String;

    fn prepare(&mut self, id: &TransactionId) -> Result<(), String> {
        self.step("prepare", &self.prepare, id)
    }

    fn commit(&mut self, id: &TransactionId) -> Result<(), String> {
        self.step("commit", &sql("commit"), id)
    }

    fn roll_back(&mut self, id: &TransactionId) -> Result<(), String> {
        if self.prepared()?.contains(id) {
            self.step("roll_back", &sql("roll_back"), id)
        } else {
            Ok(())
        }
    }

    fn prepared(&mut self) -> Result<Vec<TransactionId>, String> {
        self.ids("prepared")
    }

    fn committed(&mut self) -> Result<Vec<TransactionId>, String> {
        self.ids("committed")
    }

    fn forget(&mut self, id: &TransactionId) -> Result<(), String> {
        self.step("forget", &sql("forget"), id)
    }
}

type Ended = Result<Decision, JoinError<String>>;

/// Both take part in a new transaction.
fn transfer(clients: &[LockClient; 2], sides: &mut [Stock; 2], patience: Duration) -> [Ended; 2] {
    let id = clients[0]
        .transactions()
        .begin(&["berlin", "paris"])
        .unwrap();
    let [berlin, paris] = sides;
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            clients[1]
                .transactions()
                .join(&id, "paris", paris, patience)
        });
        [
            clients[0]
                .transactions()
                .join(&id, "berlin", berlin, patience),
            other.join().unwrap(),
        ]
    })
}

/// Two empty databases of this server.
fn sides(server: &Postgres) -> [Stock; 2] {
    ["berlin", "paris"].map(|name| Stock::new(server, name))
}

/// This many crates are there, and nothing is under way.
#[track_caller]
fn assert_ended(client: &LockClient, sides: &mut [Stock; 2], crates: [i64; 2]) {
    assert_eq!([sides[0].crates(), sides[1].crates()], crates);
    for side in sides {
        assert_eq!(
            side.run("SELECT count(*) FROM pg_prepared_xacts").unwrap(),
            "0"
        );
        assert_eq!(side.committed().unwrap(), []);
    }
    assert_eq!(client.transactions().list().unwrap(), []);
}

#[test]
fn both_databases_change_or_neither_does() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let (servers, first) = formed(3);
    let clients = [first, client(&servers)];
    let mut sides = sides(&server);
    for crates in [[7, 13], [4, 16], [1, 19]] {
        let decisions = transfer(&clients, &mut sides, LIMIT).map(Result::unwrap);
        assert_eq!(decisions, [Decision::Committed; 2]);
        assert_ended(&clients[0], &mut sides, crates);
    }
    // One crate is left: Berlin refuses.
    let [berlin, paris] = transfer(&clients, &mut sides, LIMIT);
    let Err(JoinError::Refused(error)) = berlin else {
        panic!("{berlin:?}")
    };
    assert!(error.contains("division by zero"), "{error}");
    // Over: Paris came when Berlin had already gone.
    assert!(
        matches!(paris, Ok(Decision::Aborted | Decision::Over)),
        "{paris:?}"
    );
    assert_ended(&clients[0], &mut sides, [1, 19]);
    // Berlin is not there at all: the patience of Paris ends.
    let id = clients[0]
        .transactions()
        .begin(&["berlin", "paris"])
        .unwrap();
    let decision = clients[1]
        .transactions()
        .join(&id, "paris", &mut sides[1], SHORT)
        .unwrap();
    assert_eq!(decision, Decision::Aborted);
    assert_ended(&clients[0], &mut sides, [1, 19]);
}

#[test]
fn a_client_may_die_at_each_step() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let (servers, first) = formed(3);
    let clients = [first, client(&servers)];
    let mut sides = sides(&server);
    let mut died = 0;
    let steps = ["prepare", "commit", "roll_back", "forget"];
    for death in steps
        .into_iter()
        .flat_map(|step| [(step, false), (step, true)])
    {
        for index in [0, 1] {
            sides
                .iter()
                .for_each(|side| _ = side.run("UPDATE stock SET crates = 10").unwrap());
            sides[index].dies.set(Some(death));
            // Rolling back needs a reason: the other one is not there.
            let ended = if death.0 == "roll_back" {
                let id = clients[0]
                    .transactions()
                    .begin(&["berlin", "paris"])
                    .unwrap();
                let name = sides[index].name;
                clients[0]
                    .transactions()
                    .join(&id, name, &mut sides[index], SHORT)
            } else {
                let [berlin, paris] = transfer(&clients, &mut sides, LIMIT);
                if index == 0 { berlin } else { paris }
            };
            died += usize::from(ended.is_err());
            // Other processes go on, in either order.
            sides[index].start_again(&clients[1]);
            sides[1 - index].start_again(&clients[0]);
            let is_committed = matches!(death.0, "commit" | "forget");
            let crates = if is_committed { [7, 13] } else { [10; 2] };
            assert_ended(&clients[0], &mut sides, crates);
        }
    }
    // Who has committed and not forgotten does not report that.
    assert_eq!(died, 12);
}

/// How many transactions are prepared on both sides.
fn prepared(sides: &mut [Stock; 2]) -> usize {
    sides
        .iter_mut()
        .map(|side| side.prepared().unwrap().len())
        .sum()
}

#[test]
fn what_is_prepared_outlives_the_server_and_its_clients() {
    let Some(mut server) = Postgres::start() else {
        return;
    };
    let (servers, first) = formed(3);
    let clients = [first, client(&servers)];
    let mut sides = sides(&server);
    // Both have voted, and neither has committed.
    sides
        .iter()
        .for_each(|side| side.dies.set(Some(("commit", false))));
    for error in transfer(&clients, &mut sides, LIMIT) {
        assert!(
            matches!(
                error,
                Err(JoinError::Unfinished {
                    is_committed: true,
                    ..
                })
            ),
            "{error:?}"
        );
    }
    server.kill();
    assert!(sides[0].prepared().is_err());
    server.start_again();
    assert_eq!(
        (prepared(&mut sides), sides[0].crates(), sides[1].crates()),
        (2, 10, 10)
    );
    for side in &mut sides {
        let ended = side.start_again(&client(&servers));
        assert_eq!(
            ended.iter().map(|it| it.1).collect::<Vec<_>>(),
            [Decision::Committed]
        );
    }
    assert_ended(&clients[0], &mut sides, [7, 13]);
}

#[test]
fn what_waits_for_the_other_side_when_the_server_dies_is_rolled_back_later() {
    let Some(mut server) = Postgres::start() else {
        return;
    };
    let (servers, first) = formed(3);
    let clients = [first, client(&servers)];
    let mut sides = sides(&server);
    // Berlin waits for Paris when the server dies, and cannot roll back.
    let id = clients[0]
        .transactions()
        .begin(&["berlin", "paris"])
        .unwrap();
    let ended = thread::scope(|scope| {
        let berlin = &mut sides[0];
        let waits = scope.spawn(|| {
            clients[0]
                .transactions()
                .join(&id, "berlin", berlin, 40 * SHORT)
        });
        let open = || clients[1].transactions().list().unwrap();
        assert!(eventually(LIMIT, || open()
            .first()
            .is_some_and(|it| it.awaited == ["paris"])));
        server.kill();
        waits.join().unwrap()
    });
    assert!(
        matches!(
            ended,
            Err(JoinError::Unfinished {
                is_committed: false,
                ..
            })
        ),
        "{ended:?}"
    );
    server.start_again();
    assert_eq!(prepared(&mut sides), 1);
    assert_eq!(
        sides[0].start_again(&client(&servers)),
        [(id, Decision::Aborted)]
    );
    assert_ended(&clients[0], &mut sides, [10, 10]);
}

#[test]
fn what_a_dead_client_had_sent_is_not_prepared_after_recovery() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let (_servers, client) = formed(3);
    let mut sides = sides(&server);
    let berlin = &mut sides[0];
    // Somebody has the row while a process sends all statements at once, and is killed.
    let mut holder = berlin
        .database
        .psql()
        .args([
            "-c",
            "BEGIN; SELECT * FROM stock FOR UPDATE; \
        SELECT pg_sleep(3600)",
        ])
        .spawn()
        .unwrap();
    let waits = |events: &str| {
        let text = format!("SELECT count(*) FROM pg_stat_activity WHERE wait_event IN ({events})");
        eventually(LIMIT, || berlin.run(&text).unwrap() == "1")
    };
    assert!(waits("'PgSleep'"));
    let id = client.transactions().begin(&["berlin", "paris"]).unwrap();
    let statements = [sql("first on each connection"), sql("prepare")].join("\n");
    let statements = berlin.of(&statements, &id);
    let mut process = berlin
        .database
        .psql()
        .args(["-c", &statements])
        .spawn()
        .unwrap();
    assert!(waits("'transactionid', 'tuple'"));
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(
        waits("'transactionid', 'tuple'"),
        "the server has not noticed"
    );
    assert_eq!(berlin.start_again(&client), []);
    let end = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity \
               WHERE wait_event = 'PgSleep'";
    assert_eq!(berlin.run(end).unwrap(), "t");
    holder.wait().unwrap();
    // The row is free: whoever has waited for it goes on.
    let others = "SELECT count(*) FROM pg_stat_activity \
                  WHERE datname = 'berlin' AND pid <> pg_backend_pid()";
    assert!(eventually(LIMIT, || berlin.run(others).unwrap() == "0"));
    assert_ended(&client, &mut sides, [10, 10]);
}
