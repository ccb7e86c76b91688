//! The rights that registers need on the nodes, and prefixes that keep groups apart.

use redlatch::status::{NoVote, RegisterMembership};
use redlatch::{LockClient, RegisterError};
use support::cli::Value;
use support::locks::with_long_timeout;
use support::redis::Server;
use support::servers::Servers;

use super::{read, set};

const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// A client of a user who may do nothing but this, with these keys.
fn client_with(servers: &[Server], keys: &str, rights: &str) -> LockClient {
    let url = |server: &Server| {
        let user = format!("ACL SETUSER app on >pw resetkeys {keys} -@all {rights}");
        let user: Vec<_> = user.split_whitespace().collect();
        assert_eq!(server.command(&user), Value::ok());
        server.url_of("app:pw")
    };
    let builder = with_long_timeout(servers.iter().map(url)).key_prefix("app:");
    builder.build().expect("the settings are good")
}

/// As the page of settings lists them.
const NEEDED: &str = "+get +set +del +info +evalsha +eval";

#[test]
fn the_rights_that_are_listed_suffice() {
    support::needs!(RightsToSubcommands);
    let mut servers = Servers::start_with(3, &DURABLE);
    let rights = format!("{NEEDED} +config|get +time +scan");
    let client = client_with(&servers, "~app:*", &rights);
    client.registers().form(false).unwrap();
    let register = client.register("a").unwrap();
    set(&register, "one");
    assert_eq!(read(&register), Some("one".to_owned()));
    let listed: Result<Vec<_>, _> = client.registers().list("*").collect();
    assert_eq!(listed.unwrap().len(), 1);
    // A restart of a durable node, which takes no more than a look.
    servers[0].stop();
    servers[0].restart();
    let again = client_with(&servers, "~app:*", &rights);
    assert_eq!(read(&again.register("a").unwrap()), Some("one".to_owned()));
    servers[1].command(&["FLUSHALL"]);
    assert_eq!(again.registers().repair().unwrap().len(), 1);
    again.register("a").unwrap().delete().unwrap();
    assert_eq!(again.registers().sweep().unwrap().left, 0);
}

#[test]
fn without_a_right_what_the_page_of_settings_says_does_not_work() {
    support::needs!(RightsToSubcommands);
    let servers = Servers::start_with(3, &DURABLE);
    let without_config = client_with(&servers, "~app:*", &format!("{NEEDED} +time"));
    let error = without_config.registers().form(false).unwrap_err();
    assert!(matches!(error, RegisterError::NotDurable { .. }), "{error}");
    assert_eq!(
        servers[0].command(&["DBSIZE"]),
        Value::Integer(0),
        "it was refused"
    );
    let without_time = client_with(&servers, "~app:*", &format!("{NEEDED} +config|get"));
    let error = without_time.registers().form(false).unwrap_err();
    assert!(matches!(error, RegisterError::NoQuorum { .. }), "{error}");
    let client = client_with(&servers, "~app:*", &format!("{NEEDED} +time +config|get"));
    client.registers().form(false).unwrap();
    let register = client.register("a").unwrap();
    set(&register, "one");
    assert_eq!(read(&register), Some("one".to_owned()));
    let error = client.registers().list("*").next().unwrap().unwrap_err();
    assert!(matches!(error, RegisterError::NoQuorum { .. }), "{error}");
    // Keys that are another's: nothing is written there.
    let foreign = client_with(&servers, "~other:*", &format!("{NEEDED} +time +config|get"));
    foreign
        .register("a")
        .unwrap()
        .change(|_| Some(vec![1]))
        .unwrap_err();
    let client = client_with(&servers, "~app:*", &format!("{NEEDED} +time +config|get"));
    assert_eq!(read(&client.register("a").unwrap()), Some("one".to_owned()));
}

