//! A mutex: the cost of a lock within one process.

use crate::work::Blocking;
use std::sync::{Mutex, MutexGuard};

#[derive(Default)]
pub struct Local(Mutex<()>);

impl Blocking for Local {
    type Held<'a> = MutexGuard<'a, ()>;

    fn acquire(&self, _: &str, _: bool) -> MutexGuard<'_, ()> {
        self.0.lock().expect("no thread panics with it held")
    }

    fn release<'a>(&'a self, held: MutexGuard<'a, ()>) {
        drop(held);
    }
}
