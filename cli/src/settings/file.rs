//! The file of settings, in TOML: those of a client, and a table of locks.

use crate::acquire::LockDefaults;
use crate::exit::Failure;
use crate::tls::{TlsArguments, needs};
use redlatch::ClientSettings;
use serde::Deserialize;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) settings: ClientSettings,
    pub(super) lock: LockDefaults,
    pub(super) tls: TlsArguments,
}

/// The file that the user named.
pub(super) fn named(path: &Path) -> Result<File, Failure> {
    read(path)?.ok_or_else(|| Failure::usage(&format!("{}: no such file", path.display())))
}

/// The first of these that exists. `unseen` gets those of which that cannot be known, and why: a
/// folder is none, or may not be searched.
pub(super) fn first_of(
    paths: impl Iterator<Item = PathBuf>,
    unseen: &mut Vec<String>,
) -> Result<File, Failure> {
    const UNSEEN: [ErrorKind; 2] = [ErrorKind::NotADirectory, ErrorKind::PermissionDenied];
    for path in paths {
        match fs::symlink_metadata(&path) {
            Err(error) if UNSEEN.contains(&error.kind()) => {
                unseen.push(format!("{}: {error}", path.display()));
            }
            _ => {
                if let Some(file) = read(&path)? {
                    return Ok(file);
                }
            }
        }
    }
    Ok(File::default())
}

/// `None` if there is no such file.
fn read(path: &Path) -> Result<Option<File>, Failure> {
    let (text, is_open_to_all) = match content(path) {
        Ok(content) => content,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::usage(&format!("{}: {error}", path.display()))),
    };
    let mut file =
        parse(&text).map_err(|what| Failure::usage(&format!("{}: {what}", path.display())))?;
    if is_open_to_all && file.settings.nodes.iter().any(|url| has_password(url)) {
        super::warn_of_open_file(path, "a password");
    }
    file.tls = file.tls.below(path.parent().unwrap_or(Path::new("")));
    Ok(Some(file))
}

/// The text, and whether every user of the machine may read it.
fn content(path: &Path) -> io::Result<(String, bool)> {
    let mut file = fs::File::open(path)?;
    let is_open_to_all = super::is_open_to_all(&file.metadata()?);
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok((text, is_open_to_all))
}

/// Before the `@`, behind a colon; or as an option of a socket's URL.
pub(super) fn has_password(url: &str) -> bool {
    let before_host = url.rsplit_once('@').map(|(credentials, _)| credentials);
    before_host.is_some_and(|text| !text.ends_with(':')) || url.contains("password=")
}

/// An error does not show the line that is wrong, which may have a password in it.
fn parse(text: &str) -> Result<File, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text); // some editors begin a file so
    let mut table: toml::Table = toml::from_str(text).map_err(|error| {
        let before = error
            .span()
            .and_then(|span| text.get(..span.start))
            .unwrap_or_default();
        format!(
            "line {}: {}",
            before.matches('\n').count() + 1,
            error.message()
        )
    })?;
    if table.contains_key("tls") && !cfg!(feature = "tls") {
        return Err(needs("TLS", "tls"));
    }
    let bundled = table.get("tls").and_then(|tls| tls.get("bundled_roots"));
    if bundled.is_some() && !cfg!(feature = "tls-bundled-roots") {
        return Err(needs("tls.bundled_roots", "tls-bundled-roots"));
    }
    if table.contains_key("session_timeout") && !cfg!(feature = "zookeeper") {
        return Err(needs("session_timeout", "zookeeper"));
    }
    let lock = table
        .remove("lock")
        .map_or(Ok(LockDefaults::default()), LockDefaults::deserialize);
    let lock = lock.map_err(|error| format!("lock: {}", shown(&error)))?;
    let settings = ClientSettings::deserialize(table).map_err(|error| shown(&error))?;
    let tls = TlsArguments::of_file(&settings);
    Ok(File {
        settings,
        lock,
        tls,
    })
}

