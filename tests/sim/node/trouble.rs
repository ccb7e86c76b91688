//! Nodes that reply with errors: all errors of Redis that concern a lock, and the commands that
//! they affect.

use crate::checker::{Command, Kind};

/// An error, and the commands that get it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trouble {
    /// The text of the error. The first word is its code.
    pub(crate) text: &'static str,
    refuses: Refused,
    /// Is the error permanent, so that the library sends no more requests?
    pub(crate) is_permanent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// Connections: they get the error and are closed.
    Connections,
    /// All commands.
    Everything,
    /// All commands but HELLO.
    AllButHello,
    /// All but the greeting.
    AllButGreeting,
    /// Commands that may change a key.
    Changes,
    /// Commands that need memory.
    Growth,
    /// HELLO.
    Hello,
    /// AUTH.
    Auth,
}

use Refused::{AllButGreeting, AllButHello, Auth, Changes, Connections, Everything, Growth, Hello};

const fn passing(text: &'static str, refuses: Refused) -> Trouble {
    Trouble {
        text,
        refuses,
        is_permanent: false,
    }
}

const fn lasting(text: &'static str, refuses: Refused) -> Trouble {
    Trouble {
        text,
        refuses,
        is_permanent: true,
    }
}

/// All errors. NOSCRIPT and WRONGTYPE come from the model itself.
pub(crate) const ALL: [Trouble; 20] = [
    passing(
        "LOADING Redis is loading the dataset in memory",
        AllButGreeting,
    ),
    passing("MASTERDOWN Link with MASTER is down", AllButGreeting),
    passing(
        "MISCONF Errors writing to the AOF file: No space left on device",
        Changes,
    ),
    passing(
        "OOM command not allowed when used memory > 'maxmemory'.",
        Growth,
    ),
    passing(
        "READONLY You can't write against a read only replica.",
        Changes,
    ),
    passing("NOREPLICAS Not enough good replicas to write.", Changes),
    passing(
        "TRYAGAIN Multiple keys request during rehashing of slot",
        Changes,
    ),
    passing(
        "EXECABORT Transaction discarded because of previous errors.",
        Changes,
    ),
    passing("BUSY Redis is busy running a script.", AllButHello),
    passing(
        "UNKILLABLE Sorry the script already executed write commands",
        AllButHello,
    ),
    passing("ERR max number of clients reached", Connections),
    passing("NOPROTO unsupported protocol version", Hello),
    lasting("DENIED Redis is running in protected mode", Connections),
    lasting("NOAUTH Authentication required.", Everything),
    lasting(
        "WRONGPASS invalid username-password pair or user is disabled.",
        Auth,
    ),
    lasting(
        "NOPERM this user has no permissions to run the command",
        Changes,
    ),
    lasting("MOVED 3999 10.0.0.9:6381", Changes),
    lasting("ASK 3999 10.0.0.9:6381", Changes),
    lasting(
        "CROSSSLOT Keys in request don't hash to the same slot",
        Changes,
    ),
    lasting("CLUSTERDOWN The cluster is down", Changes),
];

impl Trouble {
    /// The code of the error.
    pub(crate) fn name(&self) -> &'static str {
        match self.refuses {
            Connections if !self.is_permanent => "max clients",
            _ => self.text.split(' ').next().unwrap_or_default(),
        }
    }

    /// Does it also affect `INFO`, because the server is busy?
    pub(crate) fn is_busy(&self) -> bool {
        self.refuses == AllButHello
    }

    pub(super) fn refuses_connections(&self) -> bool {
        self.refuses == Connections
    }

    /// Is this command refused?
    pub(super) fn refuses(&self, words: &[&[u8]]) -> bool {
        let is_hello = words[0] == b"HELLO";
        let is_greeting = matches!(words[0], b"HELLO" | b"AUTH" | b"INFO" | b"CLIENT" | b"ECHO");
        let is_change = matches!(words[0], b"SET" | b"DEL" | b"EVAL" | b"EVALSHA");
        match self.refuses {
            Connections => false,
            Everything => words[0] != b"AUTH",
            AllButHello => !is_hello,
            AllButGreeting => !is_greeting,
            Changes => is_change,
            // A script is stopped where it sets a key.
            Growth => Command::of(words).is_some_and(|command| {
                matches!(command.kind, Kind::Take | Kind::Queue | Kind::Fence)
            }),
            Hello => is_hello,
            Auth => words[0] == b"AUTH",
        }
    }
}
