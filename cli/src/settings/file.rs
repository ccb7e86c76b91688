//! The file of settings: lines such as `node = redis://10.0.0.1`.

use crate::acquire::LockDefaults;
use crate::arguments::TlsArguments;
use crate::duration;
use crate::exit::Failure;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a file says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct File {
    pub(super) nodes: Vec<String>,
    pub(super) max_ttl: Option<Duration>,
    pub(super) node_timeout: Option<Duration>,
    pub(super) session_timeout: Option<Duration>,
    pub(super) key_prefix: Option<String>,
    pub(super) restart_guard: Option<bool>,
    pub(super) lock: LockDefaults,
    pub(super) tls: TlsArguments,
}

/// The file that the user named.
pub(super) fn named(path: &Path) -> Result<File, Failure> {
    let missing = || Failure::usage(&format!("{}: no such file", path.display()));
    read(path)?.ok_or_else(missing)
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
    let wrong = |(number, what)| Failure::usage(&format!("{}:{number}: {what}", path.display()));
    let mut file = parse(&text).map_err(wrong)?;
    if is_open_to_all && file.nodes.iter().any(|url| has_password(url)) {
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

/// Reads lines such as `node = redis://10.0.0.1`. An error has the line's number and not its text,
/// which may have a password in it.
fn parse(text: &str) -> Result<File, (usize, &'static str)> {
    let mut file = File::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text); // some editors begin a file so
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what| (index + 1, what);
        let (name, value) = line.split_once('=').ok_or(wrong("not a line like name = value"))?;
        if file.set(name.trim(), value.trim()).map_err(wrong)? {
            return Err(wrong("only node and tls-ca may stand there more than once"));
        }
    }
    Ok(file)
}

impl File {
    /// Takes a setting. Returns whether it is repeated, and may not be.
    fn set(&mut self, name: &str, value: &str) -> Result<bool, &'static str> {
        const NAMES: &str = "not one of node, max-ttl, node-timeout, session-timeout, key-prefix, \
                             restart-guard, ttl, wait, owner, tls-ca, tls-bundled-roots, tls-cert \
                             and tls-key";
        let duration = || duration::parse(value).map_err(|_| "not a duration such as 30s");
        let path = || PathBuf::from(value);
        let is_repeated = match name {
            "node" => {
                self.nodes.push(value.to_owned());
                false
            }
            "max-ttl" => self.max_ttl.replace(duration()?).is_some(),
            "node-timeout" => self.node_timeout.replace(duration()?).is_some(),
            "session-timeout" => self.session_timeout.replace(duration()?).is_some(),
            "key-prefix" => self.key_prefix.replace(value.to_owned()).is_some(),
            "restart-guard" => {
                let guard = switch(value).ok_or("restart-guard is on or off")?;
                self.restart_guard.replace(guard).is_some()
            }
            name if name.starts_with("tls-") && value.is_empty() => {
                return Err("there is nothing behind the equals sign");
            }
            "tls-ca" => {
                self.tls.tls_ca.push(path());
                false
            }
            "tls-bundled-roots" => {
                self.tls.tls_bundled_roots =
                    switch(value).ok_or("tls-bundled-roots is on or off")?;
                false
            }
            "tls-cert" => self.tls.tls_cert.replace(path()).is_some(),
            "tls-key" => self.tls.tls_key.replace(path()).is_some(),
            "ttl" => self.lock.ttl.replace(duration()?).is_some(),
            "wait" => self.lock.wait.replace(duration()?).is_some(),
            "owner" => self.lock.owner.replace(value.to_owned()).is_some(),
            "nodes" => return Err("the setting is node, with one URL, once for each node"),
            _ => return Err(NAMES),
        };
        Ok(is_repeated)
    }
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_setting_per_line() {
        let text = "# nodes\nnode = redis://a\n\n  node=redis://:p=w@b \nmax-ttl = 5m\n\
                    node-timeout=20ms\nsession-timeout = 4s\nkey-prefix = jobs:\n\
                    restart-guard = off\ntls-ca = ca.crt\ntls-ca=/b.crt\ntls-cert = c.crt\n\
                    tls-key = c.key\nttl = 20s\nwait = 10m\nowner = host-7\n\
                    tls-bundled-roots = on\n";
        let expected = File {
            nodes: vec!["redis://a".to_owned(), "redis://:p=w@b".to_owned()],
            max_ttl: Some(Duration::from_secs(300)),
            node_timeout: Some(Duration::from_millis(20)),
            session_timeout: Some(Duration::from_secs(4)),
            key_prefix: Some("jobs:".to_owned()),
            restart_guard: Some(false),
            lock: LockDefaults {
                ttl: Some(Duration::from_secs(20)),
                wait: Some(Duration::from_secs(600)),
                owner: Some("host-7".to_owned()),
            },
            tls: TlsArguments {
                tls_ca: vec!["ca.crt".into(), "/b.crt".into()],
                tls_bundled_roots: true,
                tls_cert: Some("c.crt".into()),
                tls_key: Some("c.key".into()),
            },
        };
        assert_eq!(parse(text), Ok(expected));
        assert_eq!(parse(&format!("\u{feff}{}", text.replace('\n', "\r\n"))), parse(text));
        let below = parse(text).expect("good lines").tls.below(Path::new("/etc"));
        assert_eq!(below.tls_ca, [Path::new("/etc/ca.crt"), Path::new("/b.crt")]);
        assert_eq!(parse(""), Ok(File::default()));
    }

    #[test]
    fn a_file_that_cannot_be_looked_for_is_followed_by_the_next() {
        let folder = support::program::in_memory();
        let good = folder.path().join("good");
        fs::write(&good, "node = redis://a\n").expect("a folder");
        let missing = folder.path().join("missing");
        let paths = [PathBuf::from("/dev/null/redlatch.conf"), missing.clone(), good.clone()];
        let mut unseen = Vec::new();
        let file = first_of(paths.into_iter(), &mut unseen).expect("a good file");
        assert_eq!(file.nodes, ["redis://a"]);
        assert_eq!(unseen.len(), 1, "{unseen:?}");
        assert!(unseen[0].starts_with("/dev/null/redlatch.conf: Not a directory"), "{unseen:?}");
        // One that is there, and cannot be read, is no missing one.
        let wrong = [folder.path().to_path_buf(), good].into_iter();
        assert!(first_of(wrong, &mut unseen).is_err());
    }

    #[test]
    fn an_error_has_the_number_of_the_line_and_not_its_text() {
        for (text, line) in [
            ("redis://:secret@a", 1),
            ("node = redis://a\nnodes = redis://:secret@b", 2),
            ("max-ttl = 30", 0),
            ("max-ttl = soon", 1),
            ("restart-guard = no", 1),
            ("\n\nkey-prefix = a\nkey-prefix = b", 4),
            ("tls-key = a\ntls-ca = b\ntls-ca = c\ntls-key = d", 4),
            ("tls-ca =", 1),
            ("tls-bundled-roots = yes", 1),
        ] {
            match parse(text) {
                Ok(_) => assert_eq!(line, 0, "{text}"),
                Err((number, what)) => {
                    assert_eq!(number, line, "{text}: {what}");
                    assert!(!what.contains("secret"));
                }
            }
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
