//! `unreachable!` in the library: each is a state that its types allow and its rules do not, so a
//! change that adds one says why.

use super::{Source, library};

const UNREACHABLE_MAX: usize = 8;

#[test]
fn states_that_cannot_be_are_rare() {
    let is_code = |it: &Source| !it.path.contains("test") && !it.path.ends_with("/fixture.rs");
    let sources: Vec<Source> = library().into_iter().filter(is_code).collect();
    let code = sources.iter().flat_map(Source::code);
    let found = code
        .filter(|(_, line)| line.contains("unreachable!"))
        .count();
    assert!(found > 0, "they are looked for in the wrong place");
    assert!(
        found <= UNREACHABLE_MAX,
        "{found} `unreachable!`, {UNREACHABLE_MAX} are allowed"
    );
}
