//! Reading settings from the configuration file of a service, behind the feature `serde`.

use super::nodes::NodeSource;
#[cfg(feature = "tls")]
use super::tls::TlsSettings;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
#[cfg(feature = "tls")]
use std::path::PathBuf;
use std::time::Duration;

/// A list of URLs, or one. No error has what is there.
pub(super) fn urls<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<NodeSource>, D::Error> {
    from.deserialize_any(UrlsVisitor)
}

pub(super) fn period<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    Ok(Option::<Period>::deserialize(from)?.map(|Period(period)| period))
}

pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map(String::into_bytes))
}

#[cfg(feature = "tls")]
pub(super) fn tls<'de, D: Deserializer<'de>>(from: D) -> Result<TlsSettings, D::Error> {
    Ok(Option::<Tls>::deserialize(from)?.map_or_else(TlsSettings::default, TlsSettings::from))
}

struct UrlsVisitor;

impl<'de> Visitor<'de> for UrlsVisitor {
    type Value = Vec<NodeSource>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of URLs")
    }

    fn visit_str<E: Error>(self, url: &str) -> Result<Self::Value, E> {
        Ok(vec![NodeSource::Url(url.to_owned())])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, urls: A) -> Result<Self::Value, A::Error> {
        let urls: Vec<String> = Vec::deserialize(SeqAccessDeserializer::new(urls))?;
        Ok(urls.into_iter().map(NodeSource::Url).collect())
    }
}

#[cfg(feature = "tls")]
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tls {
    ca_files: Vec<PathBuf>,
    #[cfg(feature = "tls-bundled-roots")]
    bundled_roots: bool,
    client_certificate: Option<Certificate>,
}

#[cfg(feature = "tls")]
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Certificate {
    file: PathBuf,
    key: PathBuf,
}

#[cfg(feature = "tls")]
impl From<Tls> for TlsSettings {
    fn from(tls: Tls) -> Self {
        let mut settings = tls.ca_files.into_iter().fold(Self::default(), Self::ca_file);
        #[cfg(feature = "tls-bundled-roots")]
        if tls.bundled_roots {
            settings = settings.bundled_roots();
        }
        if let Some(Certificate { file, key }) = tls.client_certificate {
            settings = settings.client_certificate(file, key);
        }
        settings
    }
}

/// A duration as people write it.
#[derive(Clone, Copy)]
struct Period(Duration);

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(PeriodVisitor)
    }
}

struct PeriodVisitor;

impl Visitor<'_> for PeriodVisitor {
    type Value = Period;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration with its unit, such as \"500ms\", \"10s\" or \"1h 30m\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Period, E> {
        let parsed = humantime::parse_duration(text);
        parsed.map(Period).map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}
