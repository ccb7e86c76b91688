//! The pages of documentation can be read on GitHub and, those of the guide, in rustdoc too: no
//! link of rustdoc's is shown as it is written, no line is hidden, every link leads somewhere.

use super::{FOLDERS, Source, assert_none, files, root};
use pulldown_cmark::{BrokenLink, CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag};
use pulldown_cmark::{Tag::Heading, TagEnd};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A page as a reader of GitHub sees it.
#[derive(Default)]
struct Page {
    path: String,
    /// What stands in brackets and is not a link.
    broken: Vec<String>,
    /// Where links and pictures lead, and the reference by which they are written, if it is one.
    links: Vec<(String, Option<String>)>,
    /// Definitions of references: where they lead.
    definitions: BTreeMap<String, String>,
    /// The names by which links lead to headings.
    anchors: BTreeSet<String>,
    /// Blocks of code: what is said about them, and their text.
    blocks: Vec<(String, String)>,
    /// Code within sentences.
    code: BTreeSet<String>,
}

/// The label of a link that has one.
fn reference(link_type: LinkType, id: &str) -> Option<String> {
    match link_type {
        LinkType::Inline | LinkType::Autolink | LinkType::Email => None,
        _ => Some(id.to_owned()),
    }
}

impl Page {
    fn read(source: &Source) -> Page {
        let broken = RefCell::new(Vec::new());
        let note = |link: BrokenLink<'_>| -> Option<(CowStr<'_>, CowStr<'_>)> {
            broken.borrow_mut().push(link.reference.to_string());
            None
        };
        let parser =
            Parser::new_with_broken_link_callback(&source.text, Options::ENABLE_TABLES, Some(note));
        let mut page = Page {
            path: source.path.clone(),
            ..Page::default()
        };
        for (name, definition) in parser.reference_definitions().iter() {
            page.definitions
                .insert(name.to_owned(), definition.dest.to_string());
        }
        let mut heading = None;
        let mut is_code = false;
        for event in parser {
            match event {
                Event::Start(Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    page.anchors
                        .extend(heading.take().map(|text| anchor(&text)));
                }
                Event::Start(
                    Tag::Link {
                        link_type,
                        dest_url,
                        id,
                        ..
                    }
                    | Tag::Image {
                        link_type,
                        dest_url,
                        id,
                        ..
                    },
                ) => {
                    page.links
                        .push((dest_url.to_string(), reference(link_type, &id)));
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    page.blocks.push((info.to_string(), String::new()));
                    is_code = true;
                }
                Event::End(TagEnd::CodeBlock) => is_code = false,
                Event::Html(html) => page.links.extend(pictures(&html)),
                Event::Text(text) if is_code => {
                    page.blocks
                        .iter_mut()
                        .last()
                        .into_iter()
                        .for_each(|block| block.1 += &text);
                }
                Event::Code(text) if heading.is_none() => {
                    page.code.insert(text.to_string());
                }
                Event::Text(text) | Event::Code(text) => {
                    // Of a sentence, if there is no heading; nobody asks for that.
                    heading.iter_mut().for_each(|heading| *heading += &text);
                }
                _ => {}
            }
        }
        page.broken = broken.into_inner();
        page
    }

    /// Whether a link of this page leads to a file that is there, and to a heading in it.
    fn leads_somewhere(&self, link: &str, pages: &BTreeMap<String, Page>) -> bool {
        if link.starts_with("https://") || link.starts_with("http://") {
            return true;
        }
        let (file, anchor) = link
            .split_once('#')
            .map_or((link, None), |(f, a)| (f, Some(a)));
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut path: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in file.split('/') {
            match part {
                ".." => path.truncate(path.len().saturating_sub(1)),
                part => path.push(part),
            }
        }
        let path = if file.is_empty() {
            self.path.clone()
        } else {
            path.join("/")
        };
        let has = |anchor| {
            pages
                .get(&path)
                .is_some_and(|page| page.anchors.contains(anchor))
        };
        root().join(&path).exists() && anchor.is_none_or(has)
    }
}

/// The name of a heading, which GitHub and rustdoc make alike.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| {
        if c == ' ' {
            '-'
        } else {
            c.to_ascii_lowercase()
        }
    })
    .collect()
}

/// The pictures in a line of HTML.
fn pictures(html: &str) -> Vec<(String, Option<String>)> {
    let parts = html
        .split("src=\"")
        .skip(1)
        .chain(html.split("srcset=\"").skip(1));
    parts
        .filter_map(|part| Some((part.split_once('"')?.0.to_owned(), None)))
        .collect()
}

