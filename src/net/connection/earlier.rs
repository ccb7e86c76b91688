//! Sockets that are not connected yet, to addresses that were tried before the latest one.

use super::Socket;
use mio::Registry;
use mio::event::Event;

/// The most sockets that wait for an answer beside the latest one. Names have few addresses.
const EARLIER_MAX: usize = 7;

/// The sockets, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    sockets: Vec<Socket>,
    is_woken: bool,
}

impl Earlier {
    /// Adds a socket. If there are too many, the oldest is closed.
    pub(super) fn extend(&mut self, socket: Option<Socket>, registry: &Registry) {
        if self.sockets.len() == EARLIER_MAX {
            self.sockets.remove(0).stream.close(registry);
        }
        self.sockets.extend(socket);
        // Its event may have come just before.
        self.is_woken = true;
    }

    /// There was an event, of one of the sockets or of one that is closed. It is not repeated, so
    /// all that it says is recorded: a peer may answer and close before the socket is used.
    pub(super) fn record_readiness(&mut self, event: &Event) {
        if let Some(socket) = self.sockets.iter_mut().find(|it| it.token == event.token()) {
            socket.record_readiness(event);
            self.is_woken = true;
        }
    }

    /// The first socket that is connected. Those that have failed are closed.
    pub(super) fn take_connected(&mut self, registry: &Registry) -> Option<Socket> {
        if !std::mem::take(&mut self.is_woken) {
            return None;
        }
        let mut connected = None;
        for mut socket in std::mem::take(&mut self.sockets) {
            match socket.stream.is_connected() {
                Some(Ok(())) if connected.is_none() => {
                    socket.is_writable = true;
                    connected = Some(socket);
                }
                None => self.sockets.push(socket),
                Some(_) => socket.stream.close(registry),
            }
        }
        connected
    }

    /// The socket that was added last.
    pub(super) fn pop(&mut self) -> Option<Socket> {
        // It may be ready: the next look at it tells.
        self.sockets.pop().map(|socket| Socket { is_writable: true, ..socket })
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Closes all of them.
    pub(super) fn clear(&mut self, registry: &Registry) {
        self.sockets.drain(..).for_each(|socket| socket.stream.close(registry));
    }
}
