//! Certificates for TLS, made by the tests: an authority that signs them, valid ones and ones with
//! a mistake each, and the files in which programs read them.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, OnceLock};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The names under which the tests' servers are reached.
const NAMES: [&str; 7] = [
    "127.0.0.1",
    "127.0.0.2",
    "::1",
    "localhost",
    "node.test",
    "slow.test",
    INTERNAL,
];

/// A name in the servers' certificates that no resolver knows.
pub const INTERNAL: &str = "redis-1.internal";

/// A certificate authority.
pub struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// What a certificate is for, or what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A server of the tests, under each of its names.
    Server,
    /// The same, but its time is over.
    Expired,
    /// The same, but its time has not come.
    NotYetValid,
    /// A server with another name.
    OtherName,
    /// A server whose only name is its address.
    Address,
    Client,
}

/// A certificate and its key.
#[derive(Clone)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    pub certificate_pem: String,
    pub key_pem: String,
    key: Arc<PrivateKeyDer<'static>>,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = params(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("the provider makes keys");
        let certificate = params.self_signed(&key).expect("the parameters are good");
        Self {
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    /// The authority that the tests' clients trust.
    pub fn trusted() -> &'static Self {
        static TRUSTED: OnceLock<Authority> = OnceLock::new();
        TRUSTED.get_or_init(|| Self::new("redlatch tests"))
    }

    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    pub fn issue(&self, purpose: Purpose) -> Identity {
        let names: &[&str] = match purpose {
            Purpose::Server | Purpose::Expired | Purpose::NotYetValid => &NAMES,
            Purpose::OtherName => &["another.internal", "192.0.2.7"],
            Purpose::Address => &["127.0.0.1"],
            Purpose::Client => &[],
        };
        let mut params = params("redlatch test", names);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // A server of a cluster is a client of the others.
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if purpose != Purpose::Client {
            params
                .extended_key_usages
                .push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        match purpose {
            Purpose::Expired => params.not_after = date_time_ymd(2001, 1, 1),
            Purpose::NotYetValid => params.not_before = date_time_ymd(2099, 1, 1),
            _ => {}
        }
        let key = KeyPair::generate().expect("the provider makes keys");
        let certificate = params
            .signed_by(&key, &self.issuer)
            .expect("the parameters are good");
        Identity {
            certificate_pem: certificate.pem(),
            certificate: certificate.der().clone(),
            key_pem: key.serialize_pem(),
            key: Arc::new(PrivateKeyDer::try_from(key.serialize_der()).expect("it is PKCS 8")),
        }
    }

    /// A file with the certificate of [`Authority::trusted`], which ends with this process.
    pub fn trusted_file() -> PathBuf {
        static FILE: OnceLock<File> = OnceLock::new();
        let file = FILE.get_or_init(|| {
            let mut file = tempfile::tempfile().expect("a temporary file can be made");
            file.write_all(Self::trusted().pem().as_bytes())
                .expect("it can be written");
            file
        });
        // It has no name in any folder, so nothing is left behind by a test that is killed.
        PathBuf::from(format!("/proc/{}/fd/{}", process::id(), file.as_raw_fd()))
    }
}

impl Identity {
    /// What a TLS server or client presents.
    pub fn chain_and_key(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (vec![self.certificate.clone()], self.key.clone_key())
    }

    /// Writes the certificate and the key into `folder`, and returns their paths.
    pub fn write_to(&self, folder: &Path, stem: &str) -> (PathBuf, PathBuf) {
        let paths = ["crt", "key"].map(|ending| folder.join(format!("{stem}.{ending}")));
        for (path, text) in paths.iter().zip([&self.certificate_pem, &self.key_pem]) {
            fs::write(path, text).expect("a temporary file can be written");
        }
        let [certificate, key] = paths;
        (certificate, key)
    }
}

/// Valid from 2000 to 2100.
fn params(common_name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("the names are ASCII");
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2100, 1, 1);
    params
}