/// Without the text of the file, an error does not show it either. But the name of a field may be a
/// line that is out of place.
fn shown(error: &toml::de::Error) -> String {
    match error.to_string() {
        text if text.contains("://") => "a field that is not known".to_owned(),
        text => text.trim_end().replace('\n', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_file_has_the_settings_of_a_client_and_those_of_locks() {
        let text = "# nodes\nnodes = ['redis://a', 'redis://:p=w@b']\nmax_ttl = '5m'\n\
                    key_prefix = 'jobs:'\nrestart_guard = false\n\
                    [lock]\nttl = '20s'\nwait = '10m'\nowner = 'host-7'\n";
        let file = parse(text).expect("good lines");
        assert_eq!(file.settings.nodes, ["redis://a", "redis://:p=w@b"]);
        assert_eq!(file.settings.max_ttl, Some(Duration::from_secs(300)));
        assert_eq!(file.settings.restart_guard, Some(false));
        let ttl = Duration::from_secs(20);
        let wait = Duration::from_secs(600);
        let owner = Some("host-7".to_owned());
        assert_eq!(
            file.lock,
            LockDefaults {
                ttl: Some(ttl),
                wait: Some(wait),
                owner
            }
        );
        let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(
            parse(&windows).expect("the same lines").settings.nodes,
            file.settings.nodes
        );
        assert!(parse("").expect("it is empty").settings.nodes.is_empty());
    }

    #[cfg(feature = "tls")]
    #[test]
    fn paths_begin_in_the_folder_of_the_file() {
        let text = "[tls]\nca_files = ['ca.crt', '/b.crt']\n\
                    client_certificate = { file = 'c.crt', key = 'c.key' }\n";
        let below = parse(text)
            .expect("good lines")
            .tls
            .below(Path::new("/etc"));
        assert_eq!(
            below.tls_ca,
            [Path::new("/etc/ca.crt"), Path::new("/b.crt")]
        );
        assert_eq!(below.tls_key.as_deref(), Some(Path::new("/etc/c.key")));
    }

    #[test]
    fn a_file_that_cannot_be_looked_for_is_followed_by_the_next() {
        let folder = support::program::in_memory();
        let good = folder.path().join("good");
        fs::write(&good, "nodes = 'redis://a'\n").expect("a folder");
        let missing = folder.path().join("missing");
        let paths = [
            PathBuf::from("/dev/null/redlatch.conf"),
            missing.clone(),
            good.clone(),
        ];
        let mut unseen = Vec::new();
        let file = first_of(paths.into_iter(), &mut unseen).expect("a good file");
        assert_eq!(file.settings.nodes, ["redis://a"]);
        assert_eq!(unseen.len(), 1, "{unseen:?}");
        assert!(
            unseen[0].starts_with("/dev/null/redlatch.conf: Not a directory"),
            "{unseen:?}"
        );
        // One that is there, and cannot be read, is not a missing one.
        let wrong = [folder.path().to_path_buf(), good].into_iter();
        assert!(first_of(wrong, &mut unseen).is_err());
    }

    #[test]
    fn an_error_names_what_is_wrong_and_does_not_show_its_line() {
        for (text, expected) in [
            ("redis://:secret@a", "line 1: "),
            ("key_prefix = 'a'\nnodes = redis://:secret@b", "line 2: "),
            (
                "\n\nkey_prefix = 'a'\nkey_prefix = 'b'",
                "line 4: duplicate key",
            ),
            (
                "node = 'redis://:secret@a'",
                "unknown field `node`, expected one of `nodes`, ",
            ),
            ("max_ttl = 30", "max_ttl"),
            ("max_ttl = 'soon'", "expected a duration with its unit"),
            ("[lock]\nttl = 30", "lock: "),
            ("[lock]\nttl = 'soon'", "expected a duration"),
            ("[lock]\nhold = 'a'", "unknown field `hold`"),
            ("[tls]\nca_file = 'a'", "unknown field `ca_file`"),
            ("'redis://:secret@a' = 1", "a field that is not known"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(
                error.contains(expected) && !error.contains("secret"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn a_password_in_a_url_is_noticed() {
        for (url, expected) in [
            ("redis://a", false),
            ("redis://user:@a", false),
            ("redis://:pw@a", true),
            ("rediss://user:pw@a/1", true),
            ("unix:///run/redis.sock?user=a", false),
            ("unix:///run/redis.sock?password=pw", true),
            ("zk://h1,h2/locks", false),
            ("zks://user:pw@h1,h2/locks", true),
        ] {
            assert_eq!(has_password(url), expected, "{url}");
        }
    }
}
