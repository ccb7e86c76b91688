//! Opening a port again that a server had before.

use std::io;
use std::thread;
use std::time::Duration;

/// How often a restarted server tries to open its port, and the pause between two attempts: five
/// seconds in all.
const BIND_ATTEMPTS: u32 = 100;
const BIND_PAUSE: Duration = Duration::from_millis(50);

/// Starts a server whose port may be taken for a while: while it was closed, the system may have
/// lent it to an outgoing connection.
pub(super) fn start_again<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..BIND_ATTEMPTS {
        match start() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => thread::sleep(BIND_PAUSE),
            started => return started,
        }
    }
    start()
}
