//! URLs of nodes, URLs that are refused, and passwords that appear in no text.

use super::*;

fn tcp(host: &str, port: u16) -> Address {
    Address::Tcp {
        host: host.to_owned(),
        port,
    }
}

fn unix(path: &str) -> Address {
    Address::Unix { path: path.into() }
}

#[test]
fn a_url_is_refused_where_there_is_no_such_connection() {
    let refused = |url: &str, unix_sockets, tls| {
        parse(url)
            .unwrap()
            .usable_with(Support {
                unix_sockets,
                tls,
                groups: true,
            })
            .err()
    };
    assert_eq!(
        refused("unix:///run/r.sock", false, true),
        Some(NodeUrlErrorKind::NoUnixSockets)
    );
    assert_eq!(refused("unix:///run/r.sock", true, false), None);
    for url in [
        "rediss://h",
        "valkeys://h",
        "RedisS://user:pass@h/2?server_name=a",
    ] {
        assert_eq!(
            refused(url, true, false),
            Some(NodeUrlErrorKind::NoTlsFeature)
        );
        assert_eq!(refused(url, false, true), None);
    }
    assert_eq!(refused("redis://h", false, false), None);
    assert_eq!(NodeUrl::parse("unix:///run/r.sock").is_ok(), cfg!(unix));
    assert_eq!(NodeUrl::parse("rediss://h").is_ok(), cfg!(feature = "tls"));
}

#[cfg(not(feature = "groups"))]
#[test]
fn a_group_is_refused_with_the_name_of_the_feature() {
    for url in [
        "redis+sentinel://s1,s2/locks",
        "redis+cluster://h1,h2?nodes=3",
        "rediss-sentinel://s1/locks",
        "redis://h?failover=true",
        "redis://h?failover=true&replicas=2",
    ] {
        let error = NodeUrl::parse(url).expect_err(url);
        assert_eq!(*error.kind(), NodeUrlErrorKind::NoGroupsFeature, "{url}");
        assert!(error.to_string().contains("feature `groups`"), "{error}");
    }
    assert!(NodeUrl::parse("redis://h?failover=false").is_ok());
}

#[test]
fn the_name_to_verify_is_the_host_or_an_option() {
    for (url, name, shown) in [
        ("redis://h", None, "redis://h:6379/0"),
        (
            "rediss://H.example",
            Some("h.example"),
            "rediss://h.example:6379/0",
        ),
        ("valkeys://h.:1", Some("h"), "rediss://h.:1/0"),
        ("rediss://[::1]/3", Some("::1"), "rediss://[::1]:6379/3"),
        (
            "rediss://10.0.0.1?server_name=A.b",
            Some("a.b"),
            "rediss://10.0.0.1:6379/0?server_name=a.b",
        ),
        (
            "rediss://h?server_name=%61.&db=1",
            Some("a"),
            "rediss://h:6379/1?server_name=a",
        ),
        ("rediss://h?server_name=h.", Some("h"), "rediss://h:6379/0"),
        (
            "rediss://h?server_name=10.0.0.2",
            Some("10.0.0.2"),
            "rediss://h:6379/0?server_name=10.0.0.2",
        ),
        (
            "rediss://h?server_name=::1",
            Some("::1"),
            "rediss://h:6379/0?server_name=::1",
        ),
        (
            "rediss://h?server_name=[::1]",
            Some("::1"),
            "rediss://h:6379/0?server_name=::1",
        ),
        (
            "rediss://[fe80::1%25eth0]",
            Some("fe80::1"),
            "rediss://[fe80::1%25eth0]:6379/0",
        ),
        ("rediss://u:p@h", Some("h"), "rediss://u:***@h:6379/0"),
        ("unix:///r", None, "unix:///r?db=0"),
    ] {
        let url = parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(url.server_name(), name, "{url}");
        assert_eq!(url.to_string(), shown);
        assert_eq!(parse(shown).unwrap().to_string(), shown);
    }
}

