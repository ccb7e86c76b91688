//! The driver of one contender: what it wants done, and what has become of it.

use crate::client::{Client, now};
use redlatch_protocol::engine::Jitter;
use redlatch_protocol::time::Time;
use redlatch_zookeeper::contender::{
    Cleanup, Contender, ContenderPlan, ContenderStep, Held, Serial,
};
use redlatch_zookeeper::path::{Directory, Root};
use redlatch_zookeeper::session::{EnsembleAnswer, Failure};
use std::sync::Mutex;
use std::time::Duration;

/// How long it pauses when a server refuses what may be possible later.
const PAUSE: Duration = Duration::from_millis(10);

/// A contender and its outcome.
pub(crate) struct Contention {
    pub(crate) contender: Contender,
    paused_until: Time,
    /// The lock, while it is held.
    pub(crate) held: Option<Held>,
    /// Until when the holder may rely on it. It does not grow any more when it has passed.
    pub(crate) valid_until: Time,
    pub(crate) left: Option<Cleanup>,
    pub(crate) refused: Option<Failure>,
    /// The session or the znode of a lock that was held is gone.
    pub(crate) is_lost: bool,
    /// Others have the lock, and it does not wait.
    pub(crate) is_contended: bool,
    /// How many attempts it has begun.
    pub(crate) attempts: usize,
}

/// A plan for the lock of this name below this root.
pub(crate) fn plan(root: &str, name: &str) -> ContenderPlan {
    let root = Root::new(root).expect("a path");
    let directory = Directory::new(&root, b"", name.as_bytes()).expect("a path");
    ContenderPlan::of_set(&root, vec![directory])
}

impl Contention {
    pub(crate) fn new(plan: ContenderPlan) -> Self {
        Self {
            contender: Contender::new(plan),
            paused_until: Time::ZERO,
            held: None,
            valid_until: Time::ZERO,
            left: None,
            refused: None,
            is_lost: false,
            is_contended: false,
            attempts: 0,
        }
    }

    pub(crate) fn give_up(&mut self) {
        self.held = None;
        self.contender.give_up();
    }

    pub(crate) fn answered(&mut self, serial: Serial, answer: &EnsembleAnswer) {
        self.contender.answered(serial, answer.zxid, answer.reply());
    }

    /// Does what the contender wants.
    pub(crate) fn take_steps(&mut self, client: &mut Client) {
        while now() >= self.paused_until {
            let Some(step) = self.contender.poll(now(), client.session.valid_until()) else {
                break;
            };
            match step {
                ContenderStep::Begin => {
                    self.attempts += 1;
                    self.contender.begin(random_bytes());
                }
                ContenderStep::Send(serial, request) => client.send_for(serial, request),
                ContenderStep::Keep(path) => client.session.keep(path),
                ContenderStep::Forget(path) => client.session.forget(&path),
                ContenderStep::Pause => self.paused_until = now().after(PAUSE),
                ContenderStep::Delete(serial, path) => client.delete_for(serial, path),
                ContenderStep::Held(held) => {
                    self.held = Some(held);
                    self.valid_until = client.session.valid_until();
                }
                ContenderStep::Contended => self.is_contended = true,
                ContenderStep::Refused(failure) => self.refused = Some(failure),
                ContenderStep::Lost => {
                    self.held = None;
                    self.is_lost = true;
                }
                ContenderStep::CleanedUp(left) => self.left = Some(left),
            }
        }
        if self.held.is_some() && now() < self.valid_until {
            self.valid_until = client.session.valid_until();
        }
    }
}

/// Bytes that are used once on this machine.
fn random_bytes() -> [u8; 16] {
    static RANDOM: Mutex<Option<Jitter>> = Mutex::new(None);
    let mut random = RANDOM.lock().expect("nothing panics with this lock held");
    let seed = || {
        let time = std::time::UNIX_EPOCH
            .elapsed()
            .expect("it is after 1970")
            .as_nanos();
        time as u64 ^ u64::from(std::process::id()) << 32
    };
    let random = random.get_or_insert_with(|| Jitter::from_seed(seed()));
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&random.next_u64().to_be_bytes());
    bytes[8..].copy_from_slice(&random.next_u64().to_be_bytes());
    bytes
}
