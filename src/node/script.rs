//! The Lua scripts that run on the nodes, where compare and change must be one step.
//!
//! A node caches each script under the SHA-1 of its source, so a request names the script by its
//! digest (`EVALSHA`). It sends the source (`EVAL`) only if the node has not run the script on this
//! connection, or answers that it does not know it; or if the request removes a lock, because there
//! may be no thread left that sends it again. A test checks the digests against the sources.
//!
//! The last argument of every script is a number that no other command of this client to this node
//! has, and the answer repeats it: `n` for yes, `-n` for no, or a list that begins with `n`. So a
//! reply that arrives twice is never taken for the answer to another command. (`SET`, which takes
//! a plain lock, has no room for such a proof.)
//!
//! `waiting.lua` is the beginning of every script that frees a lock. Its `reserve` sets the lock's
//! key to a reservation for the first waiter in the queue and notifies that waiter, and tells the
//! next when to ask; entries of waiters that nobody hears are removed. `sharing.lua` is the
//! beginning of those that concern shares.
//!
//! For a lock with one key that nobody has queued for, [`RELEASE`] does the same as [`GIVE`]. For a
//! reader that did not wait, [`RELEASE_READER`] does the same as [`RELEASE_SHARED`]. They exist
//! because acquiring and releasing takes longer without them, as a client measures it.

/// The most bytes of a value that [`INSPECT`] returns: more than the value of any lock has.
pub const SHOWN_MAX: usize = 1024;

/// A script and its digest.
#[derive(Clone, Copy, Debug, Eq)]
#[non_exhaustive]
pub struct Script {
    /// The Lua source, byte for byte as it is sent.
    pub source: &'static str,
    /// The SHA-1 of the source, in lower-case hexadecimal.
    pub sha1: &'static str,
}

/// Compares the digests only: scripts are compared for each command, and a digest is short.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        self.sha1 == other.sha1
    }
}

/// Deletes the lock's key if it still holds our token, and reserves the lock for the first waiter:
/// `KEYS[1]` the key, `ARGV[1]` the token, `ARGV[2]` the number.
pub const RELEASE: Script = Script {
    source: concat!(include_str!("waiting.lua"), include_str!("release.lua")),
    sha1: "c0135258b48f815ef83ab0b94047f83a71ae51c3",
};

/// Gives a lock up: `KEYS` the lock's keys, `ARGV[1]` our value, `ARGV[2]` the waiter that leaves
/// the queue, or nothing, `ARGV[3]` for how many milliseconds the lock stays taken, or nothing,
/// `ARGV[4]` the number. Each key that holds our value is deleted, and the lock is reserved for the
/// first waiter; and so is a lock that was reserved for the waiter that leaves. If that one was the
/// first and the lock is another client's, the next is told to ask.
///
/// A lock that stays taken is not deleted: its key says from now on that the lock is left, and until
/// when. If somebody waits, the key stays for a second longer, in which only the first waiter gets
/// the lock: it is told when to ask.
///
/// Answers yes if all keys held our value. If a key cannot be read, the others are given up all the
/// same, and the answer is the server's error.
pub const GIVE: Script = Script {
    source: concat!(include_str!("waiting.lua"), include_str!("give.lua")),
    sha1: "56db10e495a335a19b1385525171cfcf75b81f44",
};

/// Extends a lock, or sets it again on a node that lost it: `KEYS` the lock's keys, `ARGV[1]` our
/// value, `ARGV[2]` the ttl in milliseconds, `ARGV[3]` nothing to extend it, `restore` to set it
/// again, `ARGV[4]` the number.
///
/// All keys must hold our value; if it is set again, those that do not exist or are reserved for a
/// waiter are set. It never shortens a key's ttl, so an earlier and shorter extension may arrive at
/// any time. A key without a ttl gets none.
pub const KEEP: Script =
    Script { source: include_str!("keep.lua"), sha1: "c32afcdefa9736da77a9edc6feeaf1d07faa4661" };

