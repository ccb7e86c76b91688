//! The settings for TLS: which certificates are trusted, and which one the client shows.
//!
//! Besides `net`, only this file names `rustls`.

use super::Builder;
use crate::error::TlsSettingsError;
use crate::net::TlsTarget;
use rustls::client::{ClientConfig, Resumption, WantsClientCert};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ConfigBuilder, RootCertStore};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How many sessions of a node are remembered, so that a reconnect resumes one of them: as many as
/// rustls keeps for one server.
const SESSIONS: usize = 8;

/// How long a pipe may take to its end. A command that decrypts a key has ended by then.
const FILE_LIMIT: Duration = Duration::from_secs(5);

/// The most bytes of a file. The certificates of all public authorities are a quarter of a million.
const FILE_MAX: usize = 16 << 20;

/// How connections to `rediss://` nodes, or to `zks://` servers of ZooKeeper, are secured: which
/// certificates of servers are trusted, and which certificate the client shows. [The
/// guide](crate::guide::settings#tls) has more.
///
/// ```no_run
/// # use redlatch::{Error, LockClient, TlsSettings};
/// let tls = TlsSettings::default()
///     .ca_file("/etc/redis/ca.crt")
///     .client_certificate("/etc/redis/client.crt", "/etc/redis/client.key");
/// let nodes = ["rediss://redis-1.internal", "rediss://10.0.0.2?server_name=redis-2.internal"];
/// let client = LockClient::builder().nodes(nodes).tls(tls).build()?;
/// # Ok::<(), Error>(())
/// ```
///
/// A server's certificate must be signed by a trusted CA, be valid at the time of this machine's
/// wall clock, and be for the host in the node's URL, or for its `server_name`. No setting turns
/// this off. [`ca_file`](Self::ca_file) also takes a certificate that a server has signed itself,
/// if that is not marked as a CA's (`openssl req -x509 -addext basicConstraints=CA:FALSE`).
///
/// The files are read when the client is built, and only if a node has a `rediss://` or `zks://`
/// URL. A pipe, such as a shell makes it for `<(command)`, may be named instead of a file: it is
/// read once, for one client, and must come to its end within five seconds.
#[derive(Clone, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
#[must_use = "settings do nothing before `Builder::tls`"]
#[non_exhaustive]
pub struct TlsSettings {
    #[cfg_attr(feature = "serde", serde(skip))]
    config: Option<Arc<ClientConfig>>,
    // Without any of these three, the system's roots are trusted.
    /// The files of [`ca_file`](Self::ca_file).
    pub ca_files: Vec<PathBuf>,
    /// Set by [`system_roots`](Self::system_roots).
    pub system_roots: bool,
    /// Set by [`bundled_roots`](Self::bundled_roots).
    #[cfg(feature = "tls-bundled-roots")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls-bundled-roots")))]
    pub bundled_roots: bool,
    /// Set by [`client_certificate`](Self::client_certificate).
    pub client_certificate: Option<ClientCertificate>,
}

/// The files of a client certificate.
#[derive(Clone, Debug)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize),
    serde(deny_unknown_fields)
)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a certificate and its key are all that there is"
)]
pub struct ClientCertificate {
    /// The certificate, with any intermediate ones behind it.
    pub file: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl TlsSettings {
    /// Trusts the CA certificates in this file, in PEM format, and not those of the system: for
    /// servers with certificates of an own CA. May be called again for more files.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_files.push(path.into());
        self
    }

    /// Trusts the system's root certificates. That is the default, unless other roots are given;
    /// this is for trusting both. The environment variables `SSL_CERT_FILE` and `SSL_CERT_DIR` name
    /// other places than the usual ones.
    pub fn system_roots(mut self) -> Self {
        self.system_roots = true;
        self
    }

    /// Trusts Mozilla's root certificates, which are compiled into the program, and not those of
    /// the system: for containers that have none. They are as old as the program's build.
    #[cfg(feature = "tls-bundled-roots")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls-bundled-roots")))]
    pub fn bundled_roots(mut self) -> Self {
        self.bundled_roots = true;
        self
    }

