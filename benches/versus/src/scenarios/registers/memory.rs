//! What a register takes of a node's memory.

use super::super::Context;
use super::Storage;
use crate::peers::registers;
use crate::report::{Findings, Table};
use crate::servers::{Servers, ask, field};

const REGISTERS: usize = 10_000;
const REGISTERS_QUICK: usize = 1_000;

pub fn run(context: &Context, servers: &Servers) -> Findings {
    let count = if context.is_quick { REGISTERS_QUICK } else { REGISTERS };
    let client = registers::client(&servers.urls());
    let used = || -> Vec<i64> { servers.addresses().iter().map(|it| memory(it.port())).collect() };
    let mut table = Table::new(&["registers", "bytes each on a node"]);
    let mut row = |what: &str, before: &[i64]| {
        let now = used();
        let each = now.iter().zip(before).map(|(now, before)| (now - before) / count as i64);
        table.row([what.to_owned(), each.max().unwrap_or(0).to_string()]);
    };
    let before = used();
    let register = |index| client.register(format!("{index:020}")).expect("the name can be used");
    for index in 0..count {
        let changed = register(index).change(|_| Some(registers::value(1)));
        changed.expect("a majority of the servers answers");
    }
    row("changed once", &before);
    for index in (0..count).cycle().take(8 * count) {
        let changed = register(index).change(|_| Some(registers::value(2)));
        changed.expect("a majority of the servers answers");
    }
    row("changed nine times", &before);
    for index in 0..count {
        register(index).delete().expect("a majority of the servers answers");
    }
    row("deleted", &before);
    Findings {
        title: Storage::Memory.title("memory"),
        about: format!(
            "{count} registers with names of 20 bytes and values of 100 bytes. The growth of \
             `used_memory`, for each register, on the node where it is most."
        ),
        table,
        figures: Vec::new(),
        groups: Vec::new(),
    }
}

fn memory(port: u16) -> i64 {
    let info = ask(port, &["INFO", "memory"]).expect("a running server answers");
    field(&info, "used_memory").expect("INFO says how much memory is used")
}
