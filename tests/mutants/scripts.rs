//! Mistakes in Lua behind switches: a script is chosen where it leaves for a server.
//!
//! A script's text is a constant that is made of several files. So there is a second one of each
//! script that has the file with the mistake, and a function that returns it instead when the
//! mistake is made.

use crate::source::Change;
use crate::switch::condition;

/// The files with tables of scripts, which are numbered through all of them.
const TABLES: [&str; 2] = [
    "crates/protocol/src/node/script.rs",
    "crates/registers/src/script.rs",
];

/// Where the library sends scripts, and where tests do by themselves.
pub(crate) const SENDERS: [&str; 5] = [
    TABLES[0],
    "tests/api/groups/scripts.rs",
    "tests/api/registers/scripts.rs",
    "tests/api/scripts/rules.rs",
    "tests/api/shares/split_permits.rs",
];

/// The files of each script, by its number.
pub(crate) struct Scripts(Vec<Vec<String>>);

impl Scripts {
    pub(crate) fn read(original: impl Fn(&str) -> String) -> Self {
        let mut scripts = Vec::new();
        for table in TABLES {
            let text = original(table);
            let rows = text.split("\nscripts! {").nth(1).expect("it has a table");
            let (rows, _) = rows.split_once("\n}\n").expect("the table ends");
            let (folder, _) = table.rsplit_once('/').expect("it is in a folder");
            // The first number comes before the rows.
            for row in rows.split_terminator(';').skip(1) {
                let names = row.split('"').skip(1).step_by(2);
                scripts.push(names.map(|name| path(folder, name)).collect());
            }
        }
        Self(scripts)
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        self.0.iter().flatten().any(|it| it == file)
    }

    /// A function that returns another script than it is given, if one of these mistakes is made.
    pub(crate) fn function(
        &self,
        mistakes: &[(usize, &Change)],
        original: impl Fn(&str) -> String,
    ) -> String {
        let mut text = "pub fn mistaken(script: Script) -> Script {\n".to_owned();
        for (mutant, change) in mistakes {
            text += &format!("if {} {{ match script.number {{\n", condition(*mutant));
            for (number, files) in self.0.iter().enumerate() {
                if !files.contains(&change.file) {
                    continue;
                }
                let source: String = files
                    .iter()
                    .map(|file| {
                        let lines = original(file);
                        if *file == change.file {
                            change.apply(&lines)
                        } else {
                            lines
                        }
                    })
                    .collect();
                text += &format!("{number} => return {},\n", script(number, &source));
            }
            text += "_ => {}\n} }\n";
        }
        text + "script\n}\n"
    }
}

/// A script of this text. Its digest is made at run time: the compiler would take long for many.
fn script(number: usize, text: &str) -> String {
    format!(
        "{{
            const FILES: &str = {text:?};
            const LENGTH: usize = stripped::<0>(FILES).1;
            static SOURCE: [u8; LENGTH] = stripped(FILES).0;
            static MADE: ::std::sync::OnceLock<Script> = ::std::sync::OnceLock::new();
            *MADE.get_or_init(|| {{
                let sha1 = String::from_utf8_lossy(&sha1(&SOURCE)).into_owned().leak();
                let source = ::std::str::from_utf8(&SOURCE).expect(\"spaces are ASCII\");
                Script {{ source, sha1, number: {number} }}
            }})
        }}"
    )
}

/// The text of a file of [`SENDERS`], which asks that function for what it sends.
pub(crate) fn asking(file: &str, text: &str) -> String {
    let function = if TABLES.contains(&file) {
        "mistaken(script)"
    } else {
        "redlatch_protocol::node::script::mistaken(script)"
    };
    assert!(text.contains("script.source"), "{file} sends no script");
    text.replace("script.source", &format!("{function}.source"))
        .replace("script.sha1", &format!("{function}.sha1"))
}

/// The path of a file, from the root of the repository, that a file in `folder` names.
fn path(folder: &str, name: &str) -> String {
    match (name.strip_prefix("../"), folder.rsplit_once('/')) {
        (Some(name), Some((above, _))) => path(above, name),
        _ => format!("{folder}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Sources, existing, original};
    use crate::table;

    #[test]
    fn scripts_are_made_of_files_that_are_there() {
        let scripts = Scripts::read(original);
        let files = || scripts.0.iter().flatten();
        assert!(files().count() > scripts.0.len(), "some have several");
        for file in files() {
            assert!(existing(file).is_some(), "{file}");
        }
        assert!(scripts.has("crates/protocol/src/inspect/remove.lua"));
    }

    #[test]
    fn a_mistake_in_a_file_is_one_of_all_scripts_that_have_it() {
        let sources = Sources::read();
        let scripts = Scripts::read(original);
        let mutants = table::mutants();
        let mutant = mutants.iter().find(|mutant| mutant.item == "waiting.lua");
        let change = sources.locate(mutant.expect("there are some")).unwrap();
        let text = scripts.function(&[(7, &change)], original);
        let with_it = scripts.0.iter().filter(|it| it.contains(&change.file));
        let count = with_it.count();
        assert!(count > 1);
        assert_eq!(text.matches("=> return {").count(), count);
        let line = change.replacement[0].escape_debug().to_string();
        assert_eq!(text.matches(&line).count(), count, "{line}");
    }

    #[test]
    fn all_senders_ask() {
        for file in SENDERS {
            assert!(asking(file, &original(file)).contains("mistaken(script).source"));
        }
    }
}