/// A URL, where it leads, its user, password and database, and how it is shown.
const READ: &str = "
redis://10.0.0.1                   | 10.0.0.1 6379 | -   | -   | 0 | redis://10.0.0.1:6379/0
redis://h:1/                       | h 1           | -   | -   | 0 | redis://h:1/0
redis://h:65535/15                 | h 65535       | -   | -   | 15| redis://h:65535/15
redis://h?db=2                     | h 6379        | -   | -   | 2 | redis://h:6379/2
redis://h/?db=2                    | h 6379        | -   | -   | 2 | redis://h:6379/2
valkey://h                         | h 6379        | -   | -   | 0 | redis://h:6379/0
Valkey://user:pass@h/2             | h 6379        | user| pass| 2 | redis://user:***@h:6379/2
redis://h?                         | h 6379        | -   | -   | 0 | redis://h:6379/0
REDIS://User:@H                    | h 6379        | User| -   | 0 | redis://User:@h:6379/0
redis://user:pass@h/2              | h 6379        | user| pass| 2 | redis://user:***@h:6379/2
redis://:pass@h                    | h 6379        | -   | pass| 0 | redis://h:6379/0
redis://user:@h                    | h 6379        | user| -   | 0 | redis://user:@h:6379/0
redis://:@h                        | h 6379        | -   | -   | 0 | redis://h:6379/0
redis://@h                         | h 6379        | -   | -   | 0 | redis://h:6379/0
redis://[::1]                      | ::1 6379      | -   | -   | 0 | redis://[::1]:6379/0
redis://[fe80::1%25eth0]:7         | fe80::1%eth0 7| -   | -   | 0 | redis://[fe80::1%25eth0]:7/0
redis://[0::1]:7/3                 | ::1 7         | -   | -   | 3 | redis://[::1]:7/3
redis://%75ser:@h                  | h 6379        | user| -   | 0 | redis://user:@h:6379/0
redis://%40:@h                     | h 6379        | @   | -   | 0 | redis://%40:@h:6379/0
unix:///run/r.sock                 | /run/r.sock   | -   | -   | 0 | unix:///run/r.sock?db=0
unix:///r?db=1                     | /r            | -   | -   | 1 | unix:///r?db=1
unix:///a@b                        | /a@b          | -   | -   | 0 | unix:///a%40b?db=0
unix:///a%3F%20b                   | /a? b         | -   | -   | 0 | unix:///a%3F%20b?db=0
unix://user:pass@/r                | /r            | user| pass| 0 | unix://user:***@/r?db=0
unix:///r?user=user&password=p%61ss| /r            | user| pass| 0 | unix://user:***@/r?db=0
";

#[test]
fn urls_are_read_and_shown() {
    for row in READ.lines().filter(|row| !row.is_empty()) {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let [url, place, user, password, database, shown] = columns[..] else {
            panic!("{row}");
        };
        let address = match place.split_once(' ') {
            Some((host, port)) if !place.starts_with('/') => tcp(host, port.parse().unwrap()),
            _ => unix(place),
        };
        let given = |word: &str| (word != "-").then(|| word.as_bytes().to_vec());
        let url = NodeUrl::parse(url).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(*url.address(), address, "{url}");
        assert_eq!(url.user(), given(user).as_deref(), "{url}");
        assert_eq!(url.password(), given(password).as_deref(), "{url}");
        assert_eq!(url.database().to_string(), database, "{url}");
        assert_eq!(url.to_string(), shown, "{url}");
        let again = NodeUrl::parse(shown).unwrap();
        assert!(again.same_server(&url), "{url}");
        assert_eq!(again.to_string(), shown, "{url}");
    }
}

