//! Several servers at once.

use super::capability::Capability;
use super::redis::Server;
use super::server_program::ServerProgram;

/// Several servers.
pub struct Servers(Vec<Server>);

impl Servers {
    /// Starts `count` servers at the same time.
    #[track_caller]
    pub fn start(count: usize) -> Self {
        Self::start_with(count, &[])
    }

    #[track_caller]
    pub fn start_with(count: usize, args: &[&str]) -> Self {
        Self::of(ServerProgram::tested(), count, args)
    }

    /// The same, of this program.
    #[track_caller]
    pub fn of(program: &ServerProgram, count: usize, args: &[&str]) -> Self {
        let mut servers: Vec<_> = (0..count)
            .map(|_| Server::launch(program, &[], args))
            .collect();
        servers.iter_mut().for_each(Server::await_ready_or_move);
        Self(servers)
    }

    /// Starts servers that speak RESP2 only: without the command `HELLO`, if they have it.
    #[track_caller]
    pub fn without_hello(count: usize) -> Self {
        let renamed: &[&str] = &["--rename-command", "HELLO", ""];
        Self::start_with(
            count,
            if Capability::Resp3.is_there() {
                renamed
            } else {
                &[]
            },
        )
    }

    pub fn urls(&self) -> Vec<String> {
        self.0.iter().map(Server::url).collect()
    }
}

impl std::ops::Deref for Servers {
    type Target = [Server];

    fn deref(&self) -> &[Server] {
        &self.0
    }
}

impl std::ops::DerefMut for Servers {
    fn deref_mut(&mut self) -> &mut [Server] {
        &mut self.0
    }
}
