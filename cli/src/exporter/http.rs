//! As much of an HTTP server as metrics take, with limits on everything: the crate httparse reads
//! requests. Servers that can be had without an async runtime lack a limit on the time of a whole
//! request, so that a few slow clients could occupy them.

use httparse::{EMPTY_HEADER, Request, Status};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The most connections at a time. Further ones are closed at once.
const CONNECTIONS_MAX: usize = 32;

/// The most bytes of a request, and the most headers. Prometheus sends about 300 bytes.
const REQUEST_MAX: usize = 8 * 1024;
const HEADERS_MAX: usize = 64;

/// A request must have arrived after this time, and the answer have been read after as long again.
const LIMIT: Duration = Duration::from_secs(5);

/// How long, and up to how many bytes, the rest of what a client sends is read and dropped, so that
/// the answer is not lost with it.
const REST_LIMIT: Duration = Duration::from_secs(1);
const REST_MAX: usize = 1024 * 1024;

/// The pause after a connection could not be accepted, as when there are too many open files.
const PAUSE: Duration = Duration::from_millis(100);

const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

const START_PAGE: &str = "<!doctype html><title>redlatch exporter</title>\n\
    <h1>redlatch exporter</h1>\n<p><a href=\"/metrics\">Metrics</a> for Prometheus.</p>\n";

/// The page of metrics, which changes now and then.
pub(super) struct Page(Mutex<Arc<str>>);

impl Page {
    pub(super) fn new(text: String) -> Self {
        Self(Mutex::new(text.into()))
    }

    pub(super) fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
    }

    fn text(&self) -> Arc<str> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Accepts connections for good.
pub(super) fn serve(listener: &TcpListener, page: &Arc<Page>) {
    let connections = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            thread::sleep(PAUSE);
            continue;
        };
        let place = Place::take(&connections);
        let Some(place) = place else { continue };
        let page = Arc::clone(page);
        // Without a thread, the connection is closed.
        let _ = thread::Builder::new().spawn(move || {
            let _place = place;
            // A client that has gone is no concern of ours.
            let _ = answer(&stream, &page);
        });
    }
}

/// One of the connections that there may be.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(connections: &Arc<AtomicUsize>) -> Option<Self> {
        let place = Self(Arc::clone(connections));
        (connections.fetch_add(1, Ordering::AcqRel) < CONNECTIONS_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn answer(stream: &TcpStream, page: &Page) -> io::Result<()> {
    let response = response(stream, page)?;
    let deadline = Instant::now() + LIMIT;
    let mut rest = &*response;
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match (&mut &*stream).write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stream.shutdown(Shutdown::Write)?;
    let deadline = Instant::now() + REST_LIMIT;
    let mut dropped = 0;
    let mut buffer = [0; 4096];
    while dropped < REST_MAX {
        match read(stream, &mut buffer, deadline)? {
            0 => break,
            count => dropped += count,
        }
    }
    Ok(())
}

/// The answer to the request that arrives.
fn response(stream: &TcpStream, page: &Page) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + LIMIT;
    let mut buffer = [0; REQUEST_MAX];
    let mut length = 0;
    loop {
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut request = Request::new(&mut headers);
        match request.parse(&buffer[..length]) {
            Ok(Status::Complete(_)) => return Ok(respond(&request, page)),
            Ok(Status::Partial) if length == REQUEST_MAX => return Ok(refuse(TOO_LARGE)),
            Ok(Status::Partial) => {}
            Err(httparse::Error::TooManyHeaders) => return Ok(refuse(TOO_LARGE)),
            Err(_) => return Ok(refuse("400 Bad Request")),
        }
        match read(stream, &mut buffer[length..], deadline) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => length += count,
            Err(error) if is_timeout(&error) => return Ok(refuse("408 Request Timeout")),
            Err(error) => return Err(error),
        }
    }
}

const TOO_LARGE: &str = "431 Request Header Fields Too Large";

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn read(stream: &TcpStream, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
    loop {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match (&mut &*stream).read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        Err(ErrorKind::TimedOut.into())
    } else {
        Ok(left)
    }
}

fn respond(request: &Request<'_, '_>, page: &Page) -> Vec<u8> {
    let target = request.path.unwrap_or_default();
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let is_metrics = match path {
        "/metrics" => true,
        "/" => false,
        _ => return refuse("404 Not Found"),
    };
    let is_head = match request.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return refuse("405 Method Not Allowed\r\nAllow: GET, HEAD"),
    };
    let text = if is_metrics {
        page.text()
    } else {
        START_PAGE.into()
    };
    let kind = match (is_metrics, takes_open_metrics(request)) {
        (false, _) => HTML,
        (true, false) => PLAIN,
        (true, true) => OPEN_METRICS,
    };
    let head = head("200 OK", kind, text.len());
    if is_head {
        head.into()
    } else {
        (head + &text).into()
    }
}

fn takes_open_metrics(request: &Request<'_, '_>) -> bool {
    request.headers.iter().any(|header| {
        let value = String::from_utf8_lossy(header.value);
        header.name.eq_ignore_ascii_case("accept") && value.contains("application/openmetrics-text")
    })
}

fn refuse(status: &str) -> Vec<u8> {
    let text = status.lines().next().unwrap_or_default();
    (head(status, "text/plain; charset=utf-8", text.len() + 1) + text + "\n").into()
}

fn head(status: &str, kind: &str, length: usize) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    )
}
