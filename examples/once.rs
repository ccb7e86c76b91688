//! A card that is charged once for an order, however many workers try, and the receipt for all.
//!
//! ```sh
//! cargo run --features embedded --example once
//! cargo run --features embedded --example once -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts five Redis-like nodes inside this process. Nodes of your own must be
//! a group that keeps registers: `Registers::form`.
//!
//! A register has one value at a time, and `compare_and_set(None, …)` succeeds for one caller. What
//! that is worth depends on what is decided:
//!
//! * **The value is the result**, such as the number of an invoice. Each worker draws one, the
//!   first to set it wins, and the others read the winner's. Nothing else is needed.
//! * **The result has an effect elsewhere**, such as a charge on a card. If each worker charged and
//!   set the register then, the card would be charged once by each. So a worker claims the key
//!   first, then charges, then writes the result over its claim. A claim keeps the others from
//!   charging as long as they wait for it.
//!
//! No register can tell whether a worker that died after its claim has charged the card. Whoever
//! takes the claim over must ask that of the service that charges: most take an idempotency key
//! with each request, and answer the same key with the same receipt. With a service that knows no
//! keys, a claim that stays is for a person to look at.
//!
//! Nothing expires: a key stays taken until its register is deleted.

use redlatch::LockClient;
use redlatch::embedded::Nodes;
use redlatch::register::{Register, Value};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

const WORKERS: [&str; 4] = ["alice", "bob", "carol", "dave"];

/// How long a claim is left alone. It should be longer than a charge takes: a claim that is taken
/// over too early makes a second request of the service, with the same key.
const PATIENCE: Duration = Duration::from_secs(1);

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

/// The service that charges cards. It answers a key that it knows with the receipt of then.
#[derive(Default)]
struct Cards(Mutex<Ledger>);

#[derive(Default)]
struct Ledger {
    requests: usize,
    receipts: BTreeMap<String, String>,
}

impl Cards {
    fn charge(&self, key: &str) -> String {
        let mut ledger = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.requests += 1;
        let next = format!("receipt {}", 1001 + ledger.receipts.len());
        ledger
            .receipts
            .entry(key.to_owned())
            .or_insert(next)
            .clone()
    }

    /// How often it was asked, and how many charges it has made.
    fn counts(&self) -> (usize, usize) {
        let ledger = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (ledger.requests, ledger.receipts.len())
    }
}

/// What a register says about a charge.
enum State {
    /// This worker is about to charge the card, or has died.
    Claimed(String),
    Charged(String),
}

impl State {
    fn of(value: &Value) -> Result<Self, Failure> {
        let text = std::str::from_utf8(value.bytes())?;
        match text.split_once(": ") {
            Some(("claimed", worker)) => Ok(Self::Claimed(worker.to_owned())),
            Some(("charged", receipt)) => Ok(Self::Charged(receipt.to_owned())),
            _ => Err(format!("another program has written {text:?}").into()),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Claimed(worker) => format!("claimed: {worker}").into_bytes(),
            Self::Charged(receipt) => format!("charged: {receipt}").into_bytes(),
        }
    }
}

/// An invoice number, a charge by several workers, and a charge whose worker dies.
pub(crate) fn story(urls: &[String]) -> Result<(), Failure> {
    let run = std::process::id();
    let number = all(urls, &format!("invoice:{run}"), draw)?;
    say(&format!("All print the invoice with the {number}."));

    let cards = Cards::default();
    let key = format!("order-42:{run}");
    let receipt = all(urls, &key, |worker, register| {
        charge(worker, register, &cards)
    })?;
    let (requests, charges) = cards.counts();
    say(&format!(
        "All have {receipt}; the service was asked {requests} times."
    ));
    expect(charges == 1, "the card is charged once")?;

    let key = format!("order-43:{run}");
    let register = LockClient::new(urls)?.register(&key)?;
    let claim = State::Claimed("erin".to_owned()).to_bytes();
    let claimed = register.compare_and_set(None, &claim)?;
    let lost = cards.charge(&key);
    say(&format!(
        "Erin claims another order, charges the card, and is gone with {lost}."
    ));
    let receipt = all(urls, &key, |worker, register| {
        charge(worker, register, &cards)
    })?;
    expect(
        receipt == lost,
        "the others get the receipt of Erin's charge",
    )?;
    expect(cards.counts().1 == 2, "each card is charged once")?;
    // Erin was only slow. Her claim is gone, so that her result does not count.
    let version = claimed.map_err(|_| "the key was taken before")?;
    let late = State::Charged("another receipt".to_owned()).to_bytes();
    expect(
        register.compare_and_set(Some(version), &late)?.is_err(),
        "a late result is refused",
    )
}

/// Has all workers do this at once, each with a client of its own, and returns what all returned.
fn all(
    urls: &[String],
    name: &str,
    work: impl Fn(&str, &Register) -> Result<String, Failure> + Sync,
) -> Result<String, Failure> {
    let results: Vec<String> = thread::scope(|scope| {
        let start = |worker: &'static str| {
            let work = &work;
            scope.spawn(move || work(worker, &LockClient::new(urls)?.register(name)?))
        };
        let workers: Vec<_> = WORKERS.into_iter().map(start).collect();
        let results = workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"));
        results.collect::<Result<_, _>>()
    })?;
    expect(
        results.iter().all(|result| *result == results[0]),
        "all have the same result",
    )?;
    Ok(results[0].clone())
}

/// The value is the result: the number that this worker draws, or the one that was drawn before.
fn draw(worker: &str, register: &Register) -> Result<String, Failure> {
    let own = format!("number that {worker} drew");
    let value = match register.compare_and_set(None, own.as_bytes())? {
        Ok(_) => return Ok(own),
        Err(value) => value.ok_or("nobody deletes invoices")?,
    };
    Ok(String::from_utf8(value.bytes().to_vec())?)
}

/// Claims the key, charges the card and writes down the receipt, or returns another worker's. No
/// two workers may have the same name.
fn charge(worker: &str, register: &Register, cards: &Cards) -> Result<String, Failure> {
    let key = register.name().to_string();
    let mut value = register.read()?;
    loop {
        let seen = value.as_ref().map(Value::version);
        match value.as_ref().map(State::of).transpose()? {
            Some(State::Charged(receipt)) => return Ok(receipt),
            // A claim of this worker's own is one whose answer was lost.
            Some(State::Claimed(other)) if other != worker => {
                value = register.wait_for_change(seen, PATIENCE)?;
                if value.as_ref().map(Value::version) != seen {
                    continue;
                }
                say(&format!(
                    "   {worker} has waited for {other} for long enough."
                ));
            }
            _ => {}
        }
        let claim = State::Claimed(worker.to_owned()).to_bytes();
        let version = match register.compare_and_set(seen, &claim)? {
            Ok(version) => version,
            Err(other) => {
                value = other;
                continue;
            }
        };
        let receipt = cards.charge(&key);
        let charged = State::Charged(receipt.clone()).to_bytes();
        match register.compare_and_set(Some(version), &charged)? {
            Ok(_) => return Ok(receipt),
            // The claim was taken over: what that worker writes down counts.
            Err(other) => value = other,
        }
    }
}

fn expect(holds: bool, what: &str) -> Result<(), Failure> {
    if holds {
        Ok(())
    } else {
        Err(format!("this should be so: {what}").into())
    }
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
