//! What a list of names says about the place of a contender.

use crate::message::Names;
use crate::name::{ContenderId, Layout, Number};
use std::cmp::Ordering;

/// Where a contender stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is not in the list.
    Missing,
    /// Nobody is before it.
    First,
    /// So many are before it, and this one is the next before it.
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
    names.iter().find_map(|name| {
        let number = layout.number(name).filter(|_| name.starts_with(prefix.as_bytes()))?;
        (layout.name(id, number).as_bytes() == name).then_some(number)
    })
}

/// The place of the contender with this name and number.
pub(super) fn place(layout: Layout, names: Names<'_>, name: &str, number: Number) -> Place {
    let mut is_listed = false;
    let mut is_past_end = number.is_past_end();
    let mut count = 0;
    let mut before: Option<(Number, &[u8])> = None;
    for other in names.iter() {
        let Some(other_number) = layout.number(other) else { continue };
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
        _ if !is_listed => Place::Missing,
        _ if is_past_end => {
            let others = names.iter().filter(|other| layout.number(other).is_some());
            let others = others.filter(|other| *other != name.as_bytes());
            match others.map(text).collect::<Vec<_>>() {
                others if others.is_empty() => Place::First,
                others => Place::Undated { others },
            }
        }
        None => Place::First,
        Some((_, before)) => Place::Behind { before: text(before), count },
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
    use crate::message::{Reply, RequestKind};

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
        let reply = Reply::decode(RequestKind::GetChildren, body).unwrap();
        let Reply::Children { names, .. } = reply else { panic!("{reply:?}") };
        read(names)
    }

    fn place_of(name: &str, names: &[&str]) -> Place {
        let number = Layout::Curator.number(name.as_bytes()).unwrap();
        with_names(names, |names| place(Layout::Curator, names, name, number))
    }

    #[test]
    fn the_place_follows_from_the_numbers_alone() {
        let names = ["z-lock-0000000010", "a-lock-0000000011", "lock-0000000009", "other", "r1"];
        assert_eq!(place_of("lock-0000000009", &names), Place::First);
        let before = "z-lock-0000000010".to_owned();
        let expected = Place::Behind { before, count: 2 };
        assert_eq!(place_of("a-lock-0000000011", &names), expected);
        assert_eq!(place_of("b-lock-0000000011", &names), Place::Missing);
        assert_eq!(place_of("lock-0000000008", &[]), Place::Missing);
    }

    #[test]
    fn past_the_end_of_the_numbers_the_others_are_listed() {
        let (own, other) = ("a-lock-2147483647", "b-lock--2147483648");
        let undated = |other: &str| Place::Undated { others: vec![other.to_owned()] };
        assert_eq!(place_of(own, &[own, other, "r1"]), undated(other));
        assert_eq!(place_of(other, &[own, other]), undated(own));
        let earlier = "c-lock-2147483646";
        assert_eq!(place_of(earlier, &[own, earlier]), undated(own));
        assert_eq!(place_of(own, &[own]), Place::First, "alone");
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
            assert_eq!(find(Layout::Curator, names, id(1)), Some(Number::new(3)));
            assert_eq!(find(Layout::Curator, names, id(2)), None);
            assert!(has_contender(Layout::Curator, names));
            assert!(!has_contender(Layout::Kazoo, names));
        });
    }
}
