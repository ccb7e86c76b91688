//! Durations as people write and read them: `500ms`, `30s`, `1h30m`.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::time::Duration;

/// The units, in nanoseconds.
const UNITS: [(&str, u128); 7] = [
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Reads numbers with units, such as `1m30s`. A number without a unit counts seconds, as in
/// `timeout` and `flock`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || "not a duration such as 500ms, 30s, 5m or 1h30m".to_owned();
    if text.is_empty() {
        return Err(wrong());
    }
    let mut rest = text;
    let mut nanos = 0_u128;
    while !rest.is_empty() {
        let is_digit = |c: char| c.is_ascii_digit() || c == '.';
        let (number, behind) = rest.split_at(rest.find(|c| !is_digit(c)).unwrap_or(rest.len()));
        let (unit, next) = behind.split_at(behind.find(is_digit).unwrap_or(behind.len()));
        let scale = match unit {
            "" if text == number => 1_000_000_000,
            _ => {
                UNITS
                    .iter()
                    .find(|(name, _)| *name == unit)
                    .ok_or_else(wrong)?
                    .1
            }
        };
        nanos = nanos.saturating_add(scaled(number, scale).ok_or_else(wrong)?);
        rest = next;
    }
    let seconds = u64::try_from(nanos / 1_000_000_000).map_err(|_| "too long".to_owned())?;
    let nanos = u32::try_from(nanos % 1_000_000_000).map_err(|_| wrong())?;
    Ok(Duration::new(seconds, nanos))
}

/// One that a file of settings has, as the library reads those of a client: units are not left out,
/// and spaces may stand between the parts.
pub(crate) fn in_file<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else {
        return Ok(None);
    };
    let time = humantime::parse_duration(&text).map(Some);
    time.map_err(|_| D::Error::custom("expected a duration with its unit, such as '30s'"))
}

/// A decimal number of units. Digits behind those that a nanosecond needs are dropped.
fn scaled(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: u128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut nanos = whole.checked_mul(scale)?;
    let mut digit = scale;
    for character in fraction.chars() {
        digit /= 10;
        nanos = nanos.checked_add(digit * u128::from(character.to_digit(10)?))?;
    }
    Some(nanos)
}

/// At most two units: `850 µs`, `1.2 ms`, `12 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn show(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let micros = duration.as_micros();
    match seconds {
        0 if micros < 1_000 => format!("{micros} µs"),
        0 if micros < 10_000 => format!("{:.1} ms", duration.as_secs_f64() * 1e3),
        0 => format!("{} ms", micros / 1_000),
        1..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// As a number for JSON and for metrics: in milliseconds at the most exact.
pub(crate) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_count_seconds_without_one() {
        for (text, millis) in [
            ("30s", 30_000),
            ("30", 30_000),
            ("0", 0),
            ("1.5", 1_500),
            (".5s", 500),
            ("500ms", 500),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
            ("1m0.25s", 60_250),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("7us"), Ok(Duration::from_micros(7)));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "", "s", "-1s", "1 s", "1x", "1s2", "1.2.3s", ".", "1e3s", "1M", "½s", "١s",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("999999999999999999999999d").is_err());
        assert!(parse(&"9".repeat(60)).is_err());
    }

    #[test]
    fn durations_are_shown_with_at_most_two_units() {
        let millis = Duration::from_millis;
        for (duration, text) in [
            (Duration::from_micros(850), "850 µs"),
            (Duration::from_micros(1_250), "1.2 ms"),
            (millis(12), "12 ms"),
            (millis(12_900), "12 s"),
            (millis(200_000), "3 min 20 s"),
            (millis(7_500_000), "2 h 5 min"),
            (Duration::from_secs(3 * 86_400 + 7_200), "3 d 2 h"),
        ] {
            assert_eq!(show(duration), text);
        }
    }
}
