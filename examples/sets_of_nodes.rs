//! Lock names spread over several sets of nodes, and a set that is added without two holders.
//!
//! ```sh
//! cargo run --features embedded --example sets_of_nodes
//! cargo run --features embedded --example sets_of_nodes -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts three Redis-like nodes inside this process. Each is a set by itself
//! here; real sets have three or five. All above `main` is what a program copies;
//! `src/guide/scale.md` says how to change the list, and why that is safe.

use redlatch::embedded::Nodes;
use redlatch::{LockClient, LockGuard};
use std::error::Error;
use std::time::{Duration, Instant};

type Failure = Box<dyn Error + Send + Sync>;

/// A set of nodes. Names go by its id, which never changes, while nodes may be replaced.
#[derive(Clone)]
pub(crate) struct Set {
    pub(crate) id: String,
    /// It connects when the first lock of this set is acquired.
    pub(crate) client: LockClient,
}

/// The list of sets that a program uses: one list, or two while the list changes.
pub(crate) struct Sets {
    pub(crate) old: Vec<Set>,
    pub(crate) new: Vec<Set>,
}

impl Sets {
    /// Where the lock of this name is acquired: in its set, and in both of its sets if it moves.
    /// The order is the same with every list, so no two programs wait for each other.
    pub(crate) fn of(&self, name: &str) -> Vec<&Set> {
        let mut sets = vec![home(&self.old, name), home(&self.new, name)];
        sets.sort_by_key(|set| &set.id);
        sets.dedup_by_key(|set| &set.id);
        sets
    }

    /// Acquires the lock in all of these sets. It is held for as long as each of the guards is; the
    /// first is kept alive while the second is waited for.
    pub(crate) fn lock(
        &self,
        name: &str,
        wait: Duration,
    ) -> Result<Option<Vec<LockGuard>>, redlatch::Error> {
        let deadline = Instant::now() + wait;
        let mut held = Vec::new();
        for set in self.of(name) {
            match set
                .client
                .request(name)
                .keep_alive()
                .try_lock_until(deadline)?
            {
                Some(guard) => held.push(guard),
                None => return Ok(None), // dropped guards release
            }
        }
        Ok(Some(held))
    }
}

/// The set of a name: the one with the largest weight for it. A set that is added takes its share
/// of the names from all others, one that is removed leaves its names to all others, and no other
/// name moves.
pub(crate) fn home<'a>(sets: &'a [Set], name: &str) -> &'a Set {
    sets.iter()
        .max_by_key(|set| weight(&set.id, name))
        .expect("there is a set")
}

/// FNV-1a of the id, a byte 0xff and the name, and the last mix of MurmurHash3. All programs must
/// agree on it, in every language and version: so it is not the hasher of the standard library.
pub(crate) fn weight(id: &str, name: &str) -> u64 {
    let bytes = id.bytes().chain([0xff]).chain(name.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

fn main() -> Result<(), Failure> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        story(&Nodes::start(3)?.urls())
    } else {
        story(&urls)
    }
}

/// A third set is added to two. A name that moves has one holder throughout.
pub(crate) fn story(urls: &[String]) -> Result<(), Failure> {
    let set = |(id, url)| {
        LockClient::new([url]).map(|client| Set {
            id: String::from(id),
            client,
        })
    };
    let ids = ["set-1", "set-2", "set-3"];
    let three: Vec<Set> = ids
        .into_iter()
        .zip(urls)
        .map(set)
        .collect::<Result<_, _>>()?;
    let two = three[..2].to_vec();

    let names: Vec<String> = (0..300).map(|number| format!("orders:{number}")).collect();
    let moves = |name: &&String| home(&two, name).id != home(&three, name).id;
    let moved: Vec<&String> = names.iter().filter(moves).collect();
    if moved.iter().any(|name| home(&three, name).id != "set-3") {
        return Err("a name moves to the new set, or not at all".into());
    }
    say(&format!(
        "{} of {} names move to the third set.",
        moved.len(),
        names.len()
    ));

    let before = Sets {
        old: two.clone(),
        new: two.clone(),
    };
    let coming = Sets {
        old: two,
        new: three.clone(),
    };
    let after = Sets {
        old: three.clone(),
        new: three,
    };
    for (first, second, may_both) in [
        (&before, &coming, false),
        (&coming, &before, false),
        (&coming, &after, false),
        (&after, &coming, false),
        (&before, &after, true),
    ] {
        let name = moved[0];
        let long = Duration::from_secs(5);
        let held = first.lock(name, long)?.ok_or("nobody holds the lock")?;
        let both = second.lock(name, if may_both { long } else { long / 50 })?;
        if both.is_some() != may_both {
            return Err(format!("two holders: {}", both.is_some()).into());
        }
        held.into_iter().try_for_each(LockGuard::release)?;
    }
    say("One holder with the lists before and coming, and with coming and after.");
    say("Two with before and after: nobody may use the first list when anybody uses the last.");
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
