//! How dense the library's code is: what saves lines and costs its reader more, by 1,000 lines of
//! code. mio, quinn, ureq, redis-rs and crossbeam have nearly none of it.

use super::{library, root};
use std::fs;

/// What may be found in 10,000 lines of code.
const TUPLE_BINDINGS_MAX: usize = 5;
const NAMED_CLOSURES_MAX: usize = 20;
const SHADOWED_NAMES_MAX: usize = 10;

/// `cfg`s in the files with the loop of every call and what is around it, where a reader begins.
const LOOP_CFGS_MAX: usize = 4;

/// Files in `tests/` and `tests/api/` themselves rather than in the folder of what they are about:
/// the build script and the program.
const FLAT_TESTS: [&str; 2] = ["tests/build.rs", "tests/api/main.rs"];

/// `unreachable!`: each is a state that its types allow and its rules do not, so a change that adds
/// one says why.
const UNREACHABLE_MAX: usize = 7;

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Lines that are neither empty nor a comment nor only closing brackets.
    code: usize,
    /// `let (a, b) = (x, y);`
    tuple_bindings: usize,
    /// `let name = |argument| ..`
    named_closures: usize,
    /// `let name = ..` in the line below another `let name = ..`.
    shadowed_names: usize,
    unreachable: usize,
}

impl Counts {
    fn add(&mut self, text: &str) {
        let lines: Vec<&str> = code(text);
        for (index, line) in lines.iter().enumerate() {
            let below = lines.get(index + 1).copied().unwrap_or_default();
            self.code += usize::from(is_code(line));
            self.tuple_bindings += usize::from(is_tuple_binding(line, below));
            self.named_closures += usize::from(is_named_closure(line));
            let name = bound_name(line);
            self.shadowed_names += usize::from(name.is_some() && name == bound_name(below));
            self.unreachable += usize::from(line.contains("unreachable!"));
        }
    }

    /// Fails if there are more than `max` of `found` in 10,000 lines of code.
    fn expect_at_most(&self, what: &str, found: usize, max: usize) {
        let by_ten_thousand = found * 10_000 / self.code;
        assert!(
            by_ten_thousand <= max,
            "{what}: {by_ten_thousand} in 10,000 lines of code, {max} are allowed: {self:?}"
        );
    }
}

/// The lines before the unit tests.
fn code(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let begins = |at: &[&str]| {
        let is_for_tests = at[0].starts_with("#[cfg(test") || at[0].starts_with("#[cfg(all(test");
        is_for_tests && (at[1].starts_with("mod ") || at[1].starts_with("pub mod "))
    };
    let end = lines.windows(2).position(begins).unwrap_or(lines.len());
    lines[..end].to_vec()
}

fn is_code(line: &str) -> bool {
    let line = line.trim();
    let is_end = line.chars().all(|it| "])};,".contains(it));
    !is_end && !line.starts_with("//")
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_alphanumeric() || it == '_')
}

/// The name and the value of `let name = value`, of whatever type.
fn binding(line: &str) -> Option<(&str, &str)> {
    let bound = line.trim_start().strip_prefix("let ")?;
    let bound = bound.strip_prefix("mut ").unwrap_or(bound);
    let (pattern, value) = bound.split_once(" = ")?;
    let name = pattern.split(':').next().unwrap_or_default();
    is_name(name).then_some((name, value))
}

fn bound_name(line: &str) -> Option<&str> {
    binding(line).map(|(name, _)| name)
}

fn is_named_closure(line: &str) -> bool {
    binding(line).is_some_and(|(_, value)| {
        let value = value.strip_prefix("move ").unwrap_or(value);
        value.starts_with('|')
    })
}

/// Does this line bind or set several names to a tuple, which may begin in the line below?
fn is_tuple_binding(line: &str, below: &str) -> bool {
    let line = line.trim();
    let line = line.strip_prefix("let ").unwrap_or(line);
    let Some((names, value)) = line
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(") ="))
    else {
        return false;
    };
    let value = match value.trim_start() {
        "" => below.trim_start(),
        value => value,
    };
    let mut count = 0;
    let are_names = names.trim_end_matches(',').split(", ").all(|name| {
        count += 1;
        let name = name.strip_prefix("mut ").unwrap_or(name);
        is_name(&name.replace(['&', '.'], ""))
    });
    value.starts_with('(') && are_names && count > 1
}

#[test]
fn the_library_says_one_thing_a_line() {
    let mut counts = Counts::default();
    for source in library() {
        if !source.path.contains("test") && !source.path.ends_with("/fixture.rs") {
            counts.add(&source.text);
        }
    }
    println!("{counts:?}");
    assert!(counts.code > 10_000, "it is looked for elsewhere");
    counts.expect_at_most("tuple bindings", counts.tuple_bindings, TUPLE_BINDINGS_MAX);
    counts.expect_at_most("named closures", counts.named_closures, NAMED_CLOSURES_MAX);
    counts.expect_at_most("shadowed names", counts.shadowed_names, SHADOWED_NAMES_MAX);
    assert!(counts.unreachable <= UNREACHABLE_MAX, "{counts:?}");
}

#[test]
fn what_is_dense_is_counted() {
    let mut counts = Counts::default();
    counts.add(
        r#"
//! let is_prose = |it| it;
fn dense(x: u32, y: u32) -> u32 {
    let (a, b) = (x, y);
    let (mut c, d) =
        (x + 1, y + 1);
    (c, self.d) = (a, b);
    let (one, other) = split(x);
    let (only,) = (x,);
    let add = |it| it + 1;
    let mut take = move || c;
    let is_none: Option<u32> = None;
    let sum: u32 = a + b;
    let sum = sum + add(c);
    let other = sum;
    let sum = other;
    match sum {
        0 => unreachable!("it is more"),
        _ => sum,
    }
}

#[cfg(test)]
use crate::names;

#[cfg(test)]
mod tests {
    let (a, b) = (x, y);
}
"#,
    );
    let expected = Counts {
        code: 19,
        tuple_bindings: 3,
        named_closures: 2,
        shadowed_names: 1,
        unreachable: 1,
    };
    assert_eq!(counts, expected);
}

/// How many lines of this text begin an attribute with a condition, or ask for one.
fn cfgs(text: &str) -> usize {
    let code = code(text);
    let is_conditional = |line: &&&str| {
        let line = line.trim_start();
        line.starts_with("#[cfg") || line.contains("cfg!(")
    };
    code.iter().filter(is_conditional).count()
}

#[test]
fn the_loop_of_a_call_has_few_conditions() {
    let text = "#[cfg(unix)]\nif cfg!(unix) { // #[cfg(unix)]\n#[cfg(test)]\nmod tests;\n";
    assert_eq!(cfgs(text), 2);
    let around = fs::read_to_string(root().join("src/redlock.rs")).unwrap();
    let the_loop = fs::read_to_string(root().join("src/redlock/call.rs")).unwrap();
    assert!(the_loop.contains("async fn run("), "it is elsewhere");
    let found = cfgs(&around) + cfgs(&the_loop);
    println!("cfgs in src/redlock.rs and src/redlock/call.rs: {found}");
    assert!(found <= LOOP_CFGS_MAX, "{found} of {LOOP_CFGS_MAX}");
}

#[test]
fn tests_lie_in_the_folder_of_what_they_are_about() {
    let mut flat = Vec::new();
    for folder in ["tests", "tests/api"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name();
            let name = name.to_string_lossy();
            if name.ends_with(".rs") {
                flat.push(format!("{folder}/{name}"));
            }
        }
    }
    assert_eq!(flat, FLAT_TESTS);
}
