//! The page `docs/mutants.md`: a head, and the table of each section.

use crate::mutant::{Mutant, Section, sections};
use crate::source::root;
use std::env;
use std::fs;

/// What the page begins with.
const HEAD: &str = include_str!("head.md");

/// All mutants, in the order of the page.
pub(crate) fn mutants() -> Vec<Mutant> {
    sections()
        .into_iter()
        .flat_map(|section| section.mutants)
        .collect()
}

/// Compares the page with the mutants, or writes it if `REDLATCH_WRITE` is set.
pub(crate) fn check_page() {
    let path = root().join("docs/mutants.md");
    let page = page();
    if env::var_os("REDLATCH_WRITE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap();
    let differs = page
        .lines()
        .zip(written.lines())
        .find(|(new, old)| new != old);
    assert!(
        page == written,
        "docs/mutants.md is not the table of the mutants; REDLATCH_WRITE=1 writes it: {differs:?}"
    );
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for Section {
        file,
        title,
        mutants,
    } in sections()
    {
        page +=
            &format!("\n## {file}: {title}\n\n| mutant | breaks | killed by |\n|---|---|---|\n");
        for Mutant {
            name,
            breaks,
            killer,
            ..
        } in mutants
        {
            page += &format!("| {name} | {breaks} | `{killer}` |\n");
        }
    }
    page
}
