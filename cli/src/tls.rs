//! The settings for TLS: from which of the sources they are taken, and whether they can be used.

pub(crate) use super::arguments::TlsArguments;
use super::exit::Failure;
use redlatch::{ClientSettings, Error};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

const CA: &str = "REDLATCH_TLS_CA";
const CERT: &str = "REDLATCH_TLS_CERT";
const KEY: &str = "REDLATCH_TLS_KEY";

/// What this program was built with.
#[derive(Clone, Copy)]
struct Support {
    tls: bool,
    bundled_roots: bool,
}

impl Support {
    const HERE: Self = Self {
        tls: cfg!(feature = "tls"),
        bundled_roots: cfg!(feature = "tls-bundled-roots"),
    };
}

impl TlsArguments {
    /// Those of a file.
    #[cfg(feature = "tls")]
    pub(crate) fn of_file(settings: &ClientSettings) -> Self {
        let tls = &settings.tls;
        let certificate = settings.tls.client_certificate.as_ref();
        Self {
            tls_ca: tls.ca_files.clone(),
            system_roots: tls.system_roots,
            #[cfg(feature = "tls-bundled-roots")]
            tls_bundled_roots: tls.bundled_roots,
            #[cfg(not(feature = "tls-bundled-roots"))]
            tls_bundled_roots: false,
            tls_cert: certificate.map(|certificate| certificate.file.clone()),
            tls_key: certificate.map(|certificate| certificate.key.clone()),
        }
    }

    /// There are none: a file with any is refused.
    #[cfg(not(feature = "tls"))]
    pub(crate) fn of_file(_: &ClientSettings) -> Self {
        Self::default()
    }

    pub(crate) fn from_env() -> Self {
        let path = |name| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        Self {
            tls_ca: path(CA).into_iter().collect(),
            tls_cert: path(CERT),
            tls_key: path(KEY),
            ..Self::default()
        }
    }

    /// Paths without a folder in front are in this one.
    pub(crate) fn below(mut self, folder: &Path) -> Self {
        let paths = self
            .tls_ca
            .iter_mut()
            .chain(&mut self.tls_cert)
            .chain(&mut self.tls_key);
        paths.for_each(|path| *path = folder.join(&*path));
        self
    }

    /// These settings, and from the `other` source what these leave open: the roots, or the
    /// certificate with its key, which belong together.
    pub(crate) fn or(mut self, other: &Self) -> Self {
        if self.tls_ca.is_empty() && !self.tls_bundled_roots && !self.system_roots {
            self.tls_ca.clone_from(&other.tls_ca);
            self.tls_bundled_roots = other.tls_bundled_roots;
            self.system_roots = other.system_roots;
        }
        if self.tls_cert.is_none() && self.tls_key.is_none() {
            self.tls_cert.clone_from(&other.tls_cert);
            self.tls_key.clone_from(&other.tls_key);
        }
        self
    }

    /// Are these of use, and is there all that they need? `is_used`: does a node's URL ask for TLS?
    fn check(&self, is_used: bool, support: Support) -> Result<(), String> {
        if !support.tls && (is_used || *self != Self::default()) {
            return Err(needs("TLS", "tls"));
        }
        if self.tls_bundled_roots && !support.bundled_roots {
            return Err(needs("--tls-bundled-roots", "tls-bundled-roots"));
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return Err(format!(
                "a client certificate needs its key: give both --tls-cert and --tls-key, or set \
                 both {CERT} and {KEY}"
            ));
        }
        if !is_used && *self != Self::default() {
            return Err(format!(
                "no node has a URL that begins with rediss://, rediss+sentinel://, \
                 rediss+cluster:// or zks://, so nothing would be encrypted by what is set for TLS \
                 (--tls-…, {CA}, or [tls] of a file)"
            ));
        }
        Ok(())
    }

    /// Makes these the settings of a client, which has its nodes.
    pub(crate) fn apply(self, settings: &mut ClientSettings) -> Result<(), Failure> {
        let is_used = settings.uses_tls().map_err(Error::from)?;
        self.check(is_used, Support::HERE)
            .map_err(|text| Failure::usage(&text))?;
        if let Some(key) = &self.tls_key {
            let metadata = fs::metadata(key);
            if metadata.is_ok_and(|metadata| super::settings::is_open_to_all(&metadata)) {
                super::settings::warn_of_open_file(key, "a private key");
            }
        }
        self.secure(settings);
        Ok(())
    }

