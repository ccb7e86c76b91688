//! The journal of a client process, which may be killed at any time: a line before each operation,
//! and one after it.

use super::operation::{Call, Operation, Outcome, Seen};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::str::SplitWhitespace;

/// Writes operations to this file, each as one line with one write.
pub(crate) fn recorder(path: &Path) -> impl FnMut(&Operation) + Send + use<> {
    let file = File::options().create(true).append(true).open(path);
    let mut file = file.expect("the journal can be opened");
    move |operation| {
        file.write_all(line(operation).as_bytes())
            .expect("the journal can be written");
    }
}

/// The operations in the journals of a folder. What has no line after it is unsure.
pub(crate) fn read(folder: &Path) -> Vec<Operation> {
    let mut operations = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        let text = fs::read_to_string(path).expect("a journal is text");
        for line in text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
        {
            let operation = parse(line);
            operations.insert((operation.worker, operation.called), operation);
        }
    }
    operations.into_values().collect()
}

fn optional(number: Option<u64>) -> String {
    number.map_or("-".to_owned(), |number| number.to_string())
}

fn value(seen: Option<&Seen>) -> String {
    let Some(Seen {
        version,
        ids,
        fence,
    }) = seen
    else {
        return "-".to_owned();
    };
    let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
    format!("{version}:{fence}:{}", ids.join(","))
}

fn line(operation: &Operation) -> String {
    let Operation {
        register,
        worker,
        called,
        returned,
        call,
        outcome,
    } = operation;
    let call = match call {
        Call::Read => "read".to_owned(),
        Call::Change(id) => format!("change {id}"),
        Call::Set { seen, id } => format!("set {} {id}", optional(*seen)),
        Call::Fenced { token, id } => format!("fenced {token} {id}"),
        Call::Delete => "delete".to_owned(),
    };
    let outcome = match outcome {
        Outcome::Is(seen) => format!("is {}", value(seen.as_ref())),
        Outcome::Changed { version, before } => {
            format!("changed {} {}", optional(*version), value(before.as_ref()))
        }
        Outcome::Set(version) => format!("set {version}"),
        Outcome::Stale(by) => format!("stale {by}"),
        Outcome::Unsure => "unsure".to_owned(),
        Outcome::Failed => "failed".to_owned(),
    };
    format!("{register} {worker} {called} {returned} {call} {outcome}\n")
}

fn parse(line: &str) -> Operation {
    let mut words = line.split_whitespace();
    let words = &mut words;
    let [register, worker] = [number(words), number(words)];
    let called = number(words);
    let returned = number(words);
    let call = match word(words) {
        "read" => Call::Read,
        "change" => Call::Change(number(words)),
        "set" => Call::Set {
            seen: parse_optional(word(words)),
            id: number(words),
        },
        "fenced" => Call::Fenced {
            token: number(words),
            id: number(words),
        },
        "delete" => Call::Delete,
        other => panic!("{other} in {line}"),
    };
    let outcome = match word(words) {
        "is" => Outcome::Is(parse_value(word(words))),
        "changed" => {
            let version = parse_optional(word(words));
            Outcome::Changed {
                version,
                before: parse_value(word(words)),
            }
        }
        "set" => Outcome::Set(number(words)),
        "stale" => Outcome::Stale(number(words)),
        "unsure" => Outcome::Unsure,
        "failed" => Outcome::Failed,
        other => panic!("{other} in {line}"),
    };
    let register = register as usize;
    let worker = worker as usize;
    Operation {
        register,
        worker,
        called,
        returned,
        call,
        outcome,
    }
}

fn word<'a>(words: &mut SplitWhitespace<'a>) -> &'a str {
    words.next().expect("a whole line")
}

fn number(words: &mut SplitWhitespace<'_>) -> u64 {
    word(words).parse().expect("a number")
}

fn parse_optional(word: &str) -> Option<u64> {
    (word != "-").then(|| word.parse().expect("a number"))
}

fn parse_value(word: &str) -> Option<Seen> {
    let mut parts = (word != "-").then(|| word.split(':'))?;
    let mut part = || parts.next().expect("three parts");
    let version = part().parse().expect("a number");
    let fence = part().parse().expect("a number");
    let ids = part()
        .split(',')
        .map(|id| id.parse().expect("a number"))
        .collect();
    Some(Seen {
        version,
        ids,
        fence,
    })
}

#[test]
fn every_line_is_read_back() {
    let seen = Some(Seen {
        version: 5,
        ids: vec![1, 2],
        fence: 3,
    });
    let outcomes = [
        Outcome::Is(None),
        Outcome::Is(seen.clone()),
        Outcome::Changed {
            version: None,
            before: seen.clone(),
        },
        Outcome::Changed {
            version: Some(4),
            before: None,
        },
        Outcome::Set(4),
        Outcome::Stale(9),
        Outcome::Unsure,
        Outcome::Failed,
    ];
    let calls = [
        Call::Read,
        Call::Change(7),
        Call::Set { seen: None, id: 7 },
        Call::Set {
            seen: Some(8),
            id: 7,
        },
        Call::Fenced { token: 6, id: 7 },
        Call::Delete,
    ];
    for call in calls {
        for outcome in &outcomes {
            let call = call.clone();
            let outcome = outcome.clone();
            let operation = Operation {
                register: 1,
                worker: 2,
                called: 3,
                returned: 4,
                call,
                outcome,
            };
            assert_eq!(parse(&line(&operation)), operation);
        }
    }
}
