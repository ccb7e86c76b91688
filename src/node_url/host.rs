//! Host names and IP addresses: one form for each, so that equal ones can be seen to be equal.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::borrow::Cow;

use super::{NodeUrlErrorKind, number};

/// The longest host name, and the longest part of one between two dots (RFC 1035).
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;

/// A host in its canonical form, and its port, or `default` if it has none.
pub(super) fn with_port(text: &str, default: u16) -> Result<(String, u16), NodeUrlErrorKind> {
    let (host, port) = split_port(text)?;
    let port = match port {
        None => default,
        Some(port) => number(port)
            .filter(|port| *port != 0)
            .ok_or(NodeUrlErrorKind::BadPort)?,
    };
    Ok((normalize(host)?, port))
}

/// Splits `host:port`. The brackets around an IPv6 address stay with the host.
fn split_port(text: &str) -> Result<(&str, Option<&str>), NodeUrlErrorKind> {
    let after_brackets = text.rfind(']').map_or(0, |bracket| bracket + 1);
    let Some(colon) = text[after_brackets..].find(':') else {
        return Ok((text, None));
    };
    let (host, port) = text.split_at(after_brackets + colon);
    if port[1..].contains(':') {
        // An IPv6 address without brackets: it is not clear where it ends.
        return Err(NodeUrlErrorKind::BadHost);
    }
    Ok((host, Some(&port[1..])))
}

/// A name in lower case, or an IP address in its canonical form and without brackets. A link-local
/// address has the zone behind it, as `fe80::1%eth0`.
fn normalize(host: &str) -> Result<String, NodeUrlErrorKind> {
    if host.is_empty() {
        return Err(NodeUrlErrorKind::EmptyHost);
    }
    if let Some(address) = host.strip_prefix('[') {
        let address = address.strip_suffix(']').ok_or(NodeUrlErrorKind::BadHost)?;
        let (address, zone) = split_zone(address)?;
        let address: Ipv6Addr = address.parse().map_err(|_| NodeUrlErrorKind::BadHost)?;
        if let Some(zone) = zone {
            return Ok(format!("{address}%{zone}"));
        }
        // ::ffff:10.0.0.1 is how IPv6 sockets spell 10.0.0.1.
        return Ok(IpAddr::V6(address).to_canonical().to_string());
    }
    let relative = without_dot(host);
    if let Ok(address) = relative.parse::<Ipv4Addr>() {
        return Ok(address.to_string());
    }
    if is_name(relative) {
        Ok(host.to_ascii_lowercase())
    } else {
        Err(NodeUrlErrorKind::BadHost)
    }
}

/// Splits `address%zone`. In a URL the `%` is written `%25` (RFC 6874), and often as it is.
fn split_zone(text: &str) -> Result<(&str, Option<&str>), NodeUrlErrorKind> {
    let Some((address, zone)) = text.split_once('%') else {
        return Ok((text, None));
    };
    let zone = zone.strip_prefix("25").unwrap_or(zone);
    let is_unreserved = zone
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    if zone.is_empty() || !is_unreserved {
        return Err(NodeUrlErrorKind::BadHost);
    }
    Ok((address, Some(zone)))
}

/// A host, normalized by `normalize`, as it is written in a URL.
pub(super) fn in_url(host: &str) -> Cow<'_, str> {
    // Only an IPv6 address contains a colon.
    if host.contains(':') {
        Cow::Owned(format!("[{}]", host.replace('%', "%25")))
    } else {
        Cow::Borrowed(host)
    }
}

/// Whether two hosts, normalized by `normalize`, are certainly the same. A dot at the end only
/// marks a name as complete.
pub(super) fn is_same(left: &str, right: &str) -> bool {
    without_dot(left) == without_dot(right)
}

