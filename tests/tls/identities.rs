//! Certificates: which are accepted, and what the error says of each that is not.

use std::slice;
use std::time::Duration;

use redlatch::error::{NodeAnswer, Phase, TlsErrorKind};
use redlatch::{Builder, Error, LockClient, NodeError, TlsSettings};
use tempfile::TempDir;

use support::certificates::{Authority, INTERNAL, Identity, Purpose};
use support::cli::Value;
use support::locks::{LIMIT, LONG, gone, take, with_long_timeout};
use support::peer::Peer;
use support::redis::Server;
use support::secret::{SECRET, shown};
use support::transport::trusting;

const FOR_ANYONE: [&str; 2] = ["--tls-auth-clients", "no"];
const FOR_KNOWN: [&str; 2] = ["--tls-auth-clients", "yes"];

/// A server with such a certificate.
#[track_caller]
fn server(purpose: Purpose) -> Server {
    Server::start_tls(&Authority::trusted().issue(purpose), &FOR_ANYONE)
}

/// Clients of this node that wait long for it.
fn settings(url: &str) -> Builder {
    LockClient::builder()
        .nodes([url])
        .restart_guard(false)
        .node_timeout(Duration::from_secs(5))
}

fn trusted() -> TlsSettings {
    TlsSettings::default().ca_file(Authority::trusted_file())
}

/// The error of the one node of this client.
#[track_caller]
fn node_error(builder: Builder) -> NodeError {
    let client = builder.build().expect("the settings are good");
    let error = client
        .try_lock("identity", LONG)
        .expect_err("the node is not used");
    shown(&error);
    let Error::NoQuorum(error) = error else {
        panic!("{error:?}")
    };
    let NodeAnswer::Failed(error) = &error.reports()[0].answer else {
        panic!("{error:?}")
    };
    for status in client.nodes() {
        assert!(!status.is_connected && !format!("{status:?}").contains(SECRET));
    }
    error.clone()
}

/// The kind of the error, and its text.
#[track_caller]
fn tls_error(builder: Builder) -> (TlsErrorKind, String) {
    match node_error(builder) {
        NodeError::Tls(error) => (error.kind, NodeError::Tls(error).to_string()),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_works(server: &Server, builder: Builder) {
    let client = builder
        .wait_for_all(true)
        .build()
        .expect("the settings are good");
    let mut guard = take(&client, "identity", LONG);
    guard.extend(LONG).expect("the node answers");
    assert_eq!(guard.release(), Ok(()));
    assert!(gone(slice::from_ref(server), "identity"));
}

#[test]
fn a_certificate_that_cannot_be_trusted_is_refused_and_the_error_says_why() {
    let cases = [
        (Purpose::Expired, TlsErrorKind::Expired, "expired"),
        (
            Purpose::NotYetValid,
            TlsErrorKind::NotYetValid,
            "not valid yet",
        ),
        (Purpose::OtherName, TlsErrorKind::WrongName, "another name"),
    ];
    for (purpose, kind, words) in cases {
        let server = server(purpose);
        let url = server.url_of(&format!("app:{SECRET}"));
        let (seen, text) = tls_error(trusting(settings(&url)));
        assert_eq!(seen, kind, "{text}");
        assert!(text.contains(words) && text.starts_with("TLS: "), "{text}");
        assert_eq!(server.command(&["DBSIZE"]), Value::Integer(0));
    }
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused_and_one_of_a_named_authority_is_accepted() {
    let other = Authority::new("of someone else");
    let server = Server::start_tls(&other.issue(Purpose::Server), &FOR_ANYONE);
    let (kind, text) = tls_error(trusting(settings(&server.url())));
    assert_eq!(kind, TlsErrorKind::UnknownCa, "{text}");
    assert!(text.contains("CA"), "{text}");
    // The system's roots, too, do not include it.
    if let Ok(client) = settings(&server.url()).build() {
        assert!(client.try_lock("identity", LONG).is_err());
    }
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("other.crt");
    std::fs::write(&file, other.pem()).expect("it can be written");
    assert_works(
        &server,
        settings(&server.url()).tls(TlsSettings::default().ca_file(&file)),
    );
    // Both at once.
    assert_works(
        &server,
        settings(&server.url()).tls(trusted().ca_file(&file)),
    );
}

#[test]
fn the_name_to_verify_is_the_host_or_the_one_that_the_url_names() {
    let usual = server(Purpose::Server);
    let localhost = usual.url().replace("127.0.0.1", "localhost");
    assert_works(&usual, trusting(settings(&localhost)));
    let named = |server: &Server, name: &str| format!("{}?server_name={name}", server.url());
    assert_works(&usual, trusting(settings(&named(&usual, INTERNAL))));
    let (kind, text) = tls_error(trusting(settings(&named(&usual, "redis-2.internal"))));
    assert_eq!(kind, TlsErrorKind::WrongName, "{text}");
    let other = server(Purpose::OtherName);
    assert_works(
        &other,
        trusting(settings(&named(&other, "another.internal"))),
    );
    assert_works(&other, trusting(settings(&named(&other, "192.0.2.7"))));
}

/// The settings with this client certificate, whose files are in `folder`.
fn showing(builder: Builder, folder: &TempDir, identity: &Identity) -> Builder {
    let (certificate, key) = identity.write_to(folder.path(), "client");
    builder.tls(trusted().client_certificate(certificate, key))
}

/// The versions of TLS, as redis-server names them. In 1.3, a server refuses a client after the
/// handshake is over for the client.
const VERSIONS: [&str; 2] = ["TLSv1.2", "TLSv1.3"];

#[test]
fn a_server_that_wants_a_client_certificate_gets_it_or_the_error_says_so() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let usual = Authority::trusted().issue(Purpose::Server);
    for version in VERSIONS {
        let wanting = [FOR_KNOWN, ["--tls-protocols", version]].concat();
        let server = Server::start_tls(&usual, &wanting);
        // Several times, because the server's alert may arrive together with the end.
        for _ in 0..20 {
            let url = server.url_of(&format!("app:{SECRET}"));
            let (kind, text) = tls_error(trusting(settings(&url)));
            assert_eq!(
                kind,
                TlsErrorKind::ClientCertificateRequired,
                "{version}: {text}"
            );
            assert!(text.contains("client certificate"), "{text}");
        }
        let client = Authority::trusted().issue(Purpose::Client);
        assert_works(&server, showing(settings(&server.url()), &folder, &client));
    }
}

#[test]
fn a_client_certificate_that_the_server_refuses_is_reported() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let usual = Authority::trusted().issue(Purpose::Server);
    let strangers = Authority::new("of someone else").issue(Purpose::Client);
    for version in VERSIONS {
        let wanting = [FOR_KNOWN, ["--tls-protocols", version]].concat();
        let server = Server::start_tls(&usual, &wanting);
        for _ in 0..20 {
            let builder = showing(settings(&server.url()), &folder, &strangers);
            let (kind, text) = tls_error(builder);
            assert_eq!(
                kind,
                TlsErrorKind::ClientCertificateRefused,
                "{version}: {text}"
            );
        }
    }
}

#[test]
fn a_server_that_asks_for_a_client_certificate_works_with_and_without_one() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let usual = Authority::trusted().issue(Purpose::Server);
    let server = Server::start_tls(&usual, &["--tls-auth-clients", "optional"]);
    assert_works(&server, trusting(settings(&server.url())));
    let client = Authority::trusted().issue(Purpose::Client);
    assert_works(&server, showing(settings(&server.url()), &folder, &client));
}

