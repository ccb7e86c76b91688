//! A blocking connection over TLS that does not use the library.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::cli::Client;
use super::locks::LIMIT;

/// Trusts the authority whose certificate is in this file.
#[track_caller]
pub fn config(authority: &Path) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(authority).expect("it is a certificate");
    roots.add(certificate).expect("it is an authority's");
    Arc::new(
        ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth(),
    )
}

/// Connects to a port of 127.0.0.1.
#[track_caller]
pub fn connect(config: &Arc<ClientConfig>, port: u16) -> Client {
    let name = ServerName::try_from("localhost").expect("it is a name");
    let tls = ClientConnection::new(Arc::clone(config), name).expect("the settings are good");
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it accepts");
    stream
        .set_read_timeout(Some(LIMIT))
        .expect("a limit above zero");
    Client::over(StreamOwned::new(tls, stream))
}
