//! Waiting in a queue: the place in it, and the one watch.

use super::state::{Finding, ListPair, ListPairs, Turn};
use super::{Contender, ContenderStep, Own, Parents, State};
use crate::message::{EnsembleReply, EnsembleRequest, Names};
use crate::path::{ContenderId, Layout, Number};
use crate::session::Response;
use std::cmp::Ordering;

impl Contender {
    /// A watch has ended.
    pub fn changed(&mut self, path: &str) {
        let State::InQueue { own, turn } = &mut self.state else {
            return;
        };
        let directory = &self.plan.directories[own.at];
        match turn {
            Turn::Watching {
                before,
                has_changed,
                ..
            } => {
                *has_changed |= *directory.child(before) == *path;
            }
            Turn::Checking { has_changed, .. } => {
                *has_changed |= *directory.shares() == *path;
            }
            Turn::Queued { before } if *directory.child(before) == *path => {
                let own = own.clone();
                self.list(own);
            }
            Turn::Blocked if *directory.shares() == *path => {
                let own = own.clone();
                self.check(own, true);
            }
            _ => {}
        }
    }

    /// The session has another connection, and no watch on it.
    pub fn connected(&mut self) {
        match self.leave_state() {
            State::InQueue {
                own,
                turn: turn @ (Turn::Queued { .. } | Turn::Blocked),
            } => {
                self.ask_again(own, turn);
            }
            // It may have been removed since, and whoever was behind it hold the lock. Is it still
            // the first everywhere?
            State::First { own, share: None } => self.list(Own { at: 0, ..own }),
            State::First {
                own,
                share: Some(share),
            } => self.search_share(own, share),
            other => self.state = other,
        }
    }

    /// The answer to what was asked in the queue.
    pub(super) fn told(&mut self, own: Own, turn: Turn, reply: Response<'_>) {
        match self.finding(reply) {
            Finding::Reply(reply) => self.told_of(own, turn, reply),
            Finding::Absent => self.told_of_none(own, turn),
            Finding::SessionLost => self.restart(),
            Finding::Nothing => self.ask_again(own, turn),
        }
    }

    /// What was asked for is there, and this is what is known of it.
    fn told_of(&mut self, own: Own, turn: Turn, reply: EnsembleReply<'_>) {
        match (turn, reply) {
            (Turn::Dating { .. }, EnsembleReply::Found(stat)) => {
                let created_by = Some(stat.created_by);
                self.list(Own { created_by, ..own });
            }
            (Turn::Listing { looks }, EnsembleReply::Children { names, .. }) => {
                self.listed(own, looks, names);
            }
            (Turn::Comparing { others, asked, .. }, EnsembleReply::Found(stat)) => {
                self.dates.insert(asked, stat.created_by);
                self.compare(own, others);
            }
            // It may have given up before its turn, so somebody else may be before this one.
            (Turn::Watching { has_changed, .. }, _) if has_changed => self.list(own),
            (Turn::Watching { before, .. }, _) => {
                let turn = Turn::Queued { before };
                self.state = State::InQueue { own, turn };
            }
            (
                Turn::Checking {
                    is_watched,
                    has_changed,
                    looks,
                    ..
                },
                EnsembleReply::Children { names, .. },
            ) => self.checked(own, is_watched && !has_changed, looks, Some(names)),
            (turn, _) => self.ask_again(own, turn),
        }
    }

    /// What was asked for is not there.
    fn told_of_none(&mut self, own: Own, turn: Turn) {
        match turn {
            Turn::Dating { .. } => self.start_over(&own),
            Turn::Listing { .. } => {
                self.parents = Parents::Last;
                self.start_over(&own);
            }
            Turn::Comparing {
                mut others, asked, ..
            } => {
                others.retain(|name| *name != asked);
                self.compare(own, others);
            }
            // As where it has changed.
            Turn::Watching { .. } => self.list(own),
            Turn::Checking {
                is_watched,
                has_changed,
                looks,
                ..
            } => self.checked(own, is_watched && !has_changed, looks, None),
            Turn::Queued { .. } | Turn::Blocked => self.ask_again(own, turn),
        }
    }

    /// Asks again what was not answered, or whose watch is gone.
    fn ask_again(&mut self, own: Own, turn: Turn) {
        match turn {
            Turn::Dating { .. } => self.date(own),
            Turn::Listing { .. } => self.list(own),
            Turn::Comparing { others, .. } => self.compare(own, others),
            Turn::Watching { before, .. } | Turn::Queued { before } => self.watch(own, before),
            Turn::Checking { .. } => self.check(own, false),
            Turn::Blocked => self.check(own, true),
        }
    }

