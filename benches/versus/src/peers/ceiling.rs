//! The servers' limit: the same SET and EVALSHA through pipelines so deep that no server ever waits
//! for a command.

use super::{Run, floor};
use crate::work::{Answer, Note, Order, Record, cpu_time, now, sleep_until};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Commands in one pipeline. Two pipelines are in flight at a time, so that the servers have one to
/// work on while the answers to the other are read.
const DEPTH: usize = 256;

pub fn start(urls: &[String]) -> Run {
    let (sha1, mut streams) = floor::connect(urls);
    Box::new(move |order| run(&sha1, &mut streams, order))
}

fn run(sha1: &str, streams: &mut [TcpStream], order: &Order) -> Answer {
    let (mut batch, mut expected) = (Vec::new(), Vec::new());
    for index in 0..DEPTH / 2 {
        let resource = order.resource(index);
        batch.extend(floor::set(&resource));
        batch.extend(floor::delete(sha1, &resource));
        expected.extend_from_slice(b"+OK\r\n:1\r\n");
    }
    let (mut records, mut replies) = (Vec::new(), vec![0; expected.len()]);
    sleep_until(order.start);
    let before = cpu_time();
    write(streams, &batch);
    let mut is_last = false;
    while !is_last {
        let asked = now();
        is_last = asked >= order.end;
        if !is_last {
            write(streams, &batch);
        }
        for stream in &mut *streams {
            stream.read_exact(&mut replies).expect("the server answers");
            assert!(replies == expected, "the server executes the commands");
        }
        let granted = now();
        let (releasing, released, note) = (granted, granted, Note::default());
        let record = Record { asked, granted, releasing, released, note };
        records.extend(std::iter::repeat_n(record, DEPTH / 2));
    }
    Answer { cpu: cpu_time() - before, clients: vec![records] }
}

fn write(streams: &mut [TcpStream], batch: &[u8]) {
    for stream in streams {
        stream.write_all(batch).expect("the server takes it");
    }
}