#[test]
fn what_is_no_node_is_refused_with_the_reason() {
    use NodeUrlErrorKind as Kind;
    let unknown = |name: &str| Kind::UnknownOption(name.to_owned());
    for (url, kind) in [
        ("", Kind::MissingScheme),
        ("\"redis://host\"", Kind::Quoted),
        ("'redis://host'", Kind::Quoted),
        ("host:6379", Kind::MissingScheme),
        ("/run/redis.sock", Kind::MissingScheme),
        ("redis:host", Kind::MissingScheme),
        ("://host", Kind::MissingScheme),
        (" redis://host", Kind::MissingScheme),
        ("http://host", Kind::UnknownScheme("http".to_owned())),
        ("zk://h", Kind::NoZooKeeperFeature),
        ("ZKS://h1,h2", Kind::NoZooKeeperFeature),
        ("redis://", Kind::EmptyHost),
        ("redis:///0", Kind::EmptyHost),
        ("redis://:6379", Kind::EmptyHost),
        ("redis://user:pass@", Kind::EmptyHost),
        ("redis://a,b", Kind::SeveralHosts),
        ("redis://a%2Eb", Kind::BadHost),
        ("redis://host ", Kind::BadHost),
        ("redis://::1", Kind::BadHost),
        ("redis://[::1", Kind::BadHost),
        ("redis://h\r\nFLUSHALL\r\n", Kind::ControlCharacter),
        ("redis://h\0", Kind::ControlCharacter),
        ("redis://:a\u{7f}@h", Kind::ControlCharacter),
        ("redis://h:0", Kind::BadPort),
        ("redis://h:65536", Kind::BadPort),
        ("redis://h:", Kind::BadPort),
        ("redis://h:+1", Kind::BadPort),
        ("redis://h:port", Kind::BadPort),
        ("redis://h/x", Kind::BadDatabase),
        ("redis://h/-1", Kind::BadDatabase),
        ("redis://h/0/", Kind::BadDatabase),
        ("redis://h/4294967296", Kind::BadDatabase),
        ("redis://h?db=", Kind::BadDatabase),
        ("redis://h?db", Kind::BadDatabase),
        ("redis://h?DB=5", unknown("")),
        ("redis://h?timeout=5", unknown("timeout")),
        ("redis://h?password=x", unknown("password")),
        ("redis://h?db=1&", unknown("")),
        ("redis://h/1?db=1", Kind::RepeatedOption("db")),
        ("redis://h?db=1&db=1", Kind::RepeatedOption("db")),
        ("redis://h#0", Kind::Fragment),
        ("redis://:a%@h", Kind::BadPercentEscape),
        ("redis://:a%zz@h", Kind::BadPercentEscape),
        ("redis://:a/b@h", Kind::UnescapedCredentials),
        ("redis://:a?b@h", Kind::UnescapedCredentials),
        ("unix://", Kind::BadPath),
        ("unix:///", Kind::BadPath),
        ("unix:///a%00b", Kind::BadPath),
        ("unix:///a%ff", Kind::BadPath),
        ("unix:///a%f", Kind::BadPercentEscape),
        ("unix://run/redis.sock", Kind::UnexpectedHost),
        ("unix://user@host/r", Kind::UnexpectedHost),
        ("unix://a:@/r?user=b", Kind::RepeatedOption("user")),
        ("unix://a@/r", Kind::AmbiguousCredentials),
        ("redis://user@h", Kind::AmbiguousCredentials),
        ("redis://%75ser@h", Kind::AmbiguousCredentials),
        ("unix:///r?pass=b", unknown("pass")),
    ] {
        let error = NodeUrl::parse(url).expect_err(url);
        assert_eq!(*error.kind(), kind, "{url}");
    }
}

#[test]
fn what_is_no_node_over_tls_is_refused_with_the_reason() {
    use NodeUrlErrorKind as Kind;
    for (url, kind) in [
        ("rediss://", Kind::EmptyHost),
        ("rediss://h:0", Kind::BadPort),
        ("rediss://h?server_name=", Kind::BadServerName),
        ("rediss://h?server_name", Kind::BadServerName),
        ("rediss://h?server_name=a%20b", Kind::BadServerName),
        ("rediss://h?server_name=a:6379", Kind::BadServerName),
        ("rediss://h?server_name=%ff", Kind::BadServerName),
        (
            "rediss://h?server_name=a&server_name=a",
            Kind::RepeatedOption("server_name"),
        ),
        (
            "rediss://h?insecure=true",
            Kind::UnknownOption("insecure".to_owned()),
        ),
        ("rediss://h#insecure", Kind::Fragment),
        (
            "redis://h?server_name=a",
            Kind::UnknownOption("server_name".to_owned()),
        ),
        (
            "unix:///r?server_name=a",
            Kind::UnknownOption("server_name".to_owned()),
        ),
    ] {
        assert_eq!(parse(url).expect_err(url), kind, "{url}");
    }
}

#[test]
fn an_error_says_which_url_and_why() {
    let text = |url| NodeUrl::parse(url).unwrap_err().to_string();
    assert_eq!(
        text("redis://user:secret@10.0.0.1:70000"),
        "bad node url 'redis://***@10.0.0.1:***': port is not a number from 1 to 65535"
    );
    assert_eq!(
        NodeUrlError::new("rediss://u:secret@10.0.0.1", NodeUrlErrorKind::NoTlsFeature).to_string(),
        "bad node url 'rediss://***@10.0.0.1': TLS needs the feature `tls` of redlatch: cargo add \
         redlatch --features tls"
    );
}

