//! URLs of ensembles, URLs that are refused, and passwords that appear in no text.

use super::*;

#[test]
fn urls_are_read_and_shown() {
    for (url, shown, servers) in [
        ("zk://h", "zk://h:2181", &["zk://h:2181"][..]),
        (
            "ZK://H1,h2:7/",
            "zk://h1:2181,h2:7",
            &["zk://h1:2181", "zk://h2:7"],
        ),
        (
            "zk://10.0.0.1,[0::1],[fe80::1%25eth0]:7/a/b",
            "zk://10.0.0.1:2181,[::1]:2181,[fe80::1%25eth0]:7/a/b",
            &[
                "zk://10.0.0.1:2181/a/b",
                "zk://[::1]:2181/a/b",
                "zk://[fe80::1%25eth0]:7/a/b",
            ],
        ),
        ("zk://h?layout=curator", "zk://h:2181", &["zk://h:2181"]),
        (
            "zk://h/a?layout=k%61zoo",
            "zk://h:2181/a?layout=kazoo",
            &["zk://h:2181/a"],
        ),
        (
            "zk://h/%61%2Cb%20c:%C3%BC",
            "zk://h:2181/a%2Cb%20c%3A%C3%BC",
            &["zk://h:2181/a%2Cb%20c%3A%C3%BC"],
        ),
        (
            "zk://u:p@h1,h2/a",
            "zk://***:***@h1:2181,h2:2181/a",
            &["zk://h1:2181/a", "zk://h2:2181/a"],
        ),
        ("zk://@h", "zk://h:2181", &["zk://h:2181"]),
        ("zk://:@h", "zk://h:2181", &["zk://h:2181"]),
        (
            "zks://h1.,h2",
            "zks://h1.:2181,h2:2181",
            &["zks://h1.:2181", "zks://h2:2181"],
        ),
        (
            "zks://h1,h2?server_name=Zk.test",
            "zks://h1:2181,h2:2181?server_name=zk.test",
            &["zks://h1:2181", "zks://h2:2181"],
        ),
        (
            "zks://h/a?server_name=::1&layout=kazoo",
            "zks://h:2181/a?layout=kazoo&server_name=::1",
            &["zks://h:2181/a"],
        ),
    ] {
        let read = parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(read.to_string(), shown, "{url}");
        assert_eq!(format!("{read:?}"), format!("EnsembleUrl({shown})"));
        let names: Vec<_> = read
            .hosts
            .iter()
            .map(|server| read.server(server))
            .collect();
        assert_eq!(names, servers, "{url}");
        let again = parse(shown).unwrap();
        assert_eq!(again.to_string(), shown);
        assert_eq!((&again.root, again.layout), (&read.root, read.layout));
        for name in servers {
            assert_eq!(parse(name).unwrap().to_string(), *name);
        }
    }
}

#[test]
fn a_url_has_all_that_a_connection_and_a_lock_need() {
    let url = parse("zks://us%3Aer:p%40:ss%2C@h1,10.0.0.1:7/a%2Fb?layout=kazoo").unwrap();
    assert_eq!(url.credentials.as_deref().unwrap()[..], b"us:er:p@:ss,"[..]);
    assert_eq!((url.root.path(), url.layout), ("/a/b", Layout::Kazoo));
    let [first, second] = &url.hosts[..] else {
        panic!("two hosts: {url}")
    };
    assert_eq!(
        first.address(),
        Address::Tcp {
            host: "h1".to_owned(),
            port: 2181
        }
    );
    assert_eq!(
        second.address(),
        Address::Tcp {
            host: "10.0.0.1".to_owned(),
            port: 7
        }
    );
    assert_eq!((&*first.written, &*second.written), ("h1", "10.0.0.1:7"));
    let url = parse("zk://h").unwrap();
    assert_eq!((url.root.path(), url.layout), ("/", Layout::Curator));
    assert_eq!(url.credentials, None);
}

#[test]
fn a_certificate_is_for_the_host_or_for_the_name_in_the_option() {
    let names = |url: &str| {
        let url = parse(url).unwrap();
        url.hosts
            .iter()
            .map(|server| server.server_name.clone())
            .collect::<Vec<_>>()
    };
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(names("zk://h1,h2"), [None, None]);
    assert_eq!(names("zks://H1.,[::1]:7"), [some("h1"), some("::1")]);
    assert_eq!(names("zks://h1,h2?server_name=a"), [some("a"), some("a")]);
}

