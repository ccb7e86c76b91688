//! The modules of a test program of many: a build that has only those of its killers, and what
//! these use, takes a part of the time.
//!
//! A program has its modules in its folder, one of them or a folder of them for each product.

use crate::killer::Killer;
use crate::source;
use std::collections::{BTreeMap, BTreeSet};

/// The programs of many modules.
const PROGRAMS: [&str; 2] = ["api", "resp"];

/// The files that declare modules, without those that no killer needs.
pub(crate) fn programs_of(killers: &BTreeSet<&Killer>) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for name in PROGRAMS {
        let tests: Vec<&str> = killers
            .iter()
            .filter(|killer| killer.program() == name)
            .map(|killer| &*killer.test)
            .collect();
        files.extend(Program::read(name).with_modules_of(&tests));
    }
    files
}

/// A program, and what its modules have.
struct Program {
    /// From the root of the repository.
    folder: String,
    /// By their paths, `locks` and `locks::extend`. What a product's `mod.rs` declares is not in
    /// its text.
    modules: BTreeMap<String, String>,
}

impl Program {
    fn read(name: &str) -> Self {
        let folder = format!("tests/{name}");
        let mut modules = BTreeMap::new();
        for product in declared(&source::original(&format!("{folder}/main.rs"))) {
            let path = format!("{folder}/{product}");
            let Some(text) = source::existing(&format!("{path}/mod.rs")) else {
                modules.insert(product, source::module(&path));
                continue;
            };
            for module in declared(&text) {
                let text = source::module(&format!("{path}/{module}"));
                modules.insert(format!("{product}::{module}"), text);
            }
            modules.insert(product, text);
        }
        Self { folder, modules }
    }

    /// The files that declare what these tests need, and nothing else.
    fn with_modules_of(&self, tests: &[&str]) -> BTreeMap<String, String> {
        let used = self.used(tests);
        let main = format!("{}/main.rs", self.folder);
        let mut files = BTreeMap::from([(main.clone(), declaring(&main, "", &used))]);
        for product in used.iter().filter(|it| !it.contains("::")) {
            let file = format!("{}/{product}/mod.rs", self.folder);
            if source::existing(&file).is_some() {
                let text = declaring(&file, &format!("{product}::"), &used);
                files.insert(file, text);
            }
        }
        files
    }

    /// The modules of these tests, and all that they use.
    fn used(&self, tests: &[&str]) -> BTreeSet<&str> {
        let mut used = BTreeSet::new();
        let mut users: Vec<&str> = tests
            .iter()
            .flat_map(|test| self.modules.keys().filter(|it| is_within(test, it)))
            .map(String::as_str)
            .collect();
        while let Some(user) = users.pop() {
            if used.insert(user) {
                let names = self.modules.keys().map(String::as_str);
                users.extend(names.filter(|name| self.uses(user, name)));
            }
        }
        used
    }

    fn uses(&self, user: &str, name: &str) -> bool {
        let text = &self.modules[user];
        if is_within(user, name) || text.contains(&format!("crate::{name}::")) {
            return true;
        }
        let Some((product, module)) = name.split_once("::") else {
            return false;
        };
        let is_child = user == product && text.contains(&format!("{module}::"));
        let is_sibling = is_within(user, product) && text.contains(&format!("super::{module}"));
        is_child || is_sibling
    }
}

/// Is this the path of something in this module?
fn is_within(path: &str, module: &str) -> bool {
    path.strip_prefix(module)
        .is_some_and(|rest| rest.starts_with("::"))
}

/// The module that this line declares.
fn declaration(line: &str) -> Option<&str> {
    line.strip_prefix("mod ")?.strip_suffix(';')
}

fn declared(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(declaration)
        .map(str::to_owned)
        .collect()
}

/// This file without the modules that are not used, and without their attributes.
fn declaring(file: &str, product: &str, used: &BTreeSet<&str>) -> String {
    let text = source::original(file);
    let mut kept: Vec<&str> = Vec::new();
    for line in text.lines() {
        let is_kept = declaration(line).is_none_or(|it| used.contains(&*format!("{product}{it}")));
        if is_kept {
            kept.push(line);
            continue;
        }
        while kept.last().is_some_and(|above| above.starts_with("#[")) {
            kept.pop();
        }
    }
    kept.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is declared, for these tests of the program `api`, by its main file and these modules.
    fn kept(tests: &[&str], files: &[&str]) -> Vec<Vec<String>> {
        let texts = Program::read("api").with_modules_of(tests);
        assert_eq!(texts.len(), files.len(), "{:?}", texts.keys());
        files
            .iter()
            .map(|file| declared(&texts[&format!("tests/api/{file}.rs")]))
            .collect()
    }

    #[test]
    fn a_module_is_kept_with_those_that_it_uses() {
        let replaced = kept(&["registers::replace::a_test"], &["main", "registers/mod"]);
        assert_eq!(replaced, [vec!["registers"], vec!["repair", "replace"]]);
        let resumed = kept(
            &["faults::once_per::a_test", "locks::tokens::a_test"],
            &["main", "faults/mod", "locks/mod"],
        );
        let once_per = vec!["clocks", "once_per", "once_per_killed"];
        assert_eq!(resumed, [vec!["faults", "locks"], once_per, vec!["tokens"]]);
        let ensemble = kept(
            &["embedded::ensemble::conformance::a_test"],
            &["main", "embedded/mod"],
        );
        assert_eq!(ensemble, [vec!["embedded"], vec!["ensemble"]]);
    }

    #[test]
    fn the_attributes_of_a_module_that_is_not_kept_go_with_it() {
        let file = "tests/api/faults/mod.rs";
        assert!(source::original(file).contains("#[cfg("), "it is elsewhere");
        let without = declaring(file, "faults::", &["faults::names"].into());
        assert!(!without.contains("#["), "{without}");
        assert!(declaring(file, "faults::", &["faults::forks"].into()).contains("#[cfg("));
    }
}
