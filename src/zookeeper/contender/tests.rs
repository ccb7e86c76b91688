//! One contender, with scripted replies.

mod joining;
mod leaving;
mod losing;

use super::*;
use crate::zookeeper::jute::{FrameWriter, frame};
use crate::zookeeper::message::{CreateKind, Operation, RequestKind, ServerError};
use crate::zookeeper::path::{Directory, Root};

/// A contender for `/apps/locks/a`. Each attempt has an id whose name ends with the attempt's
/// number, and names are short in what it says and is told: `c1` is the name of attempt 1.
struct Script {
    contender: Contender,
    attempts: u8,
    /// The requests without an answer.
    asked: VecDeque<Serial>,
    valid_until: Time,
}

const NOW: Time = Time::from_millis(5_000);

impl Script {
    fn new(waits: bool) -> Self {
        let root = Root::new("/apps/locks").unwrap();
        let directory = Directory::new(&root, b"", b"a").unwrap();
        let mut plan = Plan::new(&root, directory);
        plan.waits = waits;
        Self {
            contender: Contender::new(plan),
            attempts: 0,
            asked: VecDeque::new(),
            valid_until: Time::from_millis(9_000),
        }
    }

    /// One whose znode has this number, and whose list is to be answered.
    fn joined(number: i32) -> Self {
        let mut script = Self::new(true);
        assert_eq!(script.steps(), ["begin"]);
        assert_eq!(script.begin(), ["create c1", "list"]);
        script.created(&format!("c1-{number:010}"), 70);
        assert_eq!(script.steps(), [format!("keep c1-{number:010}")]);
        script
    }

    /// One that waits behind `c9-0000000006`.
    fn queued() -> Self {
        let mut script = Self::joined(7);
        script.listed(&["c1-0000000007", "c9-0000000006", "c8-0000000005"]);
        assert_eq!(script.steps(), ["watch c9-0000000006"]);
        script.data();
        assert_eq!((script.steps(), script.contender.place()), (vec![], Some(2)));
        script
    }

    fn held() -> Self {
        let mut script = Self::joined(7);
        script.listed(&["c1-0000000007"]);
        assert_eq!(script.steps(), ["held c1-0000000007 by 70"]);
        script
    }

    fn begin(&mut self) -> Vec<String> {
        self.attempts += 1;
        self.contender.begin(NOW, [self.attempts; 16]);
        self.steps()
    }

    fn steps(&mut self) -> Vec<String> {
        let mut steps = Vec::new();
        while let Some(step) = self.contender.poll(NOW, self.valid_until) {
            steps.push(self.text(step));
        }
        steps
    }

    fn text(&mut self, step: Step) -> String {
        match step {
            Step::Begin => "begin".to_owned(),
            Step::Send(serial, request) => {
                self.asked.push_back(serial);
                asked(&request)
            }
            Step::Keep(path) => format!("keep {}", short(&path)),
            Step::Delete(None, path) => format!("delete {} unheard", short(&path)),
            Step::Delete(Some(serial), path) => {
                self.asked.push_back(serial);
                format!("delete {}", short(&path))
            }
            Step::Pause => "pause".to_owned(),
            Step::Held(held) => {
                assert_eq!(held.since, NOW);
                format!("held {} by {}", short(&held.path), held.created_by)
            }
            Step::Contended => "contended".to_owned(),
            Step::Refused(failure) => format!("refused {failure:?}"),
            Step::Lost => "lost".to_owned(),
            Step::Left(left) => format!("left {left:?}"),
        }
    }

    fn answer(&mut self, zxid: i64, reply: Result<Reply<'_>, &Failure>) {
        let serial = self.asked.pop_front().expect("something was asked");
        self.contender.answered(serial, zxid, reply);
    }

    fn created(&mut self, name: &str, zxid: i64) {
        let path = format!("/apps/locks/a/{}", long(name));
        self.answer(zxid, Ok(Reply::Created { path: &path, stat: None }));
    }

    fn listed(&mut self, names: &[&str]) {
        self.with_stat(list_of(names), RequestKind::GetChildren, 0);
    }

    fn data(&mut self) {
        self.with_stat(vec![0, 0, 0, 0], RequestKind::GetData, 0);
    }

    fn stat(&mut self, created_by: i64) {
        self.with_stat(Vec::new(), RequestKind::Exists, created_by);
    }

    fn with_stat(&mut self, mut body: Vec<u8>, kind: RequestKind, created_by: i64) {
        body.extend_from_slice(&created_by.to_be_bytes());
        body.extend_from_slice(&[0; 60]);
        self.answer(71, Ok(Reply::decode(kind, &body).unwrap()));
    }

    fn synced(&mut self) {
        self.answer(71, Ok(Reply::Synced));
    }

    fn done(&mut self) {
        self.answer(71, Ok(Reply::Done));
    }

    fn refused(&mut self, error: ServerError) {
        self.answer(71, Err(&Failure::Server(error)));
    }

    /// All that was asked is not answered.
    fn unanswered(&mut self) {
        for _ in 0..self.asked.len() {
            self.answer(0, Err(&Failure::Unanswered));
        }
    }
}

/// The count and the names of a list.
fn list_of(names: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FrameWriter::begin(&mut bytes);
    writer.int(i32::try_from(names.len()).unwrap());
    for name in names {
        writer.text(&long(name));
    }
    writer.finish().unwrap();
    frame(&bytes).unwrap().unwrap().0.to_vec()
}

/// `c1-0000000007` in full.
fn long(name: &str) -> String {
    let Some((attempt, number)) = name.strip_prefix('c').and_then(|rest| rest.split_once('-'))
    else {
        return name.to_owned();
    };
    let id = ContenderId::from_random([attempt.parse().unwrap(); 16]);
    format!("_c_{id}-lock-{number}")
}

/// The last element of a path, in short if it is a contender's.
fn short(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let Some(rest) = name.strip_prefix("_c_") else { return name.to_owned() };
    let (attempt, number) = (&rest[..2], rest.rsplit_once("lock-").map_or("", |(_, n)| n));
    let attempt = u8::from_str_radix(attempt, 16).unwrap();
    if number.is_empty() { format!("c{attempt}") } else { format!("c{attempt}-{number}") }
}

fn asked(request: &Request) -> String {
    match request {
        Request::Create(create) => match create.kind {
            CreateKind::EphemeralSequential => format!("create {}", short(&create.path)),
            kind => format!("{kind:?} {}", create.path),
        },
        Request::PlainCreate(create) => match create.kind {
            CreateKind::EphemeralSequential => format!("plain {}", short(&create.path)),
            kind => format!("plain {kind:?} {}", create.path),
        },
        Request::GetChildren { watch: false, .. } => "list".to_owned(),
        Request::Sync(_) => "sync".to_owned(),
        Request::Exists { path, watch: false } => format!("stat {}", short(path)),
        Request::GetData { path, watch: true } => format!("watch {}", short(path)),
        Request::Multi(operations) => {
            let paths = operations.iter().map(|operation| match operation {
                Operation::Delete(path) => short(path),
                other => panic!("{other:?}"),
            });
            format!("delete both {}", paths.collect::<Vec<_>>().join(" "))
        }
        other => panic!("{other:?}"),
    }
}
