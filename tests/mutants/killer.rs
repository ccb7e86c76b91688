//! The test that must fail with a mutant.

use crate::source::root;
use std::fmt;
use std::fs;

/// A test, as cargo's arguments name it: `--lib core::tests::name`, `--test api
/// locks::extend::name`, or `-p redlatch-protocol --lib node::tests::name`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Killer {
    /// `--lib`, or `--test` and the name of the test program.
    pub(crate) target: Vec<String>,
    /// The pure crate whose unit test it is, if it is one's.
    package: Option<String>,
    /// The test's name.
    pub(crate) test: String,
}

impl Killer {
    pub(crate) fn parse(text: &str) -> Self {
        let (target, test) = text
            .rsplit_once(' ')
            .unwrap_or_else(|| panic!("no test: {text:?}"));
        let mut target: Vec<String> = target.split(' ').map(str::to_owned).collect();
        let package = (target[0] == "-p")
            .then(|| target.drain(..2).nth(1))
            .flatten();
        let is_known = match &*target {
            [lib] => lib == "--lib",
            [test, _] => test == "--test",
            _ => false,
        };
        assert!(
            is_known,
            "neither of the library nor of a test program: {text:?}"
        );
        Self {
            target,
            package,
            test: test.to_owned(),
        }
    }

    /// What the test's program is called.
    pub(crate) fn program(&self) -> String {
        let library = || {
            self.package
                .as_deref()
                .unwrap_or("redlatch")
                .replace('-', "_")
        };
        self.target.get(1).cloned().unwrap_or_else(library)
    }

    /// Is there a test of this name in its file?
    pub(crate) fn is_written(&self) -> bool {
        let root = root();
        let (modules, name) = self.test.rsplit_once("::").unwrap_or(("", &self.test));
        let files = match &*self.target {
            [_, program] if modules.is_empty() => {
                vec![
                    format!("tests/alone/{program}.rs"),
                    format!("tests/{program}/main.rs"),
                ]
            }
            [_, program] => {
                let path = modules.replace("::", "/");
                // A macro writes the tests of each backend, from a function of the module above.
                let above = path
                    .trim_end_matches("/embedded")
                    .trim_end_matches("/zookeeper");
                [above, &path]
                    .iter()
                    .map(|path| format!("tests/{program}/{path}.rs"))
                    .collect()
            }
            _ => {
                let path = modules.replace("::", "/");
                // The tests of a part of the file are a module within its tests.
                let parent = path.split("/tests").next().unwrap_or_default();
                let package = self
                    .package
                    .as_deref()
                    .and_then(|it| it.strip_prefix("redlatch-"));
                let folder = package.map_or("src".to_owned(), |it| format!("crates/{it}/src"));
                let files = [
                    format!("{path}.rs"),
                    format!("{parent}.rs"),
                    format!("{parent}/mod.rs"),
                ];
                files.map(|file| format!("{folder}/{file}")).into()
            }
        };
        let has_it = |text: String| {
            let indents = ["", "    ", "        "];
            indents
                .iter()
                .any(|indent| text.contains(&format!("#[test]\n{indent}fn {name}()")))
                || text.contains(&format!("\nfn {name}(backend: &Backend)"))
        };
        files
            .iter()
            .any(|file| fs::read_to_string(root.join(file)).is_ok_and(has_it))
    }
}

impl fmt::Display for Killer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let package = self.package.iter().map(|package| format!("-p {package} "));
        write!(
            f,
            "{}{} {}",
            package.collect::<String>(),
            self.target.join(" "),
            self.test
        )
    }
}
