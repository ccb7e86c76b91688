//! A network that is far away: proxies that pass on every byte after a while, all in one thread, so
//! that they take as little of the machine as they can.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// One direction of a connection.
struct Pipe {
    from: TcpStream,
    to: TcpStream,
    /// The bytes that were read, and the time at which to write them.
    under_way: VecDeque<(Instant, Vec<u8>)>,
    is_open: bool,
}

/// Starts a proxy for each of these servers, and returns their URLs. They live as long as the
/// program.
pub fn start(servers: &[SocketAddr], delay: Duration) -> Vec<String> {
    let listen = |&server: &SocketAddr| -> io::Result<_> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let url = format!("redis://{}", listener.local_addr()?);
        Ok(((listener, server), url))
    };
    let started = servers.iter().map(listen).collect::<io::Result<Vec<_>>>();
    let (listeners, urls): (Vec<_>, _) = started.expect("proxies can listen").into_iter().unzip();
    thread::spawn(move || serve(&listeners, delay).expect("the proxies' sockets work"));
    urls
}

fn serve(listeners: &[(TcpListener, SocketAddr)], delay: Duration) -> io::Result<()> {
    let mut pipes: Vec<Pipe> = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        wait(listeners, &pipes)?;
        for (listener, server) in listeners {
            while let Some((client, _)) = not_yet(listener.accept())? {
                let server = TcpStream::connect(server)?;
                for stream in [&client, &server] {
                    stream.set_nodelay(true)?;
                    stream.set_nonblocking(true)?;
                }
                for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
                    pipes.push(Pipe {
                        from,
                        to,
                        under_way: VecDeque::new(),
                        is_open: true,
                    });
                }
            }
        }
        let now = Instant::now();
        for pipe in &mut pipes {
            pipe.is_open = pipe.is_open && pipe.read(&mut buffer, now + delay).is_ok();
            if pipe.write(now).is_err() {
                pipe.under_way.clear();
                pipe.is_open = false;
            }
            if !pipe.is_open && pipe.under_way.is_empty() {
                let _ = pipe.to.shutdown(Shutdown::Write);
            }
        }
        pipes.retain(|pipe| pipe.is_open || !pipe.under_way.is_empty());
    }
}

/// Waits for bytes, for a connection, or until bytes are due.
fn wait(listeners: &[(TcpListener, SocketAddr)], pipes: &[Pipe]) -> io::Result<()> {
    let due = pipes
        .iter()
        .filter_map(|pipe| pipe.under_way.front())
        .map(|(due, _)| *due)
        .min();
    let timeout = due.map(|due| {
        let left = due.saturating_duration_since(Instant::now());
        Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(left.subsec_nanos()),
        }
    });
    let sockets = listeners
        .iter()
        .map(|(listener, _)| PollFd::new(listener, PollFlags::IN));
    let pipes = pipes.iter().filter(|pipe| pipe.is_open);
    let pipes = pipes.map(|pipe| PollFd::new(&pipe.from, PollFlags::IN));
    match poll(
        &mut sockets.chain(pipes).collect::<Vec<_>>(),
        timeout.as_ref(),
    ) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Pipe {
    fn read(&mut self, buffer: &mut [u8], due: Instant) -> io::Result<()> {
        match not_yet(self.from.read(buffer))? {
            Some(0) => Err(ErrorKind::UnexpectedEof.into()),
            Some(count) => {
                self.under_way.push_back((due, buffer[..count].to_vec()));
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn write(&mut self, now: Instant) -> io::Result<()> {
        while let Some((due, bytes)) = self.under_way.front_mut()
            && *due <= now
        {
            match not_yet(self.to.write(bytes))? {
                None => break,
                Some(count) if count < bytes.len() => drop(bytes.drain(..count)),
                Some(_) => drop(self.under_way.pop_front()),
            }
        }
        Ok(())
    }
}

fn not_yet<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