    /// Asks which transaction created its own znode.
    pub(super) fn date(&mut self, own: Own) {
        let path = self
            .plan
            .paths(&own)
            .next()
            .expect("it has a znode for each lock");
        let stat = self.ask(EnsembleRequest::Exists { path, watch: false });
        self.state = State::InQueue {
            own,
            turn: Turn::Dating { stat },
        };
    }

    /// Asks for the lists of the locks that it has not got yet.
    pub(super) fn list(&mut self, own: Own) {
        let looks = self.ask_lists(own.at);
        self.state = State::InQueue {
            own,
            turn: Turn::Listing { looks },
        };
    }

    /// Asks for the contenders and the shares of the locks from this one on.
    pub(super) fn ask_lists(&mut self, from: usize) -> ListPairs {
        let each = from..self.plan.directories.len();
        each.map(|at| ListPair {
            list: self.ask(self.plan.list(at)),
            shares: self.ask(self.plan.shares(at, false)),
        })
        .collect()
    }

    fn listed(&mut self, own: Own, mut looks: ListPairs, names: Names<'_>) {
        self.delete_strays(own.at, names);
        let name = self.plan.layout.name(own.id, own.number());
        match place(self.plan.layout, names, &name, own.number()) {
            Position::Missing => self.start_over(&own),
            Position::First => {
                let look = looks.pop_front().expect("its list was answered");
                self.checking(own, look.shares, false, looks);
            }
            Position::Behind { before, count } => self.queue(own, before, count),
            Position::Undated { others } => {
                self.dates.retain(|name, _| others.contains(name));
                self.compare(own, others);
            }
        }
    }

    /// One of its znodes is gone. The others of a set are deleted.
    fn start_over(&mut self, own: &Own) {
        if self.plan.is_set() {
            self.delete_unheard(own);
        }
        self.restart();
    }

    /// Deletes what was created after all under an id that was given up.
    fn delete_strays(&mut self, at: usize, names: Names<'_>) {
        let plan = &self.plan;
        let given_up = self.given_up.iter();
        let strays = given_up.filter_map(|id| Some((*id, find(plan.layout, names, *id)?)));
        let names = strays.map(|(id, number)| plan.layout.name(id, number));
        let paths = names.map(|name| plan.directories[at].child(&name));
        let deletes = paths.map(|path| ContenderStep::Delete(None, path));
        self.steps.extend(deletes);
    }

    fn queue(&mut self, own: Own, before: String, count: usize) {
        if self.plan.waits {
            self.place = Some(count);
            return self.watch(own, before);
        }
        // Another one was faster.
        self.end(&own, ContenderStep::Contended);
    }

    /// Asks for the next transaction that is not known; then the place follows from them.
    fn compare(&mut self, own: Own, others: Vec<String>) {
        let mut names = others.iter();
        let unknown = names.find(|name| !self.dates.contains_key(*name));
        if let Some(asked) = unknown.cloned() {
            let path = self.plan.directories[own.at].child(&asked);
            let stat = self.ask(EnsembleRequest::Exists { path, watch: false });
            self.state = State::InQueue {
                own,
                turn: Turn::Comparing {
                    others,
                    asked,
                    stat,
                },
            };
            return;
        }
        let dates = others
            .into_iter()
            .filter_map(|name| Some((*self.dates.get(&name)?, name)));
        let before: Vec<_> = dates
            .filter(|(date, _)| Some(*date) < own.created_by)
            .collect();
        let count = before.len();
        match before.into_iter().max() {
            None => self.check(own, false),
            Some((_, before)) => self.queue(own, before, count),
        }
    }

    fn watch(&mut self, own: Own, before: String) {
        let path = self.plan.directories[own.at].child(&before);
        let data = self.ask(EnsembleRequest::GetData { path, watch: true });
        let turn = Turn::Watching {
            before,
            data,
            has_changed: false,
        };
        self.state = State::InQueue { own, turn };
    }
}

// What a list of names says about the place of a contender.

/// Where a contender stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// It is not in the list.
    Missing,
    /// Nobody is before it.
    First,
    /// `count` contenders are before it, and this one is the next before it.
    Behind { before: String, count: usize },
    /// Numbers mean nothing any more. These are all the others.
    Undated { others: Vec<String> },
}

/// Is there a contender among these names?
pub(super) fn has_contender(layout: Layout, names: Names<'_>) -> bool {
    names.iter().any(|name| layout.number(name).is_some())
}

