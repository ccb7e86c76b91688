//! Money between two accounts, each transfer under the locks of both.
//!
//! ```sh
//! cargo run --features embedded --example transfer
//! cargo run --features embedded --example transfer -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts five Redis-like nodes inside this process.
//!
//! With a lock for each account, acquired one after the other, two transfers in opposite directions
//! wait for each other for ever. `request_all` acquires both locks at once or neither, so the order
//! of their names makes no difference.

use redlatch::LockClient;
use redlatch::embedded::Nodes;
use std::error::Error;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

const TTL: Duration = Duration::from_secs(10);
const ACCOUNTS: usize = 5;
const THREADS: usize = 8;
const TRANSFERS: usize = 40;
const PAID_IN: i64 = 1_000;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        let nodes = Nodes::start(5)?;
        story(&nodes.urls())
    } else {
        story(&urls)
    }
}

/// A bank without transactions: it reads a balance, and later writes one.
struct Bank {
    balances: Vec<AtomicI64>,
}

impl Bank {
    fn read(&self, account: usize) -> i64 {
        self.balances[account].load(Ordering::SeqCst)
    }

    fn write(&self, account: usize, balance: i64) {
        self.balances[account].store(balance, Ordering::SeqCst);
    }

    fn total(&self) -> i64 {
        (0..ACCOUNTS).map(|account| self.read(account)).sum()
    }
}

/// Many threads transfer money, and none of it is lost.
pub(crate) fn story(urls: &[String]) -> Result<(), Failure> {
    let bank = Bank {
        balances: (0..ACCOUNTS).map(|_| AtomicI64::new(PAID_IN)).collect(),
    };
    // Two clients, as two programs would have them. Threads share one.
    let clients = [LockClient::new(urls)?, LockClient::new(urls)?];
    say(&format!(
        "{ACCOUNTS} accounts hold {} in all.",
        bank.total()
    ));

    thread::scope(|scope| {
        let tellers: Vec<_> = (0..THREADS)
            .map(|number| {
                let client = &clients[number % clients.len()];
                let bank = &bank;
                scope.spawn(move || teller(client, bank, number))
            })
            .collect();
        tellers
            .into_iter()
            .try_for_each(|teller| teller.join().expect("a teller panicked"))
    })?;

    let total = bank.total();
    say(&format!(
        "After {} transfers they hold {total} in all.",
        THREADS * TRANSFERS
    ));
    if total == ACCOUNTS as i64 * PAID_IN {
        Ok(())
    } else {
        Err("money was lost".into())
    }
}

fn teller(client: &LockClient, bank: &Bank, number: usize) -> Result<(), Failure> {
    for turn in 0..TRANSFERS {
        let from = (number + turn) % ACCOUNTS;
        let to = (from + 1 + turn % (ACCOUNTS - 1)) % ACCOUNTS;
        transfer(client, bank, from, to, 1 + turn as i64 % 7)?;
    }
    Ok(())
}

fn transfer(
    client: &LockClient,
    bank: &Bank,
    from: usize,
    to: usize,
    amount: i64,
) -> Result<(), Failure> {
    let accounts = [from, to].map(|account| format!("account:{account}"));
    let locks = client.request_all(accounts).ttl(TTL).lock()?;
    let source = bank.read(from);
    let target = bank.read(to);
    thread::yield_now(); // without the locks, another transfer could write here
    // The last check of the lock, directly before the step that must not run twice.
    locks.ensure_held()?;
    bank.write(from, source - amount);
    bank.write(to, target + amount);
    Ok(()) // dropping the guard releases both locks
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
