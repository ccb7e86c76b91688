//! Errors, commands and arguments in short, as a scenario shows them.

use super::CHANNEL;
use crate::engine::Token;
use crate::node::{NodeError, script};

/// The error in short: without the words of a server or an operating system.
pub(super) fn name_of(problem: &NodeError) -> String {
    match problem {
        NodeError::Quarantined { left } => format!("in quarantine for {left:?}"),
        NodeError::NotRedis(_) => problem.to_string(),
        _ => problem
            .to_string()
            .split(':')
            .next()
            .unwrap_or_default()
            .to_owned(),
    }
}

/// The command in short: scripts by their names, and tokens by their first byte.
pub(super) fn command_of(words: &[Vec<u8>]) -> String {
    // A key may have as many bytes.
    let tokens = words
        .iter()
        .filter(|word| word.len() == Token::LEN && !word.starts_with(b"key"));
    let mut tokens: Vec<String> = tokens.map(|token| format!(" {}", token[0])).collect();
    tokens.dedup();
    let text: Vec<_> = words
        .iter()
        .map(|word| String::from_utf8_lossy(word))
        .collect();
    match &*text[0] {
        "SET" => format!("SET{}", tokens.concat()),
        "EVAL" | "EVALSHA" => {
            let script = script_of(&text[1]);
            format!(
                "{} {script}{} #{}",
                text[0],
                tokens.concat(),
                text[text.len() - 1]
            )
        }
        _ => text.join(" ").replace(CHANNEL, "channel"),
    }
}

/// The name of the script with this source or digest.
fn script_of(text: &str) -> &str {
    let known = script::ALL
        .iter()
        .find(|it| text == it.source || text == it.sha1);
    let mut lines = include_str!("../../../script/digests.txt").lines();
    let line = known.and_then(|script| lines.find(|line| line.contains(script.sha1)));
    line.and_then(|line| line.split(' ').next())
        .unwrap_or("custom")
}

/// The lock's keys, their counters', and the arguments of a script.
pub(super) fn arguments_of(words: &[Vec<u8>]) -> String {
    let word = |word: &Vec<u8>| match word.len() {
        Token::LEN => format!("@{}", word[0]),
        _ => format!("'{}'", word.escape_ascii()),
    };
    let belongs = |word: &&Vec<u8>| {
        word.windows(10).any(|it| it == b":redlatch:") && !word.ends_with(b":fence")
    };
    words[3..]
        .iter()
        .filter(|word| !belongs(word))
        .map(word)
        .collect::<Vec<_>>()
        .join(" ")
        .replace(CHANNEL, "channel")
}