fn pages() -> BTreeMap<String, Page> {
    let mut sources = files("docs", "md");
    for folder in ["src", "bindings", "cli", "fuzz"] {
        sources.extend(files(folder, "md"));
    }
    for name in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        let text = fs::read_to_string(root().join(name)).unwrap();
        sources.push(Source {
            path: name.to_owned(),
            text,
        });
    }
    sources
        .iter()
        .map(|source| (source.path.clone(), Page::read(source)))
        .collect()
}

/// Whether code within a sentence names a file or folder of this repository that is not there.
fn is_lost_file(code: &str) -> bool {
    let is_path = |code: &str| {
        code.chars()
            .all(|c| c.is_alphanumeric() || "/._-".contains(c))
    };
    let folders = [
        "src/",
        "tests/",
        "examples/",
        "docs/",
        "fuzz/",
        "benches/",
        "cli/",
        "crates/",
        "bindings/",
    ];
    folders.iter().any(|folder| code.starts_with(folder))
        && is_path(code)
        && code != "fuzz/target"
        && !root().join(code).exists()
        && !root().join(format!("{code}.rs")).exists()
}

/// A picture as an address that needs no file, since rustdoc copies none.
fn in_the_page(link: &str) -> String {
    let picture = fs::read(root().join("src/guide").join(link)).unwrap();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/:=,;-._~".contains(byte);
    let encode = |byte: &u8| match is_plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    format!(
        "data:image/svg+xml,{}",
        picture.iter().map(encode).collect::<String>()
    )
}

/// The pages that rustdoc shows as well.
fn is_of_the_guide(page: &Page) -> bool {
    page.path.starts_with("src/guide/")
}

#[test]
fn every_link_of_a_page_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let mut wrong = Vec::new();
    for page in pages.values() {
        wrong.extend(
            page.broken
                .iter()
                .map(|link| format!("{}: [{link}]", page.path)),
        );
        let lost = page
            .links
            .iter()
            .filter(|(link, _)| !page.leads_somewhere(link, &pages));
        wrong.extend(lost.map(|(link, _)| format!("{}: {link}", page.path)));
        // Old entries of the changelog name what there was.
        if page.path != "CHANGELOG.md" {
            let lost = page.code.iter().filter(|code| is_lost_file(code));
            wrong.extend(lost.map(|code| format!("{}: `{code}`", page.path)));
        }
    }
    assert_none(
        "links that GitHub shows as text, or that lead nowhere",
        &wrong,
    );
}

#[test]
fn the_code_of_a_page_is_shown_as_it_is_and_in_colour() {
    let mut wrong = Vec::new();
    for page in pages().values().filter(|page| page.path != "CHANGELOG.md") {
        for (info, text) in &page.blocks {
            let language = info.split(' ').next().unwrap_or_default();
            if !language.chars().all(char::is_alphanumeric) || language == "ignore" {
                wrong.push(format!("{}: ```{info}: write ```rust no_run", page.path));
            }
            if language.is_empty() && is_of_the_guide(page) {
                wrong.push(format!("{}: ``` without a language", page.path));
            }
            let hidden = |line: &&str| line.trim() == "#" || line.trim_start().starts_with("# ");
            if language == "rust" {
                let hidden = text.lines().filter(hidden);
                wrong.extend(hidden.map(|line| format!("{}: hidden: {line}", page.path)));
            }
        }
    }
    assert_none(
        "blocks of code that GitHub shows otherwise than rustdoc",
        &wrong,
    );
}

#[test]
fn the_links_between_pages_of_the_guide_lead_to_the_same_place_in_rustdoc() {
    let path = "src/guide/links.txt";
    let text = fs::read_to_string(root().join(path)).unwrap();
    let rustdoc = Page::read(&Source {
        path: path.to_owned(),
        text,
    })
    .definitions;
    let mut used = BTreeSet::from(["//".to_owned()]);
    let mut wrong = Vec::new();
    for page in pages().values().filter(|page| is_of_the_guide(page)) {
        let path = &page.path;
        for (link, reference) in &page.links {
            if link.starts_with("http") || link.starts_with('#') {
                continue;
            }
            if reference.as_ref() != Some(link) {
                wrong.push(format!(
                    "{path}: ({link}) is to be [{link}], with a definition"
                ));
            }
            let target = match link.as_str() {
                "../lib.rs" => "crate#platforms".to_owned(),
                link if link.ends_with(".svg") => in_the_page(link),
                link => format!("crate::guide::{}", link.replacen(".md", "", 1)),
            };
            if rustdoc.get(link) != Some(&target) {
                wrong.push(format!(
                    "{path}: src/guide/links.txt has no [{link}]: {target}"
                ));
            }
            used.insert(link.clone());
        }
        let references: BTreeSet<_> = page.links.iter().filter_map(|l| l.1.as_ref()).collect();
        let unused = page
            .definitions
            .keys()
            .filter(|name| !references.contains(name));
        wrong.extend(unused.map(|name| format!("{path}: [{name}] is defined and not used")));
    }
    for page in files("src/guide", "md") {
        // Rustdoc shows this beside the page's name, on the page of the module above.
        let summary = page.text.split("\n\n").next().unwrap_or_default();
        if summary.contains("](#") {
            wrong.push(format!(
                "{}: a link to the page itself, in its first sentences",
                page.path
            ));
        }
    }
    let unused = rustdoc.keys().filter(|name| !used.contains(*name));
    wrong.extend(unused.map(|name| format!("{path}: [{name}] is defined and not used")));
    assert_none(
        "links that are not the same on GitHub and in rustdoc",
        &wrong,
    );
}

