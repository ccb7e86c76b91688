//! One contender, with scripted replies.

mod leaving;
mod losing;

use super::*;
use crate::zookeeper::jute::{FrameWriter, frame};
use crate::zookeeper::message::{CreateKind, Operation, RequestKind};
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

#[test]
fn a_free_lock_takes_one_flight() {
    let mut script = Script::new(true);
    assert_eq!(script.steps(), ["begin"]);
    assert_eq!(script.begin(), ["create c1", "list"]);
    script.created("c1-0000000007", 70);
    script.listed(&["c1-0000000007"]);
    assert_eq!(script.steps(), ["keep c1-0000000007", "held c1-0000000007 by 70"]);
    assert_eq!(script.steps(), [""; 0]);
}

#[test]
fn a_lock_is_held_when_the_session_is_valid_for_long_enough() {
    let mut script = Script::joined(7);
    script.contender.plan.min_validity = std::time::Duration::from_secs(1);
    script.listed(&["c1-0000000007"]);
    for valid_until in [Time::ZERO, NOW, Time::from_millis(6_000)] {
        script.valid_until = valid_until;
        assert_eq!(script.steps(), [""; 0]);
    }
    script.valid_until = Time::from_millis(6_001);
    assert_eq!(script.steps(), ["held c1-0000000007 by 70"]);
}

#[test]
fn a_contender_waits_for_the_one_before_it_and_lists_again() {
    let mut script = Script::queued();
    script.contender.changed("/apps/locks/a/another");
    assert_eq!(script.steps(), [""; 0]);
    let before = format!("/apps/locks/a/{}", long("c9-0000000006"));
    script.contender.changed(&before);
    assert_eq!(script.steps(), ["list"]);
    // It had given up, and was not the first.
    script.listed(&["c8-0000000005", "c1-0000000007"]);
    assert_eq!(script.steps(), ["watch c8-0000000005"]);
    assert_eq!(script.contender.place(), Some(1));
    script.refused(ServerError::NoNode);
    assert_eq!(script.steps(), ["list"]);
    script.listed(&["c1-0000000007", "c2-0000000008"]);
    assert_eq!(script.steps(), ["held c1-0000000007 by 70"]);
    assert_eq!(script.contender.place(), None);
}

#[test]
fn an_event_before_the_reply_that_set_its_watch_is_not_lost() {
    let mut script = Script::joined(7);
    script.listed(&["c1-0000000007", "c9-0000000006"]);
    assert_eq!(script.steps(), ["watch c9-0000000006"]);
    script.contender.changed(&format!("/apps/locks/a/{}", long("c9-0000000006")));
    script.data();
    assert_eq!(script.steps(), ["list"]);
}

#[test]
fn the_directory_is_created_when_it_is_missing_and_again_when_it_was_swept() {
    let mut script = Script::new(true);
    script.steps();
    script.begin();
    script.refused(ServerError::NoNode);
    assert_eq!(script.steps(), ["begin"]);
    script.asked.clear();
    let directory = "Container /apps/locks/a";
    assert_eq!(script.begin(), [directory, "create c2", "list"], "a new id");
    // What is above is missing as well.
    script.refused(ServerError::NoNode);
    script.refused(ServerError::NoNode);
    script.asked.clear();
    script.steps();
    let above = ["Persistent /apps", "Persistent /apps/locks"];
    assert_eq!(script.begin(), [above[0], above[1], directory, "create c3", "list"]);
    script.refused(ServerError::NodeExists);
    script.created("/apps/locks", 60);
    script.created("/apps/locks/a", 61);
    // The sweep came between the two.
    script.refused(ServerError::NoNode);
    script.asked.clear();
    assert_eq!(script.steps(), ["begin"]);
    assert_eq!(script.begin(), [above[0], above[1], directory, "create c4", "list"]);
    for _ in 0..3 {
        script.refused(ServerError::NodeExists);
    }
    script.created("c4-0000000000", 62);
    script.listed(&["c4-0000000000"]);
    assert_eq!(script.steps(), ["keep c4-0000000000", "held c4-0000000000 by 62"]);
}

#[test]
fn a_directory_that_must_not_be_created_is_no_loop() {
    for (error, attempts) in [(ServerError::NoAuth, 2), (ServerError::NoNode, 3)] {
        let mut script = Script::new(true);
        script.steps();
        for _ in 0..attempts {
            let steps = script.begin();
            for step in &steps[..steps.len() - 1] {
                let is_parent = step.starts_with("Container");
                script.refused(if is_parent { error } else { ServerError::NoNode });
            }
            script.asked.clear();
        }
        assert_eq!(script.steps().last().unwrap(), &format!("refused Server({error:?})"));
    }
}

#[test]
fn servers_before_3_5_get_what_they_know() {
    let mut script = Script::new(true);
    script.steps();
    script.begin();
    script.refused(ServerError::Unimplemented);
    script.asked.clear();
    script.steps();
    assert_eq!(script.begin(), ["plain c2", "list"]);
    script.refused(ServerError::NoNode);
    script.asked.clear();
    script.steps();
    assert_eq!(script.begin(), ["plain Persistent /apps/locks/a", "plain c3", "list"]);
}

#[test]
fn what_a_server_refuses_is_told() {
    for error in [ServerError::NoAuth, ServerError::QuotaExceeded, ServerError::ThrottledOperation]
    {
        let mut script = Script::new(true);
        script.steps();
        script.begin();
        script.refused(error);
        assert_eq!(script.steps(), [format!("refused Server({error:?})")]);
    }
}

#[test]
fn who_does_not_wait_looks_first_and_creates_nothing_if_others_are_there() {
    let mut script = Script::new(false);
    assert_eq!(script.steps(), ["sync", "list"]);
    script.synced();
    script.listed(&["other", "c9-0000000006"]);
    assert_eq!(script.steps(), ["contended"]);
}

#[test]
fn who_does_not_wait_takes_a_lock_that_is_free() {
    let mut script = Script::new(false);
    script.steps();
    script.unanswered();
    assert_eq!(script.steps(), ["sync", "list"], "again");
    script.synced();
    script.refused(ServerError::NoNode);
    assert_eq!(script.steps(), ["begin"]);
    assert_eq!(script.begin(), ["Container /apps/locks/a", "create c1", "list"]);
    script.refused(ServerError::NodeExists);
    script.created("c1-0000000007", 70);
    script.steps();
    // Another one was faster.
    script.listed(&["c9-0000000006", "c1-0000000007"]);
    assert_eq!(script.steps(), ["delete c1-0000000007 unheard", "contended"]);
}

#[test]
fn past_the_end_of_the_numbers_the_transactions_have_the_order() {
    let mut script = Script::joined(i32::MAX);
    script.listed(&["c1-2147483647", "c2-2147483647", "c3--2147483648", "c4-2147483647"]);
    assert_eq!(script.steps(), ["stat c2-2147483647"]);
    script.stat(65);
    assert_eq!(script.steps(), ["stat c3--2147483648"]);
    script.stat(90);
    assert_eq!(script.steps(), ["stat c4-2147483647"]);
    script.refused(ServerError::NoNode);
    assert_eq!(script.steps(), ["watch c2-2147483647"]);
    assert_eq!(script.contender.place(), Some(1));
    script.refused(ServerError::NoNode);
    assert_eq!(script.steps(), ["list"]);
    script.listed(&["c1-2147483647", "c3--2147483648"]);
    assert_eq!(script.steps(), ["held c1-2147483647 by 70"], "what is known is not asked again");
}