/// A name or address that a certificate is to be valid for, in the form of [`normalize`] and
/// without a dot at its end. An IPv6 address needs no brackets, since no port follows it.
pub(super) fn server_name(text: &str) -> Option<String> {
    let name = match text.parse::<Ipv6Addr>() {
        Ok(_) => normalize(&format!("[{text}]")),
        Err(_) => normalize(text),
    };
    name.ok().map(|name| certified(&name).to_owned())
}

/// What a certificate of this host is valid for: the name without a dot at its end, or the address
/// without its zone, which means something on this machine only.
pub(super) fn certified(host: &str) -> &str {
    without_dot(host.split_once('%').map_or(host, |(address, _)| address))
}

/// The host without the dot that marks a name as complete.
fn without_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_MAX && name.split('.').all(is_label) && !ends_in_number(name)
}

fn is_label(label: &str) -> bool {
    let mut bytes = label.bytes();
    (1..=LABEL_MAX).contains(&label.len())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// `127.1`, `2130706433` and `0x7f.1` are not names: resolvers take them for addresses. One that
/// was meant has four decimal parts and has been recognised as such.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    last.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_have_one_form() {
        for (host, normal) in [
            ("10.0.0.1", "10.0.0.1"),
            ("10.0.0.1.", "10.0.0.1"),
            ("[::1]", "::1"),
            ("[2001:DB8:0:0::1]", "2001:db8::1"),
            ("[fe80::1%eth0]", "fe80::1%eth0"),
            ("[FE80:0::1%25eth0.100]", "fe80::1%eth0.100"),
            ("[fe80::1%2]", "fe80::1%2"),
            ("[::ffff:10.0.0.1]", "10.0.0.1"),
            ("Redis-1.Example.COM", "redis-1.example.com"),
            ("redis.example.com.", "redis.example.com."),
            ("my_node", "my_node"),
            ("1a", "1a"),
            ("1.example", "1.example"),
        ] {
            assert_eq!(normalize(host), Ok(normal.to_owned()), "{host}");
        }
        assert_eq!(certified("redis.example.com."), "redis.example.com");
        assert_eq!(certified("fe80::1%eth0"), "fe80::1");
        assert!(is_same("redis.example.com", "redis.example.com."));
        assert!(!is_same("redis.example.com", "redis.example.org"));
    }

    #[test]
    fn what_is_neither_is_refused() {
        assert_eq!(normalize(""), Err(NodeUrlErrorKind::EmptyHost));
        let long = ["a"; 128].join(".");
        for host in [
            ".",
            "a..b",
            ".a",
            "a b",
            "a/b",
            "ü",
            "a%41",
            "[",
            "[]",
            "[::1",
            "::1",
            "[::1]]",
            "]",
            "[1.2.3.4]",
            "[fe80::1%]",
            "[fe80::1%25]",
            "[fe80::1%eth 0]",
            "[fe80::1%eth0%1]",
            "[%eth0]",
            "127.1",
            "2130706433",
            "0x7f.1",
            "1.2.3.256",
            "1.2.3.04",
            "a.0x7F",
            "0X",
            &"a".repeat(64),
            &long,
        ] {
            assert_eq!(normalize(host), Err(NodeUrlErrorKind::BadHost), "{host}");
        }
    }

    #[test]
    fn the_port_is_what_follows_the_colon_outside_brackets() {
        assert_eq!(split_port("host"), Ok(("host", None)));
        assert_eq!(split_port("host:1"), Ok(("host", Some("1"))));
        assert_eq!(split_port("host:"), Ok(("host", Some(""))));
        assert_eq!(split_port("[::1]"), Ok(("[::1]", None)));
        assert_eq!(split_port("[::1]:1"), Ok(("[::1]", Some("1"))));
        assert_eq!(split_port("[::1]x:1"), Ok(("[::1]x", Some("1"))));
        assert_eq!(split_port("::1"), Err(NodeUrlErrorKind::BadHost));
        assert_eq!(split_port("host:1:2"), Err(NodeUrlErrorKind::BadHost));
    }
}