/// Takes a lock, all of its keys or none: `KEYS` the lock's keys and then its counters' keys,
/// `ARGV[1]` the number of lock keys, `ARGV[2]` the value that the keys may have, or nothing,
/// `ARGV[3]` our value, `ARGV[4]` its ttl in milliseconds, `ARGV[5]` the least value of a counter,
/// `ARGV[6]` the least ttl of the counters, `ARGV[7]` a waiter or nothing, `ARGV[8]` the number.
/// Every key must be free, or have the value that is expected:
///
/// * nothing, to acquire the lock;
/// * the predecessor's value, in a handoff. The waiter is the one by which the predecessor was
///   taken, and leaves the queue;
/// * a reservation, in the turn of the waiter that it names. The waiter must be the first in the
///   queue, or have the reservation. It stays in the queue until the lock is released, or its entry
///   expires: as long as it is not known whether a majority has granted the lock, who joins must get
///   a larger number. Its entry ends with the lock's ttl at the latest, and is empty then.
///
/// Answers a list of four: the number; 1 if some of the keys did not exist or were reserved, 0 if
/// all held the predecessor's value; if there are counters, their new value, one more than the
/// largest was; and 1 if another client waits for the first key, 0 if none does.
///
/// It never shortens a counter's ttl. A counter consists of decimal digits only, although Lua reads
/// other texts as numbers too. A counter that is no number, or is too large to be raised, is an
/// error, and nothing is written then. The error does not quote the key, which may have more bytes
/// than a line of RESP.
pub const CLAIM: Script =
    Script { source: include_str!("claim.lua"), sha1: "be103792ccb19ae1bc207e7cb5b07ccd220b744c" };

/// Raises counters to a number, if the locks still hold our value: `KEYS` and `ARGV[1]` as for
/// [`CLAIM`], `ARGV[2]` our value, `ARGV[3]` the fencing token, `ARGV[4]` the least ttl of the
/// counters in milliseconds, `ARGV[5]` the number. Refuses if a key does not hold our value, or if
/// a counter is above the fencing token: another client may then have been granted this token. A
/// counter that is no number is an error.
pub const FENCE: Script =
    Script { source: include_str!("fence.lua"), sha1: "40101b8d7279a14bb930a5c59e87f2170f50db97" };

/// Reads a lock's key `KEYS[1]`; `ARGV[1]` is the number. Answers a list: the number, the key's
/// value, its ttl in milliseconds, the names and leases of the first hundred waiters, the members
/// and remaining milliseconds of the first hundred holders of shares, and how many waiters and
/// holders there are; if they are more than a hundred, some may have expired. Waiters and holders
/// are lists of lists of up to 64 elements, the most that a client accepts. A value that is longer
/// than any of ours is cut off, and 0 stands for a value that is no string.
pub const INSPECT: Script = Script {
    source: include_str!("inspect.lua"),
    sha1: "243b571de7fcf97c323850ddc42fac438a941936",
};

/// Lists the next keys that match a pattern and may be locks: strings with a ttl that are no longer
/// than a lock's value, and no keys of queues. `ARGV[1]` is the server's cursor, `ARGV[2]` the
/// pattern, `ARGV[3]` about how many keys the server looks at, and `ARGV[4]` the number.
///
/// Answers a list: the number, the next cursor or 0 at the end, and the keys in lists of up to 64;
/// or null for them, and the same cursor, if they are more than fit in a reply.
pub const SCAN: Script =
    Script { source: include_str!("scan.lua"), sha1: "c58eb8f3094cf7919b3877dd960b14351e262f3c" };

/// Deletes a lock's key `KEYS[1]`, whatever token it holds, if its value is one of those that were
/// read before: all of `ARGV` but the last, which is the number.
pub const REMOVE: Script = Script {
    source: concat!(
        include_str!("waiting.lua"),
        include_str!("sharing.lua"),
        include_str!("remove.lua")
    ),
    sha1: "7976987a4718c9d96f7aff20e0e187ec3be5ae00",
};

/// Enters a waiter into the queue of a lock, or renews its entry: `KEYS[1]` the lock's key,
/// `ARGV[1]` the waiter's name, `ARGV[2]` its number or 0 for one more than the last in the queue,
/// `ARGV[3]` the value of the failed attempt, which is withdrawn, `ARGV[4]` its entry, `ARGV[5]`
/// for how many milliseconds the entry is kept, `ARGV[6]` the number. A waiter that has a place
/// keeps its number if it asks for 0. A queue with a number that no counting reaches was written by
/// another program, and is emptied: the waiters enter it again.
///
/// The script removes shares that have expired: the key ends with the last one that has not. It
/// removes waiters whose entry has expired from the front of the queue. A waiter that has not
/// claimed its reservation in time is removed from the queue if another waits. If the one that asks
/// is that waiter, it stays out until it asks again. Then, if the key holds no lock, it is reserved
/// for the first waiter (`waiting.lua`).
///
/// Answers a list: the number, the waiter's number, its place (0 for the first); the sum of 1 if
/// the lock is reserved for it and 2 if it had a number but was not in the queue, or has missed its
/// reservation; for how many milliseconds the lock or the reservation of another waiter lasts, and
/// how many waiters there are.
pub const QUEUE: Script = Script {
    source: concat!(
        include_str!("waiting.lua"),
        include_str!("sharing.lua"),
        include_str!("queue.lua")
    ),
    sha1: "a9442782201b7999727f6182c086da7eb51a11a0",
};