#[test]
fn a_repair_without_a_right_says_what_the_node_has_said() {
    support::needs!(RightsToSubcommands);
    let servers = Servers::start_with(3, &DURABLE);
    let all = format!("{NEEDED} +config|get +time +scan");
    let client = client_with(&servers, "~app:*", &all);
    client.registers().form(false).unwrap();
    set(&client.register("a").unwrap(), "one");
    servers[0].command(&["FLUSHALL"]);
    for right in ["scan", "time", "set"] {
        let client = client_with(&servers, "~app:*", &all.replace(&format!("+{right}"), ""));
        let error = client.registers().repair().unwrap_err();
        assert!(
            matches!(error, RegisterError::NotRepaired { .. }),
            "{right}: {error:?}"
        );
        assert!(
            error.to_string().contains("can't run this command"),
            "{right}: {error}"
        );
    }
    assert_eq!(
        client_with(&servers, "~app:*", &all)
            .registers()
            .repair()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn without_info_the_right_that_lacks_is_named() {
    support::needs!(RightsToSubcommands);
    let servers = Servers::start_with(3, &DURABLE);
    let without = |right: &str| {
        let rights = format!("{NEEDED} +time +config|get").replace(right, "");
        client_with(&servers, "~app:*", &rights)
    };
    let refused = without("+info ")
        .registers()
        .form(true)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("lacks the right +info"), "{refused}");
    assert_eq!(
        servers[0].command(&["DBSIZE"]),
        Value::Integer(0),
        "it was refused"
    );
    without("nothing").registers().form(false).unwrap();
    let blind = without("+info ");
    let register = blind.register("a").unwrap();
    for error in [
        register.read().unwrap_err(),
        register.change(|_| Some(vec![1])).unwrap_err(),
        blind.registers().repair().unwrap_err(),
        blind
            .registers()
            .trust(&servers[0].url_of("app:pw"))
            .unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(
            text.contains("lacks the right +info") && !text.contains("forgotten"),
            "{text}"
        );
    }
    let votes: Vec<_> = blind.nodes().iter().map(|node| node.registers).collect();
    assert_eq!(
        votes,
        [Some(RegisterMembership::NoVote(NoVote::RunNotTold)); 3]
    );
}

#[test]
fn groups_with_different_prefixes_are_independent() {
    let servers = Servers::start(3);
    let client = |prefix: &str| {
        let builder = with_long_timeout(servers.iter().map(Server::url)).key_prefix(prefix);
        builder.build().unwrap()
    };
    // Together with their prefixes, both registers have the same name.
    let none = client("");
    let billing = client("billing:");
    none.registers().form(true).unwrap();
    billing.registers().form(true).unwrap();
    let whole = none.register("billing:a").unwrap();
    let part = billing.register("a").unwrap();
    set(&whole, "of none");
    set(&part, "of billing");
    assert_eq!(read(&whole), Some("of none".to_owned()));
    let listed = |client: &LockClient| {
        let all: Result<Vec<_>, _> = client.registers().list("*").collect();
        all.unwrap()
            .iter()
            .map(|it| it.name().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (listed(&none), listed(&billing)),
        (vec!["billing:a".into()], vec!["a".into()])
    );
    // What one group repairs is its own: the other's node keeps what it has, and its state.
    servers[2].command(&["FLUSHALL"]);
    assert_eq!(billing.registers().repair().unwrap().len(), 1);
    let before = servers[2].command(&["GET", "billing::redlatch:register:a"]);
    assert_ne!(before, Value::Null);
    assert_eq!(none.registers().repair().unwrap().len(), 1);
    assert_eq!(
        servers[2].command(&["GET", "billing::redlatch:register:a"]),
        before
    );
    let is_member = |client: &LockClient| {
        client.nodes()[2]
            .registers
            .as_ref()
            .is_some_and(RegisterMembership::is_member)
    };
    assert!(is_member(&none) && is_member(&billing));
    assert_eq!(read(&part), Some("of billing".to_owned()));
    part.delete().unwrap();
    assert_eq!(read(&whole), Some("of none".to_owned()));
}
