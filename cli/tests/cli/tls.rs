//! The command over TLS: certificates from options, files and the environment.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::program::{Ended, bare, end};
use support::certificates::{Authority, Purpose};
use support::program::in_memory;
use support::redis::Server;
use support::waiters::keys;
use tempfile::TempDir;

/// Three servers that want a client certificate, and a folder with the files for it.
struct Secure {
    servers: Vec<Server>,
    folder: TempDir,
}

impl Secure {
    fn start() -> Self {
        let folder = in_memory();
        let identity = Authority::trusted().issue(Purpose::Server);
        let start = |_| Server::start_tls(&identity, &["--tls-auth-clients", "yes"]);
        let secure = Self {
            servers: (0..3).map(start).collect(),
            folder,
        };
        fs::write(secure.path("ca.crt"), Authority::trusted().pem()).expect("a folder");
        Authority::trusted()
            .issue(Purpose::Client)
            .write_to(secure.folder.path(), "client");
        let private = Permissions::from_mode(0o600);
        fs::set_permissions(secure.path("client.key"), private).expect("it is ours");
        secure
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn urls(&self) -> String {
        self.servers
            .iter()
            .map(Server::url)
            .collect::<Vec<_>>()
            .join(",")
    }

    /// The command with the servers as its nodes.
    fn command(&self) -> Command {
        let mut command = bare();
        command.args(["--no-restart-guard", "--node-timeout", "5s"]);
        command.env("REDLATCH_NODES", self.urls());
        command
    }

    /// The same, with these files in the folder as its options.
    fn with(&self, files: [&str; 3]) -> Command {
        let mut command = self.command();
        for (option, file) in ["--tls-ca", "--tls-cert", "--tls-key"].iter().zip(files) {
            command.arg(option).arg(self.path(file));
        }
        command
    }
}

const FILES: [&str; 3] = ["ca.crt", "client.crt", "client.key"];
const RUN: [&str; 5] = ["run", "name", "--", "echo", "ran"];

#[track_caller]
fn ran(command: &mut Command) {
    let ended = end(command.args(RUN));
    assert_eq!(
        (ended.code, &*ended.stdout, &*ended.stderr),
        (0, "ran\n", "")
    );
}

/// The line on stderr of wrong usage.
#[track_caller]
fn refused(command: &mut Command) -> String {
    let Ended {
        code,
        stdout,
        stderr,
    } = end(command.args(RUN));
    assert_eq!(
        (code, &*stdout, stderr.lines().count()),
        (2, "", 1),
        "{stderr}"
    );
    stderr
}

#[test]
fn every_command_uses_the_certificates() {
    let secure = Secure::start();
    ran(&mut secure.with(FILES));
    for (arguments, code, text) in [
        (&["status"][..], 0, "rediss://127.0.0.1:"),
        (&["inspect", "name"], 0, "name: free"),
        (&["waiters", "name"], 0, "nobody waits"),
        (&["top"], 0, "0 locks, 0 waiting"),
        (&["release", "name", "--force"], 1, "nothing was released"),
        (
            &["bench", "--rounds", "5", "--handoffs", "2"],
            0,
            "acquire (5 times)",
        ),
    ] {
        let ended = end(secure.with(FILES).args(arguments));
        assert_eq!((ended.code, &*ended.stderr), (code, ""), "{arguments:?}");
        assert!(
            ended.stdout.contains(text),
            "{arguments:?}: {}",
            ended.stdout
        );
    }
    // The options may follow the command as well.
    let options = ["tls-ca", "tls-cert", "tls-key"];
    let options = options.iter().zip(FILES);
    let options = options.map(|(name, file)| format!("--{name}={}", secure.path(file).display()));
    assert_eq!(end(secure.command().arg("status").args(options)).code, 0);
}

#[test]
fn certificates_come_from_options_before_a_file_before_the_environment_before_the_users_file() {
    let secure = Secure::start();
    let lines = format!(
        "nodes = {:?}\nrestart_guard = false\n\
         [tls]\nca_files = ['ca.crt']\n\
         client_certificate = {{ file = {:?}, key = 'client.key' }}\n",
        secure.urls().split(',').collect::<Vec<_>>(),
        secure.path("client.crt")
    );
    fs::write(secure.path("redlatch.conf"), &lines).expect("a folder");
    fs::write(
        secure.path("wrong.conf"),
        lines.replace("'ca.crt'", "'wrong.crt'"),
    )
    .expect("a folder");
    let config = |name: &str| {
        let mut command = secure.command();
        command
            .current_dir("/")
            .arg("--config")
            .arg(secure.path(name));
        command
    };
    let environment = |command: &mut Command, ca: &str| {
        for (name, file) in ["CA", "CERT", "KEY"].iter().zip([ca, FILES[1], FILES[2]]) {
            command.env(format!("REDLATCH_TLS_{name}"), secure.path(file));
        }
    };
    // Names without a folder are in the folder of the file.
    ran(&mut config("redlatch.conf"));
    let text = refused(&mut config("wrong.conf"));
    assert!(
        text.contains(&format!("{} cannot be", secure.path("wrong.crt").display())),
        "{text}"
    );
    ran(config("wrong.conf")
        .arg("--tls-ca")
        .arg(secure.path("ca.crt")));
    let mut command = config("redlatch.conf");
    environment(&mut command, "wrong.crt");
    ran(&mut command);

    let mut command = secure.command();
    environment(&mut command, "ca.crt");
    ran(&mut command);
    let mut command = secure.command();
    environment(&mut command, "wrong.crt");
    ran(command.arg("--tls-ca").arg(secure.path("ca.crt")));
    let of_user = || {
        let mut command = bare();
        command
            .args(["--node-timeout", "5s"])
            .env("XDG_CONFIG_HOME", secure.folder.path());
        command
    };
    ran(&mut of_user());
    let mut command = of_user();
    environment(&mut command, "wrong.crt");
    assert!(refused(&mut command).contains("wrong.crt"));
    // An empty variable is none.
    let mut command = of_user();
    ran(command.envs(["CA", "CERT", "KEY"].map(|name| (format!("REDLATCH_TLS_{name}"), ""))));
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let secure = Secure::start();
    let start = Instant::now();
    Authority::trusted()
        .issue(Purpose::Client)
        .write_to(secure.folder.path(), "other");
    fs::set_permissions(secure.path("other.key"), Permissions::from_mode(0o600)).expect("ours");
    fs::write(secure.path("text"), "Zq7x").expect("a folder");
    fs::set_permissions(secure.path("text"), Permissions::from_mode(0o600)).expect("ours");
    fs::create_dir(secure.path("folder")).expect("a folder");
    let made = Command::new("mkfifo")
        .arg(secure.path("pipe"))
        .status()
        .expect("mkfifo starts");
    assert!(made.success());
    for wrong in ["none", "text", "folder", "pipe"] {
        for place in 0..3 {
            let mut files = FILES;
            files[place] = wrong;
            let text = refused(&mut secure.with(files));
            let path = secure.path(wrong).display().to_string();
            assert!(
                text.starts_with("redlatch: ") && text.contains(&path),
                "{text}"
            );
            assert!(!text.contains("Zq7x"), "{text}");
        }
    }
    let text = refused(&mut secure.with(["ca.crt", "client.crt", "other.key"]));
    assert!(
        text.contains("client.crt and ") && text.contains("do not belong together"),
        "{text}"
    );
    assert!(start.elapsed() < Duration::from_secs(120));
    assert!(secure.servers.iter().all(|server| keys(server).is_empty()));
}

#[test]
fn a_private_key_that_all_users_can_read_is_used_with_a_warning() {
    let secure = Secure::start();
    for (mode, is_open) in [(0o644, true), (0o640, false), (0o600, false)] {
        let key = secure.path("client.key");
        fs::set_permissions(&key, Permissions::from_mode(mode)).expect("it is ours");
        let ended = end(secure.with(FILES).args(RUN));
        assert_eq!(
            (ended.code, &*ended.stdout),
            (0, "ran\n"),
            "{}",
            ended.stderr
        );
        let warning = format!("redlatch: warning: {} has a private key", key.display());
        assert_eq!(
            ended.stderr.starts_with(&warning),
            is_open,
            "{mode:o}: {}",
            ended.stderr
        );
        assert_eq!(ended.stderr.lines().count(), usize::from(is_open));
    }
}

#[test]
fn a_file_may_be_a_pipe_of_a_shell() {
    let secure = Secure::start();
    let folder = secure.folder.path().display();
    let script = format!(
        "exec \"$0\" --node-timeout 5s --no-restart-guard \
         --tls-ca <(sleep 0.2; cat {folder}/ca.crt) --tls-cert <(cat {folder}/client.crt) \
         --tls-key <(cat {folder}/client.key) \"$@\""
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", &script, env!("CARGO_BIN_EXE_redlatch")]);
    ran(bash.env("REDLATCH_NODES", secure.urls()));
}

#[test]
fn what_servers_refuse_is_said_in_the_words_of_the_command() {
    let secure = Secure::start();
    let status = |command: &mut Command| {
        let ended = end(command.arg("status"));
        assert_eq!(ended.code, 69, "{}", ended.stderr);
        ended.stdout
    };
    let text = status(secure.command().arg("--tls-ca").arg(secure.path("ca.crt")));
    assert!(
        text.contains("wants a client certificate: see --tls-cert and --tls-key"),
        "{text}"
    );
    fs::write(
        secure.path("other.crt"),
        Authority::new("of someone else").pem(),
    )
    .expect("a folder");
    let text = status(
        secure
            .command()
            .arg("--tls-ca")
            .arg(secure.path("other.crt")),
    );
    assert!(
        text.contains("unknown CA: give its file to --tls-ca"),
        "{text}"
    );
    let ended = end(secure
        .with(["other.crt", FILES[1], FILES[2]])
        .args(["inspect", "name"]));
    assert_eq!(ended.code, 69);
    assert!(ended.stderr.contains("--tls-ca"), "{}", ended.stderr);
    // Without any setting, the roots of the system are trusted: here there are none.
    let text = refused(secure.command().env("SSL_CERT_FILE", secure.path("none")));
    assert!(
        text.contains("no root certificates") && text.contains("--tls-ca"),
        "{text}"
    );
    ran(secure
        .command()
        .env("SSL_CERT_FILE", secure.path("ca.crt"))
        .arg("--tls-cert")
        .arg(secure.path("client.crt"))
        .arg("--tls-key")
        .arg(secure.path("client.key")));
}

#[test]
fn settings_that_would_have_no_effect_are_refused() {
    let secure = Secure::start();
    let half = |command: &mut Command| {
        let text = refused(command);
        assert!(
            text.contains("certificate") && text.contains("key"),
            "{text}"
        );
    };
    let ca = secure.path("ca.crt");
    half(
        secure
            .command()
            .arg("--tls-ca")
            .arg(&ca)
            .arg("--tls-cert")
            .arg("client.crt"),
    );
    half(
        secure
            .command()
            .arg("--tls-ca")
            .arg(&ca)
            .arg("--tls-key")
            .arg("client.key"),
    );
    half(secure.command().env("REDLATCH_TLS_CERT", "client.crt"));
    let file = secure.path("half");
    let text = "[tls.client_certificate]\nkey = 'client.key'\n";
    fs::write(&file, text).expect("a folder");
    let text = refused(secure.command().arg("--config").arg(&file));
    assert!(text.contains("missing field `file`"), "{text}");

    let plain = |command: &mut Command| {
        let text = refused(command);
        assert!(
            text.contains("no node has a URL that begins with rediss://"),
            "{text}"
        );
    };
    let without_tls = |arguments: &[&Path]| {
        let mut command = bare();
        command
            .args(["--node", "redis://127.0.0.1:1"])
            .args(arguments);
        command
    };
    plain(&mut without_tls(&["--tls-ca".as_ref(), &ca]));
    plain(without_tls(&[]).env("REDLATCH_TLS_CA", &ca));
    fs::write(&file, "[tls]\nca_files = ['ca.crt']\n").expect("a folder");
    plain(&mut without_tls(&["--config".as_ref(), &file]));
}

#[test]
fn bundled_roots_are_used_where_they_are_built_in() {
    let secure = Secure::start();
    let bundled = || {
        let mut command = secure.command();
        command.arg("--tls-bundled-roots");
        command
    };
    if cfg!(feature = "tls-bundled-roots") {
        let ended = end(bundled().arg("status"));
        assert!(
            ended.code == 69 && ended.stdout.contains("unknown CA"),
            "{}",
            ended.stdout
        );
        return;
    }
    let text = refused(&mut bundled());
    assert!(
        text.contains("build redlatch-cli with --features tls-bundled-roots"),
        "{text}"
    );
}
