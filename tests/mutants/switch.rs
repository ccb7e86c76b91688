//! Many mutants in one build: each mistake is made in a copy of the body of its function, and an
//! environment variable chooses, when a test runs, which copy is executed.
//!
//! ```text
//! fn quorum(nodes: usize) -> usize {        fn quorum(nodes: usize) -> usize {
//!     nodes / 2 + 1                             if /* the variable is "7" */ {
//! }                                                 nodes / 2
//!                                               } else {
//!                                                   nodes / 2 + 1
//!                                               }
//!                                           }
//! ```
//!
//! A function is found by its lines, as rustfmt writes them. A change outside a function's body, or
//! in a `const fn`, cannot be switched and gets a build of its own. So does a mutant that does not
//! compile in this form. One in a Lua script is switched where scripts are sent ([`Scripts`]).

use crate::scripts::{SENDERS, Scripts, asking};
use crate::source::{Change, indent_of, items_around};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The variable, which holds the number of the mutant whose mistake is made.
pub(crate) const VARIABLE: &str = "REDLATCH_MISTAKE";

/// Lines of a switched file, counted from one, and the mutants that are behind the switches there.
type Regions = Vec<(Range<usize>, BTreeSet<usize>)>;

/// Source files with switches in them.
#[derive(Debug, Default)]
pub(crate) struct Switched {
    /// By the file's path.
    pub(crate) texts: BTreeMap<String, String>,
    /// The mutants that can be switched on.
    pub(crate) mutants: BTreeSet<usize>,
    regions: BTreeMap<String, Regions>,
}

/// The body of a function with one mistake in it.
struct Body {
    mutant: usize,
    /// The lines between the braces of the function, in the file.
    lines: Range<usize>,
    text: String,
}

impl Switched {
    /// Puts those of `changes` behind switches that can be, except the `excluded` ones. `original`
    /// reads a file.
    pub(crate) fn new(
        changes: &[&Change],
        excluded: &BTreeSet<usize>,
        original: impl Fn(&str) -> String,
    ) -> Self {
        let mut bodies: BTreeMap<&str, Vec<Body>> = BTreeMap::new();
        let mut in_scripts = Vec::new();
        let scripts = Scripts::read(&original);
        for (mutant, change) in changes.iter().copied().enumerate() {
            if excluded.contains(&mutant) {
                continue;
            }
            if scripts.has(&change.file) {
                in_scripts.push((mutant, change));
            } else if change.file.ends_with(".rs") {
                let body = body(mutant, change, &original(&change.file));
                bodies.entry(&change.file).or_default().extend(body);
            }
        }
        let mut switched = Self::default();
        for (file, bodies) in bodies {
            switched
                .mutants
                .extend(bodies.iter().map(|body| body.mutant));
            switched.add(file, &original(file), bodies);
        }
        if !in_scripts.is_empty() {
            switched.add_scripts(&scripts, &in_scripts, original);
        }
        switched
    }

    /// Has all that send scripts ask which one.
    fn add_scripts(
        &mut self,
        scripts: &Scripts,
        mistakes: &[(usize, &Change)],
        original: impl Fn(&str) -> String,
    ) {
        for file in SENDERS {
            let text = self.texts.remove(file).unwrap_or_else(|| original(file));
            self.texts.insert(file.to_owned(), asking(file, &text));
        }
        let table = self.texts.get_mut(SENDERS[0]).expect("it sends scripts");
        *table += &scripts.function(mistakes, original);
        let mutants = mistakes.iter().map(|(mutant, _)| *mutant);
        self.mutants.extend(mutants);
    }

