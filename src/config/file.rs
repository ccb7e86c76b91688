//! Reading settings from the configuration file of a service, behind the feature `serde`.

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::time::Duration;

/// A list of URLs, or one. No error has what is there.
pub(super) fn urls<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    from.deserialize_any(UrlsVisitor)
}

pub(super) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.into_iter().collect())
}

pub(super) fn period<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    Ok(Option::<Period>::deserialize(from)?.map(|Period(period)| period))
}

pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map(String::into_bytes))
}

/// What is there, or the default in place of null.
#[cfg(feature = "tls")]
pub(super) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

struct UrlsVisitor;

impl<'de> Visitor<'de> for UrlsVisitor {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of URLs")
    }

    fn visit_str<E: Error>(self, url: &str) -> Result<Self::Value, E> {
        Ok(vec![url.to_owned()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, urls: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(urls))
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
        parsed
            .map(Period)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}
