//! Every public error, with each thing that can be inside it: what a chain of them says.

use super::*;
use crate::node::NodeKind;
use crate::node_url::NodeUrl;
use std::error::Error as StdError;
use std::fmt;
use std::io;

const SECOND: Duration = Duration::from_secs(1);

/// What an error of the system may have been caused by.
#[derive(Debug)]
struct Root;

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the root of it")
    }
}

impl StdError for Root {}

/// An error of the system that has a cause.
#[derive(Debug)]
struct Caused;

impl fmt::Display for Caused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no more descriptors")
    }
}

impl StdError for Caused {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&Root)
    }
}

fn no_quorum() -> NoQuorum {
    let server = ServerError::parse(b"LOADING the dataset", None);
    let errors = [
        NodeError::Server(server),
        NodeError::Protocol(ProtocolError::TooDeep),
    ];
    let report = |error| {
        let answer = NodeAnswer::Failed(error);
        NodeReport::new("redis://a:6379/0".into(), NodeKind::Server, answer)
    };
    NoQuorum::new(errors.into_iter().map(report).collect())
}

fn lost(reason: LossReason) -> LockLost {
    LockLost::new(*b"orders:42", reason)
}

fn no_poll(error: io::Error) -> ConfigError {
    ConfigError::System(Arc::new(error))
}

fn configuration() -> Vec<Box<dyn StdError>> {
    let bad = NodeUrl::parse("redis://").expect_err("there is no host");
    vec![
        Box::new(bad.kind().clone()),
        Box::new(bad.clone()),
        Box::new(ConfigError::NodeList {
            variable: "LOCK_NODES".to_owned(),
            error: NodeListError::Url(bad.clone()),
        }),
        Box::new(NodeListError::NotSet),
        Box::new(ConfigError::Url(bad)),
        Box::new(ConfigError::NoNodes),
        Box::new(ConfigError::TooManyNodes(65)),
        Box::new(ConfigError::Duplicate {
            first: "a".to_owned(),
            second: "b".to_owned(),
        }),
        Box::new(ConfigError::Setting {
            name: "max_ttl",
            reason: "too long".to_owned(),
        }),
        Box::new(no_poll(io::Error::from(io::ErrorKind::OutOfMemory))),
        Box::new(no_poll(io::Error::other(Caused))),
    ]
}

fn locking() -> Vec<Box<dyn StdError>> {
    let ttl = SECOND;
    let took = SECOND;
    let (first, second): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
    let no_thread = SpawnError::new(&io::Error::other(Caused));
    vec![
        Box::new(ResourceError::Empty),
        Box::new(Error::Resource(ResourceError::Reserved)),
        Box::new(Error::Resource(ResourceError::SharedSet)),
        Box::new(ResourceError::Permits {
            count: 1_025,
            most: 1_024,
        }),
        Box::new(TtlError::TooLong { ttl, max_ttl: ttl }),
        Box::new(Error::Ttl(TtlError::TooShort { ttl, shortest: ttl })),
        Box::new(no_quorum()),
        Box::new(Error::NoQuorum(no_quorum())),
        Box::new(Error::TooSlow { took, ttl }),
        Box::new(Error::SameServer { first, second }),
        Box::new(Error::HeldByThisThread),
        Box::new(Error::NoEntropy),
        Box::new(no_thread.clone()),
        Box::new(Error::Spawn(no_thread)),
        Box::new(Error::TooManyKeptAlive {
            kept: 2,
            most: 2,
            ttl,
            round: took,
        }),
        Box::new(Error::Cancelled),
        Box::new(Error::OtherProcess),
    ]
}

fn the_others() -> Vec<Box<dyn StdError>> {
    let server = ServerError::parse(b"NOPERM no", None);
    vec![
        Box::new(Error::Ttl(TtlError::BeyondHold {
            ttl: SECOND,
            max_hold: SECOND,
        })),
        Box::new(lost(LossReason::OtherProcess)),
        Box::new(lost(LossReason::Gone)),
        Box::new(Error::Lost(lost(LossReason::Expired))),
        Box::new(Error::HeldTooLong {
            held: SECOND,
            max_hold: SECOND,
        }),
        Box::new(Error::Resource(ResourceError::None)),
        Box::new(Error::TooManyHeld),
        Box::new(Error::NotResumable(NotResumable::Session)),
        Box::new(Error::NotResumable(NotResumable::SharedByThreads)),
        Box::new(Error::LockToken(LockTokenError)),
        Box::new(Error::NotALock {
            key: b"key"[..].into(),
            reason: NotALock::NoTtl,
            urls: vec!["a".into()],
        }),
        Box::new(NodeError::OtherProcess),
        Box::new(server.clone()),
        Box::new(NodeError::Server(server)),
        Box::new(ProtocolError::TooDeep),
        Box::new(NodeError::Protocol(ProtocolError::TooDeep)),
        Box::new(NodeError::TimedOut(Phase::Answering)),
    ]
}