    #[cfg(feature = "tls")]
    fn secure(self, settings: &mut ClientSettings) {
        settings.tls.ca_files = self.tls_ca;
        settings.tls.system_roots = self.system_roots;
        #[cfg(feature = "tls-bundled-roots")]
        {
            settings.tls.bundled_roots = self.tls_bundled_roots;
        }
        let pair = self.tls_cert.zip(self.tls_key);
        settings.tls.client_certificate =
            pair.map(|(file, key)| redlatch::ClientCertificate { file, key });
    }

    /// There are no settings then: `check` has refused them.
    #[cfg(not(feature = "tls"))]
    fn secure(self, _: &mut ClientSettings) {}
}

pub(crate) fn needs(what: &str, feature: &str) -> String {
    format!("{what} is not built into this program: build redlatch-cli with --features {feature}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "tls")]
    #[test]
    fn roots_of_an_option_replace_those_of_a_file() {
        let mut settings = ClientSettings::default();
        settings.tls.system_roots = true;
        let of_file = TlsArguments::of_file(&settings);
        let option = TlsArguments {
            tls_ca: vec![PathBuf::from("a")],
            ..TlsArguments::default()
        };
        settings.nodes = vec!["rediss://a".to_owned()];
        option
            .clone()
            .or(&of_file)
            .apply(&mut settings)
            .expect("good settings");
        assert!(settings.tls.ca_files == [Path::new("a")] && !settings.tls.system_roots);
        of_file
            .clone()
            .or(&option)
            .apply(&mut settings)
            .expect("good settings");
        assert!(settings.tls.ca_files.is_empty() && settings.tls.system_roots);
        assert!(
            of_file.check(false, TLS).is_err(),
            "nothing would be encrypted"
        );
    }

    const PLAIN: Support = Support {
        tls: false,
        bundled_roots: false,
    };
    const TLS: Support = Support {
        tls: true,
        bundled_roots: false,
    };

    fn with_ca(path: &str) -> TlsArguments {
        TlsArguments {
            tls_ca: vec![path.into()],
            ..TlsArguments::default()
        }
    }

    #[test]
    fn a_program_without_tls_says_how_it_is_built_with_it() {
        let none = TlsArguments::default();
        assert_eq!(none.check(false, PLAIN), Ok(()));
        let how = "build redlatch-cli with --features tls";
        for (tls, is_used) in [(&none, true), (&with_ca("ca"), false)] {
            let text = tls.check(is_used, PLAIN).expect_err("no TLS");
            assert!(text.ends_with(how), "{text}");
        }
        let bundled = TlsArguments {
            tls_bundled_roots: true,
            ..TlsArguments::default()
        };
        let text = bundled.check(true, TLS).expect_err("no roots");
        assert!(
            text.ends_with("redlatch-cli with --features tls-bundled-roots"),
            "{text}"
        );
    }

    #[test]
    fn a_source_names_the_roots_and_the_certificate_each_as_a_whole() {
        let pair = |cert: &str, key: &str| TlsArguments {
            tls_cert: Some(cert.into()),
            tls_key: Some(key.into()),
            ..TlsArguments::default()
        };
        let both = TlsArguments {
            tls_ca: vec!["ca".into()],
            ..pair("c", "k")
        };
        assert_eq!(with_ca("ca").or(&pair("c", "k")), both);
        assert_eq!(both.clone().or(&with_ca("other")), both);
        assert_eq!(with_ca("x").or(&both).tls_ca, [PathBuf::from("x")]);
        let bundled = TlsArguments {
            tls_bundled_roots: true,
            ..TlsArguments::default()
        };
        assert_eq!(bundled.clone().or(&with_ca("ca")), bundled);
        let cert_only = TlsArguments {
            tls_key: None,
            ..pair("c", "k")
        };
        assert_eq!(cert_only.clone().or(&pair("d", "k")), cert_only);
    }
}