#[test]
fn a_plain_server_behind_a_tls_url_is_reported() {
    let server = server(Purpose::Server);
    for _ in 0..3 {
        // The plain port of the same server. It waits for a line's end, and the first message of
        // TLS begins with a zero, behind which Redis looks for none.
        let url = format!("rediss://app:{SECRET}@127.0.0.1:{}", server.port());
        let builder = trusting(settings(&url)).node_timeout(Duration::from_secs(1));
        let builder = builder.connect_timeout(Duration::from_secs(1));
        let error = node_error(builder);
        assert_eq!(error, NodeError::TimedOut(Phase::Securing));
        assert!(error.to_string().contains("does not speak TLS"), "{error}");
    }
}

#[test]
fn a_server_that_answers_without_tls_is_reported() {
    let peers = [
        Peer::start(|talk| {
            let _ = talk.read_some();
            talk.send(b"-ERR unknown command\r\n");
        }),
        Peer::http(),
        Peer::ssh(),
    ];
    for peer in &peers {
        let url = format!("rediss://app:{SECRET}@127.0.0.1:{}", peer.port());
        let (kind, text) = tls_error(trusting(settings(&url)));
        assert_eq!(kind, TlsErrorKind::NotTls, "{text}");
        assert!(text.contains("redis://"), "{text}");
        // It ends a call that would wait for the lock.
        let client = trusting(settings(&url))
            .build()
            .expect("the settings are good");
        let waited = client.request("identity").ttl(LONG).try_lock_for(LIMIT);
        assert!(matches!(waited, Err(Error::NoQuorum(_))));
    }
}

#[test]
fn a_tls_server_behind_a_plain_url_is_reported() {
    let server = server(Purpose::Server);
    for _ in 0..20 {
        let url = format!("redis://app:{SECRET}@127.0.0.1:{}", server.secure_port());
        let text = shown(&node_error(settings(&url)));
        assert!(text.contains("rediss://"), "{text}");
    }
}

#[test]
fn clients_with_and_without_tls_share_locks() {
    let server = server(Purpose::Server);
    let over_tls = trusting(settings(&server.url()))
        .build()
        .expect("the settings are good");
    let plain = format!("redis://127.0.0.1:{}", server.port());
    let plain = with_long_timeout([plain])
        .build()
        .expect("the settings are good");
    let guard = take(&over_tls, "shared", LONG);
    assert!(
        plain
            .try_lock("shared", LONG)
            .expect("the node answers")
            .is_none()
    );
    assert_eq!(guard.release(), Ok(()));
    let guard = take(&plain, "shared", LONG);
    assert!(
        over_tls
            .try_lock("shared", LONG)
            .expect("the node answers")
            .is_none()
    );
    drop(guard);
}
