//! One contender, with scripted replies.

mod joining;
mod leaving;
mod losing;
mod sets;
mod sharing;
mod sharing_lost;
mod words;

use super::*;
use crate::jute::{FrameWriter, frame};
use crate::message::{CreateKind, EnsembleError, MultiOperation, RequestKind, Stat};
use crate::path::{Directory, Root};
use std::cmp::Ordering;
use words::{asked, list_of, long, short};

/// A contender for `/apps/locks/a`. Each attempt has an id whose name ends with the attempt's
/// number, and names are short in what it says and is told: `c1` is the name of attempt 1, `r1` and
/// `p3-1` are the shares that it makes. `list` stands for both lists in one flight, of the queue
/// and of the shares; there are no shares unless the test says so.
struct Script {
    contender: Contender,
    attempts: u8,
    /// The requests without an answer.
    asked: VecDeque<(Serial, String)>,
    valid_until: Time,
}

const NOW: Time = Time::from_millis(5_000);

impl Script {
    fn new(waits: bool) -> Self {
        let mut plan = plan(&[b"a"]);
        plan.waits = waits;
        Self::of(plan)
    }

    fn of(plan: ContenderPlan) -> Self {
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
        assert_eq!(
            (script.steps(), script.contender.place()),
            (vec![], Some(2))
        );
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
        self.contender.begin([self.attempts; 16]);
        self.steps()
    }

    fn steps(&mut self) -> Vec<String> {
        let mut steps = Vec::new();
        while let Some(step) = self.contender.poll(NOW, self.valid_until) {
            let text = self.text(step);
            let last = steps.last().map(String::as_str);
            if !(last.is_some_and(|last| last.starts_with("list")) && text.starts_with("shares")) {
                steps.push(text);
            }
        }
        steps
    }

    fn text(&mut self, step: ContenderStep) -> String {
        match step {
            ContenderStep::Begin => "begin".to_owned(),
            ContenderStep::Send(serial, request) => {
                let text = asked(&request);
                self.asked.push_back((serial, text.clone()));
                text
            }
            ContenderStep::Keep(path) => format!("keep {}", short(&path)),
            ContenderStep::Forget(path) => format!("forget {}", short(&path)),
            ContenderStep::Delete(None, path) => format!("delete {} unheard", short(&path)),
            ContenderStep::Delete(Some(serial), path) => {
                let text = format!("delete {}", short(&path));
                self.asked.push_back((serial, text.clone()));
                text
            }
            ContenderStep::Pause => "pause".to_owned(),
            ContenderStep::Held(held) => {
                let paths: Vec<_> = held.paths.iter().map(|path| short(path)).collect();
                let slot = held
                    .slot
                    .map_or(String::new(), |slot| format!(" slot {slot}"));
                format!("held {} by {}{slot}", paths.join(" "), held.created_by)
            }
            ContenderStep::Contended => "contended".to_owned(),
            ContenderStep::Refused(failure) => format!("refused {failure:?}"),
            ContenderStep::Lost => "lost".to_owned(),
            ContenderStep::CleanedUp(left) => format!("left {left:?}"),
        }
    }

    fn answer(&mut self, zxid: i64, reply: Result<EnsembleReply<'_>, &Failure>) {
        let text = self.answer_one(zxid, reply);
        let is_shares = |(_, text): &(Serial, String)| text.starts_with("shares");
        if text.starts_with("list") && self.asked.front().is_some_and(is_shares) {
            let is_answered = !matches!(reply, Err(Failure::Unanswered | Failure::SessionLost));
            let no_shares = Failure::Server(EnsembleError::NoNode);
            self.answer_one(71, if is_answered { Err(&no_shares) } else { reply });
        }
    }

    /// Answers the oldest request alone. Returns what it was.
    fn answer_one(&mut self, zxid: i64, reply: Result<EnsembleReply<'_>, &Failure>) -> String {
        let (serial, text) = self.asked.pop_front().expect("something was asked");
        self.contender.answered(serial, zxid, reply);
        text
    }

    fn created(&mut self, name: &str, zxid: i64) {
        let path = format!("/apps/locks/a/{}", long(name));
        let stat = Stat {
            created_by: zxid,
            created_at_ms: 0,
            owner: 1,
            children: 0,
        };
        self.answer(zxid, Ok(EnsembleReply::Created { path: &path, stat }));
    }

    fn listed(&mut self, names: &[&str]) {
        self.with_stat(list_of(names), RequestKind::GetChildren, 0);
    }

    /// Both lists.
    fn listed_with(&mut self, names: &[&str], shares: &[&str]) {
        for names in [names, shares] {
            let body = [list_of(names), vec![0; 68]].concat();
            let reply = EnsembleReply::decode(RequestKind::GetChildren, &body).unwrap();
            self.answer_one(71, Ok(reply));
        }
    }

    /// The results of a transaction whose creates have these names, or the error of one operation.
    fn results(&mut self, zxid: i64, results: Result<&[&str], (usize, i32)>) {
        let (_, text) = self.asked.front().expect("something was asked");
        let operations: Vec<&str> = text.split(" + ").collect();
        let mut bytes = Vec::new();
        let mut writer = FrameWriter::begin(&mut bytes);
        let mut names = results.unwrap_or_default().iter();
        for (place, operation) in operations.iter().enumerate() {
            match results {
                Err((failed, error)) => {
                    let error = match place.cmp(&failed) {
                        Ordering::Less => 0,
                        Ordering::Equal => error,
                        Ordering::Greater => -2,
                    };
                    writer.int(-1).boolean(false).int(error).int(error);
                }
                Ok(_) if operation.starts_with("create") => {
                    let path = long(names.next().expect("a name for each create"));
                    writer.int(1).boolean(false).int(0).text(&path);
                }
                Ok(_) => {
                    writer.int(2).boolean(false).int(0);
                }
            }
        }
        writer.int(-1).boolean(true).int(-1);
        writer.finish().unwrap();
        let kind = RequestKind::Multi(operations.len());
        self.answer(zxid, Ok(EnsembleReply::decode(kind, &bytes[4..]).unwrap()));
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
        self.answer(71, Ok(EnsembleReply::decode(kind, &body).unwrap()));
    }

    fn synced(&mut self) {
        self.answer(71, Ok(EnsembleReply::Synced));
    }

    fn done(&mut self) {
        self.answer(71, Ok(EnsembleReply::Done));
    }

    fn refused(&mut self, error: EnsembleError) {
        self.answer(71, Err(&Failure::Server(error)));
    }

    /// All that was asked is not answered.
    fn unanswered(&mut self) {
        while !self.asked.is_empty() {
            self.answer(0, Err(&Failure::Unanswered));
        }
    }
}

/// A plan for these locks.
fn plan(names: &[&[u8]]) -> ContenderPlan {
    let root = Root::new("/apps/locks").unwrap();
    let directory = |name: &&[u8]| Directory::new(&root, b"", name).unwrap();
    ContenderPlan::of_set(&root, names.iter().map(directory).collect())
}
