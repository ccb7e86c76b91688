//! The port of a redis-server process for TLS, beside its plain one.

use std::path::Path;

use super::port::Port;
use super::transport::is_tls;

/// A port of 127.0.0.1, and the server's settings for it.
pub(crate) struct SecurePort {
    port: Port,
    settings: Vec<String>,
}

impl SecurePort {
    /// In a program with TLS: with a certificate that the tests' clients trust, and for clients
    /// without one. Its files are in `folder`.
    #[cfg(target_os = "linux")]
    pub(crate) fn if_used(folder: &Path) -> Option<Self> {
        use super::certificates::{Authority, Purpose};
        is_tls().then(|| {
            let identity = Authority::trusted().issue(Purpose::Server);
            Self::new(folder, &identity, &["--tls-auth-clients", "no"])
        })
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn if_used(_folder: &Path) -> Option<Self> {
        assert!(!is_tls(), "the tests over TLS need Linux");
        None
    }

    /// With this certificate and additional settings.
    #[cfg(target_os = "linux")]
    pub(crate) fn new(
        folder: &Path,
        identity: &super::certificates::Identity,
        settings: &[&str],
    ) -> Self {
        use super::certificates::Authority;
        let (certificate, key) = identity.write_to(folder, "server");
        let authority = folder.join("authority.crt");
        std::fs::write(&authority, Authority::trusted().pem()).expect("it can be written");
        let [certificate, key, authority] =
            [certificate, key, authority].map(|path| path.display().to_string());
        let files = [
            ["--tls-cert-file", &certificate],
            ["--tls-key-file", &key],
            ["--tls-ca-cert-file", &authority],
        ];
        let settings = files.iter().flatten().chain(settings);
        Self {
            port: Port::choose(),
            settings: settings.map(|word| (*word).to_owned()).collect(),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.number()
    }

    /// Uses another port, because another process has this one.
    pub(crate) fn change(&mut self) {
        self.port = Port::choose();
    }

    /// The arguments of redis-server.
    pub(crate) fn args(&self) -> Vec<String> {
        self.port_args()
            .into_iter()
            .chain(self.settings.iter().cloned())
            .collect()
    }

    /// Those for the port.
    pub(crate) fn port_args(&self) -> [String; 2] {
        ["--tls-port".to_owned(), self.port().to_string()]
    }
}