    /// Shows this certificate to servers that want one (`tls-auth-clients yes`, the default of
    /// Redis and Valkey). Both files are in PEM format: the certificate, with any intermediate ones
    /// behind it, and its private key without a passphrase.
    pub fn client_certificate(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        let file = certificate.into();
        let key = key.into();
        self.client_certificate = Some(ClientCertificate { file, key });
        self
    }

    /// Uses a ready configuration of [rustls](https://docs.rs/rustls/0.23), for what has no setting
    /// here: other cryptography, keys in hardware, a verifier of your own. It is used as it is, for
    /// all nodes, and no other setting can be made beside it. Whether and how a server is verified
    /// is then up to that configuration alone.
    pub fn from_config(config: Arc<ClientConfig>) -> Self {
        Self {
            config: Some(config),
            ..Self::default()
        }
    }

    /// For each server over TLS, by the name that its certificate must be valid for, how to secure
    /// its connections. Reads the files, if there is any such server.
    pub(super) fn targets(
        &self,
        names: &[Option<&str>],
    ) -> Result<Vec<Option<TlsTarget>>, TlsSettingsError> {
        if names.iter().all(Option::is_none) {
            return Ok(names.iter().map(|_| None).collect());
        }
        let (config, is_ready) = match &self.config {
            Some(_) if !self.is_empty() => return Err(TlsSettingsError::ConfigAndSettings),
            Some(config) => (Arc::clone(config), true),
            None => (Arc::new(self.client_config()?), false),
        };
        let mut targets = Vec::with_capacity(names.len());
        for name in names {
            let Some(name) = *name else {
                targets.push(None);
                continue;
            };
            let config = if is_ready {
                Arc::clone(&config)
            } else {
                with_own_sessions(&config)
            };
            let Some(target) = TlsTarget::new(config, name) else {
                let name = name.to_owned();
                return Err(TlsSettingsError::ServerName { name });
            };
            targets.push(Some(target));
        }
        Ok(targets)
    }

    /// Is nothing set but perhaps a ready configuration?
    fn is_empty(&self) -> bool {
        let has_roots = self.system_roots || self.has_bundled_roots() || !self.ca_files.is_empty();
        !has_roots && self.client_certificate.is_none()
    }

    fn has_bundled_roots(&self) -> bool {
        #[cfg(feature = "tls-bundled-roots")]
        return self.bundled_roots;
        #[cfg(not(feature = "tls-bundled-roots"))]
        false
    }

    fn client_config(&self) -> Result<ClientConfig, TlsSettingsError> {
        let builder =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .expect("ring has algorithms for both versions")
                .with_root_certificates(self.roots()?);
        match &self.client_certificate {
            None => Ok(builder.with_no_client_auth()),
            Some(ClientCertificate { file, key }) => with_certificate(builder, file, key),
        }
    }

    fn roots(&self) -> Result<RootCertStore, TlsSettingsError> {
        let mut roots = RootCertStore::empty();
        for path in &self.ca_files {
            for certificate in certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| unusable(path, &error))?;
            }
        }
        #[cfg(feature = "tls-bundled-roots")]
        if self.bundled_roots {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        if self.system_roots || (self.ca_files.is_empty() && !self.has_bundled_roots()) {
            let found = rustls_native_certs::load_native_certs();
            let (added, _) = roots.add_parsable_certificates(found.certs);
            if added == 0 {
                let reason = found.errors.first().map(ToString::to_string);
                return Err(TlsSettingsError::NoSystemRoots {
                    reason: reason.unwrap_or_default(),
                });
            }
        }
        Ok(roots)
    }
}

