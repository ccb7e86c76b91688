//! Settings in the configuration file of a service, behind the feature `serde`.

use super::Builder;
#[cfg(feature = "tls")]
use super::TlsSettings;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
#[cfg(feature = "tls")]
use std::path::PathBuf;
use std::time::Duration;

/// The settings of a client in a service's configuration file, of any format that serde reads. It
/// becomes a [`Builder`].
///
/// ```
/// # use redlatch::{Builder, ClientSettings, LockClient};
/// # use serde::de::{Deserialize, Deserializer, Error};
/// /// What is in a service's file, beside its other settings.
/// #[derive(serde::Deserialize)]
/// struct Configuration {
///     locks: ClientSettings,
/// }
///
/// /// `file` is of `toml`, `serde_json` or another crate.
/// fn client<'a, D: Deserializer<'a>>(file: D) -> Result<LockClient, D::Error> {
///     let configuration = Configuration::deserialize(file)?;
///     Builder::from(configuration.locks).build().map_err(D::Error::custom)
/// }
/// ```
///
/// | field | is |
/// |---|---|
/// | `nodes` | the [URLs](Builder::nodes): a list, or a text if there is one |
/// | `nodes_from_env` | a [variable](Builder::nodes_from_env) with more, also for passwords |
/// | `node_timeout`, `connect_timeout`, `max_ttl`, `max_hold` | a duration |
/// | `min_validity`, `waiter_lease`, `fencing_expiry` | a duration |
/// | `session_timeout`, with the feature `zookeeper` | a duration |
/// | `key_prefix`, `client_name` | a text |
/// | `restart_guard`, `wait_for_all`, `io_thread`, `queue` | true or false |
/// | `drift_factor` | a number |
/// | `tls`, with the feature `tls` | as below |
///
/// `tls` has the methods of [`TlsSettings`](crate::TlsSettings): `ca_files`, a list;
/// `client_certificate`, with its `file` and its `key`; and with the feature `tls-bundled-roots`
/// also `bundled_roots`.
///
/// Each is the method of this name of [`Builder`], which says what it means. What is not there has
/// its default. What a file cannot have, such as [`on_event`](Builder::on_event), is set on the
/// builder. A duration is a text with units, such as `"500ms"`, `"10s"` or `"1h 30m"`: a number
/// alone does not say what it counts. Values are checked by [`build`](Builder::build).
///
/// An unknown field is an error, and no error or `Debug` of it shows a URL. An error of the crate
/// `toml` shows the line that is wrong all the same; its `message()` does not.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientSettings {
    nodes: Urls,
    nodes_from_env: Option<String>,
    node_timeout: Option<Period>,
    connect_timeout: Option<Period>,
    #[cfg(feature = "zookeeper")]
    session_timeout: Option<Period>,
    max_ttl: Option<Period>,
    max_hold: Option<Period>,
    min_validity: Option<Period>,
    waiter_lease: Option<Period>,
    fencing_expiry: Option<Period>,
    key_prefix: Option<String>,
    client_name: Option<String>,
    restart_guard: Option<bool>,
    wait_for_all: Option<bool>,
    io_thread: Option<bool>,
    queue: Option<bool>,
    drift_factor: Option<f64>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
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

impl From<ClientSettings> for Builder {
    fn from(settings: ClientSettings) -> Self {
        let mut builder = Self::new().nodes(settings.nodes.0);
        macro_rules! set {
            ($($name:ident),+ $(,)?) => {$(
                if let Some(value) = settings.$name {
                    builder = builder.$name(value.into());
                }
            )+};
        }
        if let Some(variable) = settings.nodes_from_env {
            builder = builder.nodes_from_env(&variable);
        }
        set!(node_timeout, connect_timeout, max_ttl, max_hold, min_validity);
        set!(waiter_lease, fencing_expiry, restart_guard, wait_for_all, io_thread, queue);
        set!(drift_factor);
        #[cfg(feature = "zookeeper")]
        set!(session_timeout);
        if let Some(prefix) = settings.key_prefix {
            builder = builder.key_prefix(prefix);
        }
        if let Some(name) = settings.client_name {
            builder = builder.client_name(name);
        }
        #[cfg(feature = "tls")]
        if let Some(tls) = settings.tls {
            builder = builder.tls(tls.into());
        }
        builder
    }
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

/// URLs may have passwords in them.
impl fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSettings")
            .field("nodes", &self.nodes.0.len())
            .field("key_prefix", &self.key_prefix)
            .finish_non_exhaustive()
    }
}

/// A list of URLs, or one. No error has what is there.
#[derive(Clone, Default)]
struct Urls(Vec<String>);

impl<'de> Deserialize<'de> for Urls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UrlsVisitor)
    }
}

struct UrlsVisitor;

impl<'de> Visitor<'de> for UrlsVisitor {
    type Value = Urls;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of URLs")
    }

    fn visit_str<E: Error>(self, url: &str) -> Result<Urls, E> {
        Ok(Urls(vec![url.to_owned()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, urls: A) -> Result<Urls, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(urls)).map(Urls)
    }
}

/// A duration as people write it.
#[derive(Clone, Copy)]
struct Period(Duration);

impl From<Period> for Duration {
    fn from(period: Period) -> Self {
        period.0
    }
}

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