pub(super) fn find(layout: Layout, names: Names<'_>, id: ContenderId) -> Option<Number> {
    let prefix = layout.prefix(id);
    let mut own = names
        .iter()
        .filter(|name| name.starts_with(prefix.as_bytes()));
    own.find_map(|name| {
        let number = layout.number(name)?;
        (layout.name(id, number).as_bytes() == name).then_some(number)
    })
}

/// The place of the contender with this name and number.
pub(super) fn place(layout: Layout, names: Names<'_>, name: &str, number: Number) -> Position {
    let mut is_listed = false;
    let mut is_past_end = number.is_past_end();
    let mut count = 0;
    let mut before: Option<(Number, &[u8])> = None;
    for other in names.iter() {
        let Some(other_number) = layout.number(other) else {
            continue;
        };
        is_listed |= other == name.as_bytes();
        is_past_end |= other_number.is_past_end();
        if other_number.order(number) == Ordering::Less {
            count += 1;
            if before.is_none_or(|(latest, _)| latest.order(other_number) == Ordering::Less) {
                before = Some((other_number, other));
            }
        }
    }
    match before {
        _ if !is_listed => Position::Missing,
        _ if is_past_end => {
            let others = names
                .iter()
                .filter(|other| layout.number(other).is_some() && *other != name.as_bytes());
            match others.map(text).collect::<Vec<_>>() {
                others if others.is_empty() => Position::First,
                others => Position::Undated { others },
            }
        }
        None => Position::First,
        Some((_, before)) => Position::Behind {
            before: text(before),
            count,
        },
    }
}

/// A name with a number is text, as the number was found in it.
fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jute::{FrameWriter, frame};
    use crate::message::{EnsembleReply, RequestKind};

    fn with_names<T>(names: &[&str], read: impl FnOnce(Names<'_>) -> T) -> T {
        let mut bytes = Vec::new();
        let mut writer = FrameWriter::begin(&mut bytes);
        writer.int(i32::try_from(names.len()).unwrap());
        for name in names {
            writer.text(name);
        }
        for _ in 0..17 {
            writer.int(0);
        }
        writer.finish().unwrap();
        let (body, _) = frame(&bytes).unwrap().unwrap();
        let reply = EnsembleReply::decode(RequestKind::GetChildren, body).unwrap();
        let EnsembleReply::Children { names, .. } = reply else {
            panic!("{reply:?}")
        };
        read(names)
    }

    fn place_of(name: &str, names: &[&str]) -> Position {
        let number = Layout::Curator.number(name.as_bytes()).unwrap();
        with_names(names, |names| place(Layout::Curator, names, name, number))
    }

    #[test]
    fn the_place_follows_from_the_numbers_alone() {
        let names = [
            "z-lock-0000000010",
            "a-lock-0000000011",
            "lock-0000000009",
            "other",
            "r1",
        ];
        assert_eq!(place_of("lock-0000000009", &names), Position::First);
        let before = "z-lock-0000000010".to_owned();
        let expected = Position::Behind { before, count: 2 };
        assert_eq!(place_of("a-lock-0000000011", &names), expected);
        assert_eq!(place_of("b-lock-0000000011", &names), Position::Missing);
        assert_eq!(place_of("lock-0000000008", &[]), Position::Missing);
    }

    #[test]
    fn past_the_end_of_the_numbers_the_others_are_listed() {
        let own = "a-lock-2147483647";
        let other = "b-lock--2147483648";
        let undated = |other: &str| Position::Undated {
            others: vec![other.to_owned()],
        };
        assert_eq!(place_of(own, &[own, other, "r1"]), undated(other));
        assert_eq!(place_of(other, &[own, other]), undated(own));
        let earlier = "c-lock-2147483646";
        assert_eq!(place_of(earlier, &[own, earlier]), undated(own));
        assert_eq!(place_of(own, &[own]), Position::First, "alone");
    }

    #[test]
    fn a_contender_is_found_by_its_id_and_a_number() {
        let id = |byte| ContenderId::from_random([byte; 16]);
        let prefix = Layout::Curator.prefix(id(1));
        let names = [
            format!("{prefix}x"),
            format!("{prefix}lock-0000000002"),
            format!("{prefix}0000000003"),
            "x".to_owned(),
        ];
        with_names(&names.each_ref().map(String::as_str), |names| {
            assert_eq!(find(Layout::Curator, names, id(1)), Some(Number(3)));
            assert_eq!(find(Layout::Curator, names, id(2)), None);
            assert!(has_contender(Layout::Curator, names));
            assert!(!has_contender(Layout::Kazoo, names));
        });
    }
}