#[test]
fn the_schemes_of_servers_are_known_in_every_build() {
    for text in ["redis://a", "VALKEYS://a", "unix://", "zk://a,b", "Zks://"] {
        assert!(has_scheme(text), "{text}");
        assert_eq!(
            is_ensemble(text),
            text.to_lowercase().starts_with("zk"),
            "{text}"
        );
    }
    for text in ["zk", "zk:a", "zkx://a", "http://a", "a,zk://b", ""] {
        assert!(!has_scheme(text), "{text}");
        assert!(!is_ensemble(text), "{text}");
    }
}

#[test]
fn the_same_server_is_recognised_under_other_spellings() {
    let same = |left, right| {
        NodeUrl::parse(left)
            .unwrap()
            .same_server(&NodeUrl::parse(right).unwrap())
    };
    assert!(same(
        "redis://a.example",
        "redis://user:pass@A.Example.:6379/5"
    ));
    assert!(same("redis://[::1]", "redis://[0:0:0:0:0:0:0:1]:6379"));
    assert!(same("redis://10.0.0.1", "redis://[::ffff:10.0.0.1]"));
    assert!(same("redis://10.0.0.1", "redis://10.0.0.1."));
    let plain = parse("redis://a").unwrap();
    let tls = parse("rediss://A:6379").unwrap();
    assert!(plain.same_server(&tls));
    assert!(tls.same_server(&parse("rediss://a?server_name=b").unwrap()));
    assert!(same(
        "unix:///run/r.sock",
        "unix://user:@//run/./r.sock?db=1"
    ));
    assert!(!same("redis://a", "redis://a:6380"));
    assert!(!same("redis://a", "redis://b"));
    assert!(!same("unix:///a", "unix:///b"));
    assert!(!same("unix:///a", "redis://a"));
    // These may or may not be one server; only the servers' `run_id` can show it.
    assert!(!same("redis://localhost", "redis://127.0.0.1"));
    assert!(!same("redis://127.0.0.1", "redis://[::1]"));
}

#[test]
fn no_password_is_ever_shown() {
    let raw = [
        "p@ss:w/ord?#%",
        "hunter2",
        "hunter2@",
        "hun?ter2",
        "hun/ter2",
        "hunter2%",
        "hun:ter2",
    ];
    for password in raw {
        let encoded = percent_encode(password.as_bytes(), b"");
        for written in [password, &encoded] {
            for url in [
                format!("redis://:{written}@host"),
                format!("redis://user:{written}@host:6380/2"),
                format!("redis://user:{written}@host:port"),
                format!("redis://user:{written}@:80"),
                format!("redis://user:{written}"),
                format!("rediss://user:{written}@host"),
                format!("user:{written}@host"),
                format!("unix://:{written}@/run/redis.sock"),
                format!("unix://:{written}@host/run/redis.sock"),
                format!("unix:///run/redis.sock?password={written}"),
                format!("redis://host?password={written}"),
                // In the place of a user, and of no other password.
                format!("redis://{}@host", written.replace(':', "")),
                format!("unix://{}@/run/redis.sock", written.replace(':', "")),
            ] {
                let (display, debug) = match NodeUrl::parse(&url) {
                    Ok(url) => {
                        assert_eq!(url.password(), Some(password.as_bytes()), "{url}");
                        (url.to_string(), format!("{url:?}"))
                    }
                    Err(error) => (error.to_string(), format!("{error:?}")),
                };
                for piece in ["hun", "ter2", "p@ss", "ss:w", "w/ord", "ord", "p%40ss"] {
                    // The word "password" itself may appear.
                    let shown = format!("{display} {debug}").replace("password", "");
                    assert!(!shown.contains(piece), "{url} shows {piece}: {shown}");
                }
            }
        }
    }
}

#[test]
fn every_byte_survives_percent_encoding() {
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    assert_eq!(
        percent_decode(&percent_encode(&bytes, b"")),
        Some(bytes.clone())
    );
    assert_eq!(percent_decode(&percent_encode(&bytes, b"/:")), Some(bytes));
    assert_eq!(percent_encode("p@ß/".as_bytes(), b"/"), "p%40%C3%9F/");
}

#[test]
fn percent_escapes_are_complete_or_refused() {
    assert_eq!(percent_decode("a%2fb%2F"), Some(b"a/b/".to_vec()));
    assert_eq!(percent_decode("a+b"), Some(b"a+b".to_vec()));
    for text in ["%", "%2", "a%", "%%20", "%g0", "%0g", "% 1", "%+1", "%-1"] {
        assert_eq!(percent_decode(text), None, "{text}");
    }
}