/// Paths are shown, and nothing that is in the files.
impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSettings")
            .field("ca_files", &self.ca_files)
            .field("client_certificate", &self.client_certificate)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// How connections to `rediss://` nodes, or to `zks://` servers of ZooKeeper, are secured; see
    /// [`TlsSettings`]. By default servers are verified with the system's root certificates, and
    /// the client shows no certificate.
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn tls(mut self, settings: TlsSettings) -> Self {
        self.settings.tls = settings;
        self
    }
}

/// The same configuration with sessions of its own. rustls remembers sessions by the server's name,
/// which may be the same for several nodes, and a node cannot resume the session of another.
fn with_own_sessions(config: &ClientConfig) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Arc::new(config)
}

fn with_certificate(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    certificate: &Path,
    key: &Path,
) -> Result<ClientConfig, TlsSettingsError> {
    let chain = certificates(certificate)?;
    let private_key = private_key(key)?;
    builder
        .with_client_auth_cert(chain, private_key)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let certificate = certificate.to_owned();
                let key = key.to_owned();
                TlsSettingsError::KeyMismatch { certificate, key }
            }
            rustls::Error::InvalidCertificate(_) => unusable(certificate, &error),
            _ => unusable(key, &error),
        })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsSettingsError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    // The error is not shown: it may quote the file.
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(TlsSettingsError::NoCertificate {
            path: path.to_owned(),
        }),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsSettingsError> {
    const ENCRYPTED: &[u8] = b"ENCRYPTED";
    let text = read(path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        let is_encrypted = text.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED);
        let path = path.to_owned();
        if is_encrypted {
            TlsSettingsError::EncryptedKey { path }
        } else {
            TlsSettingsError::NoKey { path }
        }
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsSettingsError> {
    read_within(path, FILE_LIMIT).map_err(|error| TlsSettingsError::File {
        path: path.to_owned(),
        error: Arc::new(error),
    })
}

fn unusable(path: &Path, error: &rustls::Error) -> TlsSettingsError {
    TlsSettingsError::Unusable {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

// A file may be something else: a pipe, as a shell makes it for `<(command)`, a named pipe that
// nobody writes to, or a device without an end.

/// The bytes of a file or, if it comes to its end within `limit`, of a pipe: neither opening nor
/// reading waits for a writer for longer than this. (The limit is for Unix.)
#[cfg(unix)]
fn read_within(path: &Path, limit: Duration) -> io::Result<Vec<u8>> {
    use crate::clock;
    use rustix::fs::{Mode, OFlags};
    use std::fs::File;
    use std::io::Read;

    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()));
    let mut file = File::from(opened?);
    let deadline = clock::now().after(limit);
    let mut bytes = Vec::new();
    let mut chunk = [0; 8192];
    loop {
        // Before each read, because some systems ignore the flag for what a shell has opened.
        if !is_ready(&file, deadline.since(clock::now()))? {
            let text = format!("no end of its data within {limit:?}");
            return Err(io::Error::new(ErrorKind::TimedOut, text));
        }
        match file.read(&mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        check_size(&bytes)?;
    }
}

/// Waits until there are bytes, an end or an error to read.
#[cfg(unix)]
fn is_ready(file: &std::fs::File, limit: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let limit = Timespec::try_from(limit).ok();
    let mut polled = [PollFd::new(file, PollFlags::IN)];
    let count = rustix::io::retry_on_intr(|| poll(&mut polled, limit.as_ref()))?;
    Ok(count > 0)
}

#[cfg(not(unix))]
fn read_within(path: &Path, _limit: Duration) -> io::Result<Vec<u8>> {
    let bytes = std::fs::read(path)?;
    check_size(&bytes)?;
    Ok(bytes)
}

fn check_size(bytes: &[u8]) -> io::Result<()> {
    if bytes.len() > FILE_MAX {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            "it has more than 16 MiB",
        ));
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod folder;
// Linux: the certificates are made by a crate that the tests have there only.
#[cfg(all(test, target_os = "linux"))]
mod tests;
// Linux: the tests make named pipes there only.
#[cfg(all(test, target_os = "linux"))]
mod file_tests;