/// Reads a lock's key `KEYS[1]`, so that the server tells this connection when it changes.
/// `ARGV[1]` is the number. Answers yes if there is such a key.
pub const LISTEN: Script =
    Script { source: include_str!("listen.lua"), sha1: "d73f5d82779c07f1870e2fabc243e92fa62bdcd9" };

/// Takes a share of a lock, as a reader or with a permit: `KEYS[1]` the key, `KEYS[2]` its
/// counter's key if the share is fenced, `ARGV[1]` our value, `ARGV[2]` its ttl in milliseconds,
/// `ARGV[3]` how many permits there are or 0 for a reader, `ARGV[4]` the permit that is looked at
/// first (in a waiter's turn also nothing: the node has one for the waiter), `ARGV[5]` a waiter or
/// nothing, `ARGV[6]` the least value of the counter, `ARGV[7]` its least ttl, `ARGV[8]` the
/// number.
///
/// The node grants it if the key does not exist or is shared, and nobody waits; in the turn of a
/// waiter, if the key is reserved for it, or if all before it in the queue can have a share beside
/// it. The waiter leaves the queue; its number is kept for a while, so that who joins gets a larger
/// one. The first waiters that can have a share now are notified. A permit raises the counter, as
/// [`CLAIM`] does. A reader only reads it.
///
/// Most readers' tries without a counter are granted by `share_reader.lua`, before the functions
/// of `sharing.lua` are made: if there is no queue, and the key does not exist or is shared by
/// readers of whom none has expired.
///
/// Answers a list of four: the number, 1, the counter, and the permit or -1.
pub const SHARE: Script = Script {
    source: concat!(
        include_str!("share_reader.lua"),
        include_str!("waiting.lua"),
        include_str!("sharing.lua"),
        include_str!("share.lua")
    ),
    sha1: "48eafb55fa075ad987315774cbd587267330d2f4",
};

/// Extends a share of a lock, as [`KEEP`] does a lock: `KEYS[1]` the key, `ARGV[1]` the permit or
/// nothing, `ARGV[2]` our value, `ARGV[3]` the new ttl in milliseconds, `ARGV[4]` the number.
pub const EXTEND_SHARED: Script = Script {
    source: concat!(
        include_str!("waiting.lua"),
        include_str!("sharing.lua"),
        include_str!("extend_shared.lua")
    ),
    sha1: "bef0bf8ba24651f3e1d84bc580d77c122ca4f281",
};

/// Gives a share again on a node that lost it, or gave another permit, which is given up, in the
/// words of [`EXTEND_SHARED`]. Refuses if another client has this permit, or the lock itself.
pub const RESTORE_SHARED: Script = Script {
    source: concat!(
        include_str!("waiting.lua"),
        include_str!("sharing.lua"),
        include_str!("restore_shared.lua")
    ),
    sha1: "3c3184c7b1b819e2b7691d7de21918ca85bab7ab",
};

/// Gives a share of a lock back, whichever permit it is: `KEYS[1]` the key, `ARGV[1]` our value,
/// `ARGV[2]` how many permits there are or 0 for a reader, `ARGV[3]` the waiter by which we took
/// it, which leaves the queue, or nothing, `ARGV[4]` for how many milliseconds it is kept, or
/// nothing to remove it, `ARGV[5]` the number. After the last share, the lock is reserved for the
/// first waiter; while there are others, a first waiter that can have a permit is notified. Answers
/// yes if we had a share.
pub const RELEASE_SHARED: Script = Script {
    source: concat!(include_str!("waiting.lua"), include_str!("release_shared.lua")),
    sha1: "01edd5dad891c26bf18223ea56d692909f1a508b",
};

/// Gives back the share of a reader that did not wait, as [`RELEASE_SHARED`] does with less work:
/// `KEYS[1]` the key, `ARGV[1]` our value, `ARGV[2]` the number. It removes no shares that have
/// expired: a waiter that asks ([`QUEUE`]) sees to that. So yes may be the answer also if our share
/// had expired: nobody had the lock since then but others with a share.
pub const RELEASE_READER: Script = Script {
    source: concat!(include_str!("waiting.lua"), include_str!("release_reader.lua")),
    sha1: "54dd86af011c1f52484128994d697deeff17afa9",
};

/// Every script of this library.
pub const ALL: [Script; 15] = [
    RELEASE,
    GIVE,
    KEEP,
    CLAIM,
    FENCE,
    INSPECT,
    REMOVE,
    QUEUE,
    LISTEN,
    SHARE,
    EXTEND_SHARED,
    RESTORE_SHARED,
    RELEASE_SHARED,
    RELEASE_READER,
    SCAN,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digests_are_those_of_the_sources() {
        for script in ALL {
            let digest = sha1_smol::Sha1::from(script.source).digest().to_string();
            assert_eq!(script.sha1, digest, "{}", script.source);
        }
    }
}
