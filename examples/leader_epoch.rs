//! Who wrote last leads, in an epoch that never repeats, and a deposed leader is refused.
//!
//! ```sh
//! cargo run --features embedded --example leader_epoch
//! cargo run --features embedded --example leader_epoch -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts five Redis-like nodes inside this process. Nodes of your own must be
//! a group that keeps registers: `Registers::form`.
//!
//! A register holds the leader's name, and its version is the epoch. A candidate becomes the leader
//! by writing its name. There is no lease and no clock: nobody leads "until", but in an epoch, and
//! the next one ends it. Every request carries the epoch, and a resource that remembers the
//! highest one refuses all others.
//!
//! A register does not say when to become the leader: a candidate that finds the leader silent does
//! so, and so may two at once; then the later one leads. A lock (the example `leader_election`)
//! keeps elections rare, and the epoch makes those harmless that happen in spite of it.

use redlatch::LockClient;
use redlatch::embedded::Nodes;
use redlatch::register::{Register, Version};
use std::error::Error;
use std::thread;

const CANDIDATES: [&str; 3] = ["alice", "bob", "carol"];

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

/// What the leader writes to: a store that remembers the highest epoch. In a database it is a row
/// with a column for the epoch, and one statement:
/// `UPDATE t SET state = ?, epoch = ? WHERE id = ? AND epoch <= ?`.
#[derive(Default)]
struct Store {
    state: String,
    epoch: Option<Version>,
}

impl Store {
    /// Writes, unless a later leader has written before.
    fn write(&mut self, state: &str, epoch: Version) -> bool {
        let is_deposed = self.epoch.is_some_and(|highest| epoch < highest);
        if !is_deposed {
            self.epoch = Some(epoch);
            state.clone_into(&mut self.state);
        }
        !is_deposed
    }
}

/// Bob deposes Alice, who does not know it; then all want to lead at once.
pub(crate) fn story(urls: &[String]) -> Result<(), Failure> {
    let name = &format!("leader:{}", std::process::id());
    let register = |_| -> Result<Register, Failure> { Ok(LockClient::new(urls)?.register(name)?) };
    // Each with a client of its own, as programs on three machines have them.
    let registers = CANDIDATES
        .iter()
        .map(register)
        .collect::<Result<Vec<_>, _>>()?;
    let [alice, bob, carol] = &registers[..] else {
        unreachable!("there are three of them")
    };
    let mut store = Store::default();

    let first = lead(alice, "alice")?;
    expect(
        store.write("Alice's", first),
        "the store accepts the first leader",
    )?;
    let second = lead(bob, "bob")?;
    expect(first < second, "a later leader has a higher epoch")?;
    expect(
        store.write("Bob's", second),
        "the store accepts the next leader",
    )?;
    say("Bob has written. Alice does not know of him, and writes.");
    expect(
        !store.write("Alice's again", first),
        "the store refuses the deposed leader",
    )?;
    let (leader, epoch) = leader(alice)?.ok_or("nobody leads")?;
    say(&format!(
        "Alice is refused, looks at the register, and finds {leader}."
    ));
    expect(
        (&*leader, epoch) == ("bob", second),
        "the register names the leader",
    )?;

    expect(!resign(alice, first)?, "a deposed leader cannot resign")?;
    expect(resign(bob, second)?, "the leader can")?;
    expect(
        self::leader(carol)?.is_none(),
        "nobody leads after the leader has resigned",
    )?;
    carol.delete()?;
    let third = lead(carol, "carol")?;
    expect(
        third > second,
        "epochs go on after the register was deleted",
    )?;
    all_at_once(&registers, third)?;
    alice.delete()?; // for this program: nobody will lead in its name again
    Ok(())
}

/// All candidates want to lead at the same moment. Each does for a while, one after the other.
fn all_at_once(registers: &[Register], before: Version) -> Result<(), Failure> {
    let mut epochs = thread::scope(|scope| {
        let candidates = registers.iter().zip(CANDIDATES);
        let threads: Vec<_> = candidates
            .map(|(register, name)| scope.spawn(move || Ok((lead(register, name)?, name))))
            .collect();
        let epochs = threads
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"));
        epochs.collect::<Result<Vec<_>, Failure>>()
    })?;
    epochs.sort_unstable();
    let is_growing = epochs.windows(2).all(|pair| pair[0].0 < pair[1].0);
    expect(
        is_growing && epochs[0].0 > before,
        "no two leaders have the same epoch",
    )?;
    let (last, name) = epochs[epochs.len() - 1];
    let found = leader(&registers[0])?;
    expect(
        found == Some((name.to_owned(), last)),
        "the highest epoch leads",
    )?;
    say(&format!(
        "All wanted to lead at once; {name} was the last to write, and leads."
    ));
    Ok(())
}

/// Makes this candidate the leader, and returns its epoch.
///
/// An error may leave open whether the name was written (`RegisterError::may_have_happened`). Then
/// the candidate has an epoch that it does not know, and simply leads anew.
fn lead(register: &Register, name: &str) -> Result<Version, Failure> {
    let changed = register.change(|_| Some(name.as_bytes().to_vec()))?;
    let epoch = changed.version().expect("the change sets a value");
    say(&format!("{name} leads in epoch {}.", epoch.as_u64()));
    Ok(epoch)
}

/// Leaves the post to anyone, unless another one leads by now. An empty value says that nobody
/// leads: a deletion would not compare the version.
fn resign(register: &Register, epoch: Version) -> Result<bool, Failure> {
    Ok(register.compare_and_set(Some(epoch), b"")?.is_ok())
}

/// Who leads, and in which epoch.
fn leader(register: &Register) -> Result<Option<(String, Version)>, Failure> {
    let value = register.read()?.filter(|value| !value.bytes().is_empty());
    let Some(value) = value else { return Ok(None) };
    Ok(Some((
        String::from_utf8(value.bytes().to_vec())?,
        value.version(),
    )))
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
