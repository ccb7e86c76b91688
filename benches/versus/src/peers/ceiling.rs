//! The servers' limit: the same SET and EVALSHA through pipelines so deep that no server ever waits
//! for a command.

use super::floor;
use crate::work::{Part, Plan, Slice, Watch};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// Commands in one pipeline. Two pipelines are in flight at a time, so that the servers have one to
/// work on while the answers to the other are read.
const DEPTH: usize = 256;

pub struct Ceiling {
    sha1: String,
    streams: Vec<TcpStream>,
}

impl Ceiling {
    pub fn new(urls: &[String]) -> Self {
        let (sha1, streams) = floor::connect(urls);
        Self { sha1, streams }
    }

    pub fn run(&mut self, plan: &Plan) -> Slice {
        let mut batch = Vec::new();
        let mut expected = Vec::new();
        for index in 0..DEPTH / 2 {
            let resource = plan.resource(index);
            batch.extend(floor::set(&resource));
            batch.extend(floor::delete(&self.sha1, &resource));
            expected.extend_from_slice(b"+OK\r\n:1\r\n");
        }
        let mut part = Part::new();
        let mut replies = vec![0; expected.len()];
        let watch = Watch::start();
        self.write(&batch);
        let mut is_last = false;
        while !is_last {
            let start = Instant::now();
            is_last = watch.elapsed() >= plan.duration;
            if !is_last {
                self.write(&batch);
            }
            for stream in &mut self.streams {
                stream.read_exact(&mut replies).expect("the server answers");
                assert!(replies == expected, "the server executes the commands");
            }
            part.pairs += DEPTH as u64 / 2;
            part.acquire.record(start.elapsed());
        }
        watch.stop(&[part])
    }

    fn write(&mut self, batch: &[u8]) {
        for stream in &mut self.streams {
            stream.write_all(batch).expect("the server takes it");
        }
    }
}