#[test]
fn what_a_page_of_the_guide_names_is_in_the_public_interface() {
    let guide = fs::read_to_string(root().join("src/guide.rs")).unwrap();
    let interface = fs::read_to_string(root().join("tests/tidy/public_api.txt")).unwrap();
    let is_word = |word: &str| word.chars().all(|c| c.is_alphanumeric() || c == '_');
    let mut wrong = Vec::new();
    for page in pages().values().filter(|page| is_of_the_guide(page)) {
        let include = format!("include_str!(\"{}\")", page.path.trim_start_matches("src/"));
        assert!(guide.contains(&include), "src/guide.rs includes each page");
        for code in &page.code {
            let name = code
                .split('(')
                .next()
                .unwrap_or_default()
                .trim_start_matches("redlatch::");
            let Some((of, member)) = name.split_once("::") else {
                continue;
            };
            if !of.starts_with(char::is_uppercase) || !is_word(of) || !is_word(member) {
                continue;
            }
            let is_it = |line: &str| {
                let (item, text) = line.split_once(": ").unwrap_or_default();
                let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
                // `Builder::from` is of the trait `From`.
                let is_member = |word: &str| word.eq_ignore_ascii_case(member);
                item.rsplit("::").next() == Some(of) && words.any(is_member)
            };
            if !interface.lines().any(is_it) {
                wrong.push(format!("{}: `{code}`", page.path));
            }
        }
    }
    assert_none("names that are not in tests/tidy/public_api.txt", &wrong);
}

/// Whether code within a sentence names a file by the end of its path, or an item by its type, that
/// no source has.
fn is_lost_in(code: &str, sources: &[Source]) -> bool {
    let is_path = code.ends_with(".rs") && code.contains('/') && !code.contains(['*', ' ', '<']);
    if is_path {
        return !sources
            .iter()
            .any(|source| format!("/{}", source.path).ends_with(&format!("/{code}")));
    }
    let is_word = |word: &str| word.chars().all(|c| c.is_alphanumeric() || c == '_');
    let name = code.split('(').next().unwrap_or_default();
    let mut parts = name.rsplit("::");
    let (Some(member), Some(of)) = (parts.next(), parts.next()) else {
        return false;
    };
    let is_name = of.starts_with(char::is_uppercase) && is_word(of) && is_word(member);
    is_name
        && !sources
            .iter()
            .any(|source| source.text.contains(of) && source.text.contains(member))
}

/// Those of the guide have a test of their own, and old entries of the changelog name what there
/// was.
#[test]
fn what_a_page_for_contributors_names_is_in_the_source() {
    let sources: Vec<Source> = FOLDERS
        .iter()
        .flat_map(|folder| files(folder, "rs"))
        .collect();
    assert!(is_lost_in("Session::nowhere", &sources[..1]));
    assert!(is_lost_in("trust/nowhere.rs", &sources));
    assert!(!is_lost_in("trust/order.rs", &sources));
    let mut wrong = Vec::new();
    for page in pages().values() {
        if is_of_the_guide(page) || page.path == "CHANGELOG.md" {
            continue;
        }
        let lost = page.code.iter().filter(|code| is_lost_in(code, &sources));
        wrong.extend(lost.map(|code| format!("{}: `{code}`", page.path)));
    }
    assert_none("files and items that are not there", &wrong);
}

#[test]
fn an_example_that_the_documentation_does_not_compile_is_in_a_test() {
    let tests =
        fs::read_to_string(root().join("tests/integrations/tests/guide_examples.rs")).unwrap();
    let mut wrong = Vec::new();
    for page in pages().values() {
        for (_, text) in page.blocks.iter().filter(|(info, _)| info == "rust ignore") {
            // What comes before the first empty line are imports.
            let code = text
                .split_once("\n\n")
                .map_or(text.as_str(), |(_, code)| code);
            if !tests.contains(code) {
                wrong.push(format!(
                    "{}: {}",
                    page.path,
                    code.lines().next().unwrap_or_default()
                ));
            }
        }
    }
    assert_none(
        "examples that tests/integrations/tests/guide_examples.rs has not word by word",
        &wrong,
    );
}