#[test]
fn what_is_no_ensemble_is_refused_with_the_reason() {
    use NodeUrlErrorKind as Kind;
    let root = |reason: &str| Kind::BadRoot {
        reason: reason.to_owned(),
    };
    let element = root("an element of the path is empty, '.' or '..'");
    for (url, kind) in [
        ("h1,h2", Kind::MissingScheme),
        ("redis://h", Kind::UnknownScheme("redis".to_owned())),
        ("zk://", Kind::EmptyHost),
        ("zk:///locks", Kind::EmptyHost),
        ("zk://h1,", Kind::EmptyHost),
        ("zk://h1,,h2", Kind::EmptyHost),
        ("zk://h1, h2", Kind::BadHost),
        ("zk://::1", Kind::BadHost),
        ("zk://[::1", Kind::BadHost),
        ("zk://u:p@", Kind::EmptyHost),
        ("zk://h1,h2:0", Kind::BadPort),
        ("zk://h1:,h2", Kind::BadPort),
        ("zk://h\n", Kind::ControlCharacter),
        ("zk://h#a", Kind::Fragment),
        ("zk://u:p/@h", Kind::UnescapedCredentials),
        ("zk://u:p?@h", Kind::UnescapedCredentials),
        ("zk://h/a@b", Kind::UnescapedCredentials),
        ("zk://user@h", Kind::AmbiguousCredentials),
        ("zk://user:@h", Kind::IncompleteCredentials),
        ("zk://:password@h", Kind::IncompleteCredentials),
        ("zk://u:%@h", Kind::BadPercentEscape),
        ("zk://u:p,q@h", Kind::UnescapedComma),
        ("zk://u:p@h1,u:p@h2", Kind::UnescapedComma),
        ("zk://h1/locks,h2/locks", Kind::UnescapedComma),
        ("zk://h1?layout=kazoo,h2", Kind::UnescapedComma),
        ("zk://h/a/", element.clone()),
        ("zk://h//", element.clone()),
        ("zk://h/a//b", element.clone()),
        ("zk://h/a/%2E%2E", element),
        (
            "zk://h/zookeeper",
            root("/zookeeper belongs to the servers"),
        ),
        (
            "zk://h/zookeeper/quota",
            root("/zookeeper belongs to the servers"),
        ),
        ("zk://h/a%00", root("the path has the character U+0000")),
        ("zk://h/a%ff", root("the path is not UTF-8")),
        ("zk://h/a%f", Kind::BadPercentEscape),
        ("zk://h?layout=", Kind::BadLayout),
        ("zk://h?layout=Kazoo", Kind::BadLayout),
        (
            "zk://h?layout=kazoo&layout=kazoo",
            Kind::RepeatedOption("layout"),
        ),
        (
            "zk://h?server_name=a",
            Kind::UnknownOption("server_name".to_owned()),
        ),
        ("zk://h?db=1", Kind::UnknownOption("db".to_owned())),
        ("zks://h?server_name=", Kind::BadServerName),
    ] {
        assert_eq!(parse(url).expect_err(url), kind, "{url}");
    }
}

#[test]
fn a_url_over_tls_is_refused_without_the_feature() {
    let refused = |url: &str, tls| {
        parse(url)
            .unwrap()
            .usable_with(Support {
                unix_sockets: true,
                tls,
                groups: true,
            })
            .err()
    };
    assert_eq!(
        refused("zks://h", false),
        Some(NodeUrlErrorKind::NoTlsFeature)
    );
    assert_eq!(
        (refused("zks://h", true), refused("zk://h", false)),
        (None, None)
    );
    assert_eq!(EnsembleUrl::parse("zks://h").is_ok(), cfg!(feature = "tls"));
}

#[test]
fn the_same_server_is_recognised_under_other_spellings() {
    let same = |left: &str, right: &str| {
        let left = parse(left).unwrap();
        let right = parse(right).unwrap();
        left.hosts[0].same_server(&right.hosts[0])
    };
    assert!(same("zk://a.test", "zk://u:p@A.test.:2181/x"));
    assert!(same("zk://10.0.0.1", "zks://[::ffff:10.0.0.1]"));
    assert!(!same("zk://a", "zk://a:2182"));
    assert!(!same("zk://a", "zk://b"));
}

#[test]
fn urls_of_one_ensemble_differ_in_their_hosts_alone() {
    let difference =
        |left: &str, right: &str| parse(left).unwrap().difference(&parse(right).unwrap());
    assert_eq!(
        difference("zk://u:p@a/x?layout=curator", "ZK://u:%70@b:7,c/%78"),
        None
    );
    assert_eq!(
        difference("zks://a?server_name=x", "zks://b?server_name=y"),
        None
    );
    assert_eq!(difference("zk://a/", "zk://b"), None);
    assert_eq!(difference("zk://a", "zks://a"), Some("TLS"));
    assert_eq!(
        difference("zk://u:p@a", "zk://a"),
        Some("user and password")
    );
    assert_eq!(
        difference("zk://u:p@a", "zk://u:q@a"),
        Some("user and password")
    );
    assert_eq!(difference("zk://a/x", "zk://a/y"), Some("path"));
    assert_eq!(
        difference("zk://a/x", "zk://a/x?layout=kazoo"),
        Some("layout")
    );
}

#[test]
fn no_password_is_ever_shown() {
    for password in [
        "Zq7x", "1,Zq7x", "Zq7x,h", "Zq7x@", "Zq7x/", "1/Zq7x", "Zq7x?", "Zq7x#", "%Zq7x",
    ] {
        let encoded = percent_encode(password.as_bytes(), b"");
        for written in [password, &encoded] {
            for url in [
                format!("zk://user:{written}@h"),
                format!("zk://user:{written}@h1,h2:7/locks?layout=kazoo"),
                format!("zks://user:{written}@h1,h2:x"),
                format!("zk://:{written}@h"),
                format!("zk://{}@h", written.replace(':', "")),
                format!("zk://h1,user:{written}@h2"),
                format!("zk://user:{written}@h1,user:{written}@h2/a"),
                format!("zk://user:Zq7x{written}"),
                format!("zk://h?password={written}"),
                format!("zk://h?layout={written}"),
            ] {
                let shown = match EnsembleUrl::parse(&url) {
                    Ok(url) => {
                        let names = url.hosts.iter().map(|server| url.server(server));
                        format!("{url} {url:?} {:?}", names.collect::<Vec<_>>())
                    }
                    Err(error) => format!("{error} {error:?}"),
                };
                assert!(!shown.contains("Zq7x"), "{url} shows it: {shown}");
            }
        }
    }
}
