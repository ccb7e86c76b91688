//! Data that a server begins with, for states that no client could bring about in the time of a
//! test: a directory in which two billion znodes were created.
//!
//! The format is that of `FileSnap` and `DataTree` of ZooKeeper 3.8: a header, no sessions, no
//! access lists but the usual one, each znode behind its parent, and an Adler-32 checksum.

use std::fs;
use std::path::Path;

/// "ZKSN", version 2, and a database without a number.
const HEADER: [&[u8]; 3] = [b"ZKSN", &[0, 0, 0, 2], &[0xff; 8]];

/// The transaction of the last change.
const ZXID: u64 = 0x100;

/// The access list with which everybody may do everything.
const OPEN: i64 = -1;

/// The owner of a container.
const CONTAINER: i64 = i64::MIN;

/// Znodes without data.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Path, owner, and the number of the next sequential child.
    znodes: Vec<(String, i64, i32)>,
}

impl Default for Snapshot {
    fn default() -> Self {
        let own = ["", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];
        Self {
            znodes: own.map(|path| (path.to_owned(), 0, 0)).to_vec(),
        }
    }
}

impl Snapshot {
    /// With this persistent znode. Its parent must be there.
    pub fn persistent(self, path: &str) -> Self {
        self.with(path, 0, 0)
    }

    /// With this container, whose next sequential child gets this number.
    pub fn container(self, path: &str, next_number: i32) -> Self {
        self.with(path, CONTAINER, next_number)
    }

    fn with(mut self, path: &str, owner: i64, next_number: i32) -> Self {
        self.znodes.push((path.to_owned(), owner, next_number));
        self
    }

    /// Writes it into the data directory of a server.
    pub(super) fn write_to(&self, data: &Path) {
        let folder = data.join("version-2");
        fs::create_dir_all(&folder).expect("a folder can be made in a temporary one");
        let path = folder.join(format!("snapshot.{ZXID:x}"));
        fs::write(path, self.bytes()).expect("it can be written");
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = HEADER.concat();
        // No sessions and no access lists.
        bytes.extend([0; 8]);
        for (path, owner, next_number) in &self.znodes {
            text(&mut bytes, path);
            // No data.
            bytes.extend([0; 4]);
            bytes.extend(OPEN.to_be_bytes());
            // Created and changed by transaction 1, at no time.
            bytes.extend([1_i64, 1, 0, 0].map(i64::to_be_bytes).concat());
            bytes.extend([0, *next_number, 0].map(i32::to_be_bytes).concat());
            bytes.extend([*owner, 1].map(i64::to_be_bytes).concat());
        }
        text(&mut bytes, "/");
        let sum = i64::from(adler32(&bytes));
        bytes.extend(sum.to_be_bytes());
        text(&mut bytes, "/");
        bytes
    }
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    let length = i32::try_from(text.len()).expect("a path is short");
    bytes.extend(length.to_be_bytes());
    bytes.extend(text.as_bytes());
}

/// The checksum of RFC 1950.
fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let step = |(low, high): (u32, u32), byte: &u8| {
        let low = (low + u32::from(*byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    };
    let (low, high) = bytes.iter().fold((1, 0), step);
    high << 16 | low
}
