//! x

mod client;
mod fair;
mod fault;
mod node;
mod random;
mod scheme;
mod search;
mod story;
mod shrink;
mod walk;
mod world;

use scheme::{KINDS, Mistake, Scheme};
use search::search;

#[test]
fn quick() {
    let t = std::time::Instant::now();
    for (calls, mistake) in [(1, None), (2, None), (2, Some(Mistake::ClaimLeavesQueue))] {
        let f = search(&Scheme { mistake, calls, ..Scheme::sound(2) }, 5_000_000);
        eprintln!("{f} {:?}", t.elapsed());
        if let search::Found::Violation{trace, ..} = &f { for s in trace { eprintln!("{s:?}"); } }
    }
}
#[test]
fn walks() {
    let n: u64 = std::env::var("REDLATCH_WALKS").unwrap().parse().unwrap();
    let mut totals = walk::Totals::default();
    let t = std::time::Instant::now();
    let mut by = std::collections::BTreeMap::new();
    let mut best: std::collections::BTreeMap<String, walk::Failure> = Default::default();
    for seed in 0..n {
        if let Err(f) = walk::walk(seed, None, &mut totals) {
            let k = format!("{:?}", f.what);
            *by.entry(k.clone()).or_insert(0) += 1;
            if best.get(&k).is_none_or(|b| b.trace.len() > f.trace.len()) { best.insert(k, f); }
        }
    }
    for b in best.values_mut() { b.trace = shrink::shrink(&b.scheme, b.what, &b.trace); eprintln!("{b}"); }
    eprintln!("{totals} {by:?} {:?}", t.elapsed());
}

#[test]
fn hole() {
    let scheme = Scheme { calls: 2, looks_max: 1000, ..Scheme::sound(3) }.with(Mistake::ClaimLeavesQueue);
    let mut totals = walk::Totals::default();
    let mut best: Option<Vec<world::Step>> = None;
    let mut found = 0;
    for seed in 0..150000 {
        if let Err(f) = walk::walk(seed, Some(&scheme), &mut totals) {
            found += 1;
            let t = shrink::shrink(&f.scheme, f.what, &f.trace);
            if best.as_ref().is_none_or(|b| b.len() > t.len()) { eprintln!("{:?}", f.what); best = Some(t); }
        }
    }
    eprintln!("{found} {totals}");
    eprintln!("{}", story::tell(&scheme, &best.unwrap()));
}