#[cfg(feature = "groups")]
#[test]
fn groups_are_named_by_those_who_know_their_master() {
    for (url, shown) in [
        (
            "redis+sentinel://s1,s2:7,s3/locks",
            "redis+sentinel://s1:26379,s2:7,s3:26379/locks/0",
        ),
        (
            "VALKEY+sentinel://s1/a%2Fb/2",
            "redis+sentinel://s1:26379/a%2Fb/2",
        ),
        (
            "redis-sentinel://s1/3?sentinelMasterId=m",
            "redis+sentinel://s1:26379/m/3",
        ),
        (
            "redis+sentinel://u:p@s1/m?replicas=2&sentinel_password=q",
            "redis+sentinel://u:***@s1:26379/m/0?replicas=2",
        ),
        (
            "redis+cluster://h1,h2",
            "redis+cluster://h1:6379,h2:6379?slots=2730,8192,13653",
        ),
        (
            "redis-cluster://h1/0?nodes=1",
            "redis+cluster://h1:6379?slots=8192",
        ),
        (
            "valkey+cluster://:p@h1?slots=5,7",
            "redis+cluster://h1:6379?slots=5,7",
        ),
        ("redis://h?failover=true", "redis://h:6379/0?failover=true"),
        (
            "redis://h/1?failover=true&replicas=4",
            "redis://h:6379/1?failover=true&replicas=4",
        ),
        ("redis://h?failover=false", "redis://h:6379/0"),
    ] {
        let url = NodeUrl::parse(url).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(url.to_string(), shown);
        assert_eq!(url.failover().is_some(), shown != "redis://h:6379/0");
        assert!(
            !format!("{url:?} {:?}", url.failover()).contains("\"q"),
            "no password"
        );
        let again = NodeUrl::parse(shown).unwrap();
        assert!(again.same_server(&url), "{url}");
        assert_eq!(again.to_string(), shown);
    }
    let nodes = NodeUrl::parse("redis+cluster://h1?nodes=5")
        .unwrap()
        .nodes();
    let slots = [1_638, 4_915, 8_192, 11_468, 14_745];
    let shown = slots.map(|slot| format!("redis+cluster://h1:6379?slots={slot}"));
    assert_eq!(
        nodes.iter().map(NodeUrl::to_string).collect::<Vec<_>>(),
        shown
    );
    assert!(nodes[1..].iter().all(|node| !node.same_server(&nodes[0])));
}

#[cfg(feature = "groups")]
#[test]
fn what_is_no_group_is_refused_with_the_reason() {
    use NodeUrlErrorKind as Kind;
    for (url, kind) in [
        ("redis+sentinel://s1", Kind::NoGroup),
        ("redis+sentinel://s1/", Kind::NoGroup),
        ("redis+sentinel:///m", Kind::EmptyHost),
        ("redis+sentinel://s1,/m", Kind::EmptyHost),
        ("redis+sentinel://s1/m,s2/m", Kind::UnescapedComma),
        ("redis+sentinel://s1/m/x", Kind::BadDatabase),
        ("redis+sentinel://s1/m?replicas=1", Kind::BadReplicas),
        (
            "redis+sentinel://s1/m?nodes=3",
            Kind::UnknownOption("nodes".to_owned()),
        ),
        ("redis+cluster://h1/1", Kind::ClusterDatabase),
        ("redis+cluster://h1?nodes=6", Kind::BadNodes),
        ("redis+cluster://h1?slots=16384", Kind::BadSlots),
        ("redis+cluster://h1?slots=5,5", Kind::BadSlots),
        ("redis+cluster://h1?slots=5,", Kind::BadSlots),
        (
            "redis+cluster://h1?slots=5&nodes=1",
            Kind::RepeatedOption("slots"),
        ),
        ("redis+cluster://user@h1", Kind::AmbiguousCredentials),
        ("redis://h?replicas=2", Kind::ReplicasAlone),
        ("redis://h?failover=yes", Kind::BadFailover),
        (
            "unix:///r?failover=true",
            Kind::UnknownOption("failover".to_owned()),
        ),
    ] {
        let error = NodeUrl::parse(url).expect_err(url);
        assert_eq!(*error.kind(), kind, "{url}");
    }
}
