//! `redlatch exporter`: nodes and locks as metrics for Prometheus, over HTTP.
//!
//! One thread looks at the nodes and locks, once in each interval, and makes the page. Others send
//! it: what a scrape costs does not depend on the nodes.

pub(crate) mod arguments;
mod collector;
mod http;
mod text;

use super::arguments::NodeArguments;
use super::exit::Failure;
use super::{output, settings};
use arguments::ExporterArguments;
use collector::Collector;
use http::Page;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// More often, it would be a load for the nodes that nobody needs.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

pub(crate) fn exporter(
    nodes: &NodeArguments,
    arguments: &ExporterArguments,
) -> Result<u8, Failure> {
    if arguments.interval < INTERVAL_MIN {
        return Err(Failure::usage(&"--interval must be 1s or longer"));
    }
    let client = settings::client(nodes)?;
    let address = arguments.listen;
    let fails = |error| Failure::system(&format!("cannot listen at {address}"), &error);
    let listener = TcpListener::bind(address).map_err(fails)?;
    let address = listener.local_addr().map_err(fails)?;
    let mut collector = Collector::new(&client, arguments);
    let mut start = Instant::now();
    let page = Arc::new(Page::new(collector.collect()));
    let served = Arc::clone(&page);
    let thread = thread::Builder::new().name("http".to_owned());
    thread
        .spawn(move || http::serve(&listener, &served))
        .map_err(|error| Failure::system("no thread", &error))?;
    output::print(&format!("http://{address}/metrics\n"))?;
    loop {
        let next = start + arguments.interval;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        start = Instant::now();
        page.set(collector.collect());
    }
}
