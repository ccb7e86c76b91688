//! What a register takes of a node's memory.

use super::Context;
use crate::peers::{client, registers::value};
use crate::report::Table;
use crate::resp::{ask, field};

pub fn run(context: &Context) {
    let count = 10_000;
    let client = client(&context.servers.urls());
    let used = || -> Vec<i64> {
        let memory = |port| field(&ask(port, &["INFO", "memory"]), "used_memory") as i64;
        context
            .servers
            .addresses()
            .iter()
            .map(|address| memory(address.port()))
            .collect()
    };
    let mut table = Table::new(&["registers", "bytes each on a node"]);
    let before = used();
    let mut row = |what: &str| {
        let now = used();
        let each = now
            .iter()
            .zip(&before)
            .map(|(now, before)| (now - before) / count);
        table.row([what.to_owned(), each.max().unwrap_or(0).to_string()]);
    };
    let register = |index| {
        client
            .register(format!("{index:020}"))
            .expect("the name can be used")
    };
    let change = |index| {
        let changed = register(index).change(|_| Some(value(1)));
        changed.expect("a majority of the servers answers");
    };
    (0..count).for_each(change);
    row("changed once");
    (0..8).for_each(|_| (0..count).for_each(change));
    row("changed nine times");
    for index in 0..count {
        register(index)
            .delete()
            .expect("a majority of the servers answers");
    }
    row("deleted");
    let about = format!(
        "{count} registers with names of 20 bytes and values of 100 bytes. The growth of \
         `used_memory`, for each register, on the node where it is most."
    );
    table.print("registers, memory of a node", &about);
}
