//! Instructions in user space, as the processor counts them. A virtual machine often has no such
//! counter, and the kernel may keep it to itself; `benches/instructions.sh` counts everywhere.

use perf_event::events::Hardware;
use perf_event::{Builder, Counter};
use std::io;

/// Those of this thread and of all threads that it starts from now on.
pub fn count() -> io::Result<Counter> {
    Builder::new(Hardware::INSTRUCTIONS)
        .inherit(true)
        .enabled(true)
        .build()
}

/// Why there is no figure, if there is none on this machine.
pub fn why_none() -> Option<String> {
    let error = count().err()?;
    Some(format!(
        "`instructions/pair` is `-`: this machine does not count instructions ({error}). \
         `benches/instructions.sh` does, with valgrind.\n"
    ))
}