    /// Writes one file: its functions as they are, and those in `bodies` with switches.
    fn add(&mut self, file: &str, source: &str, bodies: Vec<Body>) {
        let lines: Vec<&str> = source.lines().collect();
        let mut functions: BTreeMap<usize, Vec<Body>> = BTreeMap::new();
        for body in bodies {
            functions.entry(body.lines.start).or_default().push(body);
        }
        // A function inside another one would be written twice.
        let mut end = 0;
        functions.retain(|start, bodies| {
            let is_outside = *start >= end;
            end = end.max(bodies[0].lines.end);
            if !is_outside {
                bodies
                    .iter()
                    .for_each(|body| _ = self.mutants.remove(&body.mutant));
            }
            is_outside
        });
        let mut text = String::new();
        let mut from = 0;
        let regions = self.regions.entry(file.to_owned()).or_default();
        for (start, bodies) in functions {
            text.extend(lines[from..start].iter().map(|line| format!("{line}\n")));
            let first = text.lines().count();
            for body in &bodies {
                let begin = text.lines().count();
                text += &format!("if {} {{\n{}}} else\n", condition(body.mutant), body.text);
                regions.push((begin + 1..text.lines().count() + 1, [body.mutant].into()));
            }
            from = bodies[0].lines.end;
            let unchanged = lines[start..from].join("\n");
            text += &format!("{{\n{unchanged}\n}}\n");
            // An error that is in no copy is the fault of all of them.
            let all = bodies.iter().map(|body| body.mutant).collect();
            regions.push((first..text.lines().count() + 1, all));
        }
        text.extend(lines[from..].iter().map(|line| format!("{line}\n")));
        self.texts.insert(file.to_owned(), text);
    }

    /// The mutants that are at fault when cargo says this, one error a line.
    pub(crate) fn at_fault(&self, output: &str) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for line in output.lines().filter(|line| line.contains(": error")) {
            let mut parts = line.split(':');
            let (Some(file), Some(number)) = (parts.next(), parts.next()) else {
                continue;
            };
            // Cargo names a file as its package sees it.
            let is_it = |known: &&String| file.ends_with(&**known) || known.ends_with(file);
            let known = self
                .regions
                .keys()
                .filter(is_it)
                .max_by_key(|known| known.len());
            let (Some(known), Ok(number)) = (known, number.parse()) else {
                continue;
            };
            let regions = &self.regions[known];
            let here = regions.iter().find(|(lines, _)| lines.contains(&number));
            match here {
                Some((_, mutants)) => found.extend(mutants),
                None => found.extend(regions.iter().flat_map(|(_, mutants)| mutants)),
            }
        }
        found
    }
}

/// Needs nothing but the standard library, as some test programs include single files of `src`.
pub(crate) fn condition(mutant: usize) -> String {
    format!(
        "{{ static IS_ON: ::std::sync::OnceLock<bool> = ::std::sync::OnceLock::new(); \
         *IS_ON.get_or_init(|| ::std::env::var(\"{VARIABLE}\").is_ok_and(|on| on == \"{mutant}\")) \
         }}"
    )
}

/// The body of the function that is changed, with the change; `None` if it is not in one.
fn body(mutant: usize, change: &Change, source: &str) -> Option<Body> {
    let Change {
        changed,
        replacement,
        ..
    } = change;
    let lines: Vec<&str> = source.lines().collect();
    let body = enclosing_body(&lines, changed)?;
    let mut text = String::new();
    let before = lines[body.start..changed.start].iter();
    let after = lines[changed.end..body.end].iter();
    let inside = replacement.iter().map(String::as_str);
    for line in before.copied().chain(inside).chain(after.copied()) {
        text += &format!("{line}\n");
    }
    Some(Body {
        mutant,
        lines: body,
        text,
    })
}

/// The lines between the braces of the innermost function around these lines.
fn enclosing_body(lines: &[&str], changed: &Range<usize>) -> Option<Range<usize>> {
    let is_function = |item: &Range<usize>| lines[item.start].split(' ').any(|word| word == "fn");
    let function = items_around(lines, changed)
        .map(|(_, item)| item)
        .find(is_function)?;
    let indent = indent_of(lines[function.start]);
    let is_open = |at: &usize| indent_of(lines[*at]) == indent && lines[*at].ends_with('{');
    let open = function.clone().find(is_open)?;
    let signature = lines[function.start..=open].join(" ");
    let is_switchable = !signature.contains("const fn") && !signature.contains("-> impl");
    (open < changed.start && is_switchable).then_some(open + 1..function.end - 1)
}
