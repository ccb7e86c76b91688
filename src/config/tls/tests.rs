//! Files that can be used, and errors that say which one cannot.

use super::folder::Folder;
use super::*;
#[cfg(feature = "zookeeper")]
use crate::config::NodeSettings;
use crate::node_url::NodeUrl;
use std::error::Error;
use std::fs;

/// A folder with a certificate, its key, and another key.
struct Files {
    folder: Folder,
}

impl Files {
    fn new() -> Self {
        let files = Self {
            folder: Folder::new(),
        };
        // Made with openssl, for `a.test` and a hundred years.
        files.write("a.crt", include_str!("tests/a.crt"));
        files.write("a.key", include_str!("tests/a.key"));
        files.write("b.key", include_str!("tests/b.key"));
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    /// With the certificate as a CA's.
    fn settings(&self) -> TlsSettings {
        TlsSettings::default().ca_file(self.path("a.crt"))
    }

    /// The error of these settings, with the folder left out.
    #[track_caller]
    fn refused(&self, settings: &TlsSettings) -> String {
        let error = targets(settings, &["rediss://a.test"]).expect_err("settings");
        let text = error.to_string();
        assert!(error.source().is_none(), "{text}");
        text.replace(&format!("{}/", self.folder.path().display()), "")
    }
}

fn targets(
    settings: &TlsSettings,
    urls: &[&str],
) -> Result<Vec<Option<TlsTarget>>, TlsSettingsError> {
    let urls: Vec<_> = urls
        .iter()
        .map(|url| NodeUrl::parse(url).expect("a URL"))
        .collect();
    let names: Vec<_> = urls.iter().map(NodeUrl::server_name).collect();
    settings.targets(&names)
}

#[test]
fn files_are_read_if_a_node_is_reached_over_tls() {
    let files = Files::new();
    let settings = files
        .settings()
        .client_certificate(files.path("a.crt"), files.path("a.key"));
    let urls = [
        "redis://a",
        "rediss://b",
        "rediss://10.0.0.1?server_name=c",
        "rediss://[::1]",
    ];
    let found = targets(&settings, &urls).expect("good files");
    let is_tls: Vec<_> = found.iter().map(Option::is_some).collect();
    assert_eq!(is_tls, [false, true, true, true]);
    let missing = TlsSettings::default().ca_file(files.path("c.crt"));
    assert!(
        targets(&missing, &["redis://a", "unix:///r"]).is_ok(),
        "no file is read"
    );
    assert!(targets(&missing, &["redis://a", "rediss://b"]).is_err());
}

#[test]
fn an_error_names_the_file_and_what_is_wrong_with_it() {
    let files = Files::new();
    files.write("empty", "");
    files.write(
        "locked.key",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n",
    );
    files.write(
        "broken.crt",
        "-----BEGIN CERTIFICATE-----\nZq7x\n-----END CERTIFICATE-----\n",
    );
    let client = |certificate: &str, key: &str| {
        files
            .settings()
            .client_certificate(files.path(certificate), files.path(key))
    };
    for (settings, expected) in [
        (
            files.settings().ca_file(files.path("none")),
            "none cannot be read: No such file",
        ),
        (
            files.settings().ca_file(files.path("empty")),
            "empty has no certificate in PEM format",
        ),
        (
            files.settings().ca_file(files.path("a.key")),
            "a.key has no certificate in PEM format",
        ),
        (
            files.settings().ca_file(files.path("broken.crt")),
            "broken.crt cannot be used: ",
        ),
        (client("none", "a.key"), "none cannot be read: No such file"),
        (client("a.crt", "none"), "none cannot be read: No such file"),
        (
            client("a.key", "a.crt"),
            "a.key has no certificate in PEM format",
        ),
        (
            client("a.crt", "a.crt"),
            "a.crt has no private key in PEM format",
        ),
        (
            client("a.crt", "b.key"),
            "a.crt and b.key do not belong together",
        ),
        (
            client("a.crt", "locked.key"),
            "locked.key has an encrypted private key: decrypt it",
        ),
    ] {
        let text = files.refused(&settings);
        assert!(text.starts_with(expected), "{text}");
        assert!(!text.contains("Zq7x") && !text.contains("MIIB"), "{text}");
    }
}

#[test]
fn a_ready_configuration_is_used_alone() {
    let files = Files::new();
    let config = Arc::new(files.settings().client_config().expect("good files"));
    let ready = TlsSettings::from_config(config);
    assert!(targets(&ready, &["rediss://a"]).is_ok());
    let expected = "a ready configuration has its own roots and client certificate";
    assert_eq!(
        files.refused(&ready.clone().ca_file(files.path("a.crt"))),
        expected
    );
    assert_eq!(files.refused(&ready.clone().system_roots()), expected);
    let certificate = files.path("a.crt");
    let key = files.path("a.key");
    assert_eq!(
        files.refused(&ready.client_certificate(certificate, key)),
        expected
    );
}

#[test]
fn a_name_that_no_certificate_can_have_is_refused() {
    let files = Files::new();
    let error = targets(&files.settings(), &["rediss://-a-"]).expect_err("a name");
    assert_eq!(
        error.to_string(),
        "no certificate can be valid for the name '-a-'"
    );
}

#[test]
fn early_data_is_never_sent() {
    let config = Files::new().settings().client_config().expect("good files");
    assert!(!config.enable_early_data, "it can be replayed");
}

#[cfg(feature = "zookeeper")]
#[test]
fn a_server_of_an_ensemble_has_a_name_to_verify() {
    let files = Files::new();
    let urls = ["zks://10.0.0.1?server_name=b.test", "zks://h2,h3"];
    let builder = Builder::new().nodes(urls).tls(files.settings());
    let NodeSettings::ZooKeeper(ensemble) = builder.check().expect("an ensemble").nodes else {
        panic!("not an ensemble");
    };
    assert_eq!(ensemble.servers.len(), 3);
    for (server, name) in ensemble.servers.iter().zip(["b.test", "h2", "h3"]) {
        let tls = format!("{:?}", server.tls);
        assert!(tls.contains(&format!("\"{name}\"")), "{tls}");
    }
}
