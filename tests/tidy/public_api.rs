//! The public interface, as rustdoc shows it: a change of it is a change of `public_api.txt`.

use super::root;
use std::fmt::Write;
use std::fs;
use std::process::Command;
use support::program::cargo;

/// Its toolchain: another one may show the same items in other words.
const HEAD: &str = "# rustdoc ";

#[test]
#[ignore = "builds the documentation; ./check runs it"]
fn the_public_interface_is_the_one_that_is_written_down() {
    let path = root().join("tests/tidy/public_api.txt");
    let written = fs::read_to_string(&path).unwrap_or_default();
    let version = Command::new("rustdoc")
        .arg("--version")
        .output()
        .unwrap()
        .stdout;
    let version = String::from_utf8(version).unwrap();
    let version = version.split(' ').nth(1).unwrap();
    let known = written.strip_prefix(HEAD).and_then(|it| it.lines().next());
    if known.is_some_and(|known| known != version) {
        println!(
            "not compared: written by rustdoc {}, this is {version}",
            known.unwrap()
        );
        return;
    }
    let mut cargo = cargo();
    // As ./check has made it before.
    cargo.args(["doc", "--lib", "--no-deps", "--all-features", "--locked"]);
    cargo.env("RUSTDOCFLAGS", "--deny warnings");
    // Where `interface` looks, wherever else the environment builds.
    cargo.args(["--target-dir", "target"]);
    assert!(cargo.current_dir(root()).status().unwrap().success());
    let found = format!("{HEAD}{version}\n{}", interface());
    if std::env::var_os("REDLATCH_WRITE").is_some() {
        fs::write(path, found).unwrap();
        return;
    }
    let changed: Vec<String> = lacking("-", &written, &found)
        .chain(lacking("+", &found, &written))
        .collect();
    super::assert_none(
        "the interface changes: REDLATCH_WRITE=1 writes it down",
        &changed,
    );
}

/// The lines of `one` that the other lacks.
fn lacking<'a>(sign: &'a str, one: &'a str, other: &'a str) -> impl Iterator<Item = String> + 'a {
    one.lines()
        .filter(|line| !other.lines().any(|it| it == *line))
        .map(move |it| format!("{sign} {it}"))
}

/// Each item with its declaration, its methods and the traits that it implements.
fn interface() -> String {
    let folder = root().join("target/doc/redlatch");
    let all = fs::read_to_string(folder.join("all.html")).unwrap();
    let mut pages: Vec<&str> = between(&all, "<li><a href=\"", "\"")
        .filter(|it| !it.starts_with('#'))
        .collect();
    pages.sort_unstable();
    assert!(pages.contains(&"struct.LockClient.html"), "{pages:?}");
    let mut text = String::new();
    for page in pages {
        let html = fs::read_to_string(folder.join(page)).unwrap();
        // What every type has.
        let own = html.split("id=\"blanket-implementations\"").next().unwrap();
        // Such as `embedded/struct.Nodes.html`.
        let mut parts = page.strip_suffix(".html").unwrap().rsplitn(2, '/');
        let item = parts.next().unwrap().split_once('.').unwrap().1;
        let name = parts.next().map_or(item.to_owned(), |it| {
            format!("{}::{item}", it.replace('/', "::"))
        });
        let mut declarations: Vec<(usize, String)> = Vec::new();
        for (begin, end) in [
            ("<pre class=\"rust item-decl\">", "</pre>"),
            ("class=\"code-header\">", "</h"),
        ] {
            for shown in between(own, begin, end) {
                let place = shown.as_ptr() as usize - own.as_ptr() as usize;
                declarations.push((place, plain(shown)));
            }
        }
        declarations.sort();
        for (_, declaration) in declarations.iter().filter(|(_, it)| !is_implied(it)) {
            writeln!(text, "{name}: {declaration}").unwrap();
        }
    }
    text
}

/// Does it say nothing that its type or trait does not? Methods of a trait are declared by the
/// trait, and some auto traits are not promised.
fn is_implied(declaration: &str) -> bool {
    let is_of_trait = ["fn ", "type ", "const ", "unsafe fn "];
    let is_auto = [
        "Freeze for",
        "UnsafeUnpin for",
        "Unpin for",
        "RefUnwindSafe for",
    ];
    let implemented = declaration.strip_prefix("impl").unwrap_or_default();
    let is_inherent = declaration.starts_with("impl") && !implemented.contains(" for ");
    is_of_trait.iter().any(|it| declaration.starts_with(it))
        || is_auto.iter().any(|it| implemented.contains(it))
        || is_inherent
}

fn between<'a>(text: &'a str, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(begin)
        .skip(1)
        .map(move |rest| rest.split(end).next().unwrap())
}

/// The text of HTML, on one line.
fn plain(html: &str) -> String {
    let text: String = html
        .split('<')
        .enumerate()
        .map(|(n, it)| {
            if n == 0 {
                it
            } else {
                it.split_once('>').unwrap().1
            }
        })
        .collect();
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&");
    let text = text.replace(" ⓘ", "").replace("where\n", " where\n");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