/// The texts of an error and all its causes, as programs print them.
fn chain(error: &dyn StdError) -> Vec<String> {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    texts
}

#[test]
fn nothing_is_said_twice_in_a_chain_of_errors() {
    for error in configuration()
        .into_iter()
        .chain(locking())
        .chain(the_others())
    {
        let chain = chain(&*error);
        for (index, text) in chain.iter().enumerate() {
            assert!(!text.is_empty() && !text.ends_with('.'), "{text:?}");
            assert!(
                !chain[..index].iter().any(|before| before.contains(text)),
                "{chain:?}"
            );
        }
    }
}

#[test]
fn an_error_says_all_of_what_is_inside_it_but_its_cause() {
    let error = no_poll(io::Error::other(Caused));
    assert_eq!(
        chain(&error),
        [
            "the sockets' poll or I/O thread could not be created: no more descriptors",
            "the root of it"
        ]
    );
    let error = Error::NoQuorum(no_quorum());
    assert!(error.to_string().contains("LOADING the dataset"), "{error}");
    assert_eq!(chain(&error).len(), 1);
}

#[test]
fn a_loss_names_the_lock_and_shows_it_on_one_line() {
    let text = lost(LossReason::Expired).to_string();
    assert_eq!(
        text,
        "the lock \"orders:42\" is lost: its validity has passed"
    );
    let odd = LockLost::new(*b"a\n\xff", LossReason::OtherProcess);
    let here = "is not held here: the process that forked this one acquired it";
    assert_eq!(odd.to_string(), format!("the lock \"a\\n\\xff\" {here}"));
    assert_eq!(odd.resource(), *b"a\n\xff");
}

#[test]
fn what_main_prints_of_an_error_is_its_text_with_its_causes_below() {
    let expected = "the sockets' poll or I/O thread could not be created: no more \
                    descriptors\n\nCaused by:\n    the root of it";
    let error = no_poll(io::Error::other(Caused));
    assert_eq!(format!("{error:?}"), expected);
    assert_eq!(format!("{:?}", Error::from(error)), expected);
    let mut returned = 0;
    for error in locking()
        .into_iter()
        .chain(the_others())
        .filter(|error| is_returned(&**error))
    {
        assert_eq!(
            format!("{error:?}"),
            error.to_string(),
            "none of these has a cause"
        );
        returned += 1;
    }
    assert!(returned > 15, "{returned}");
}

/// Is this an error that a function of the crate returns, and not a part of one?
fn is_returned(error: &(dyn StdError + 'static)) -> bool {
    error.is::<Error>() || error.is::<LockLost>() || error.is::<SpawnError>()
}

#[test]
fn every_error_converts_into_one_and_keeps_its_text_and_its_cause() {
    let server = NodeError::Server(ServerError::parse(b"NOPERM no", None));
    let spawn = SpawnError::new(&io::Error::other(Caused));
    let token = crate::fencing::FencingToken::try_from(0_u64).unwrap_err();
    let pairs: Vec<(String, Error)> = vec![
        (
            ConfigError::NoNodes.to_string(),
            ConfigError::NoNodes.into(),
        ),
        (
            RegisterError::NotFormed.to_string(),
            RegisterError::NotFormed.into(),
        ),
        (
            lost(LossReason::Gone).to_string(),
            lost(LossReason::Gone).into(),
        ),
        (no_quorum().to_string(), no_quorum().into()),
        (server.to_string(), server.into()),
        (spawn.to_string(), spawn.into()),
        (token.to_string(), token.into()),
    ];
    for (text, combined) in pairs {
        assert_eq!(chain(&combined), [text]);
    }
    let combined = Error::from(no_poll(io::Error::other(Caused)));
    assert_eq!(chain(&combined)[1..], ["the root of it"]);
}

#[test]
fn of_an_ensemble_no_majority_of_reports_is_meant() {
    let error = NodeError::TimedOut(Phase::Connecting);
    let answers = [NodeAnswer::Failed(error), NodeAnswer::NotAsked];
    let report = |answer| NodeReport::new("zk://a:2181/locks".into(), NodeKind::Ensemble, answer);
    let error = NoQuorum::new(answers.into_iter().map(report).collect());
    let expected = "no quorum: no server could be asked, or none has a majority: \
                    zk://a:2181/locks: timed out connecting; zk://a:2181/locks: not asked";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert_eq!(
        (error.needed(), error.answered(), error.quarantine()),
        (1, 0, None)
    );
}
