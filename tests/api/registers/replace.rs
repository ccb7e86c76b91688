//! Servers in the place of others, and hosts that still name those.

use std::thread;
use std::time::Duration;

use redlatch::{LockClient, NodeStatus, RegisterError};
use support::cli::Value;
use support::eventually;
use support::locks::{LIMIT, with_long_timeout};
use support::proxy::{Mode, proxied};
use support::redis::Server;

use super::repair::{flush, repaired, replaced, shown, some, with_third};
use super::{client, formed, read, set};

fn is_member(node: &NodeStatus) -> bool {
    node.registers.is_some_and(|it| it.is_member())
}

/// A repair gives the third node no place, since this server has it.
#[track_caller]
fn is_refused_for(client: &LockClient, third: &Server, holder: &Server) {
    let Err(RegisterError::PlaceTaken { url, members }) = client.registers().repair() else {
        panic!("the place is another server's")
    };
    assert_eq!(*url, *shown(third));
    let members: Vec<String> = members.iter().map(|it| format!("redis://{it}")).collect();
    assert_eq!(members, [shown(holder)]);
}

#[test]
fn a_server_that_was_replaced_has_no_vote_any_more() {
    let (servers, old) = formed(3);
    let register = old.register("a").unwrap();
    set(&register, "one");
    let fresh = Server::start(&[]);
    let new = with_third(&servers, &fresh);
    is_refused_for(&new, &fresh, &servers[2]);
    assert_eq!(replaced(&new, &servers[2]), [shown(&fresh)]);
    let same = new.register("a").unwrap();
    assert_eq!(read(&same), some("one"));
    // The old server is there, and says the old value.
    set(&same, "two");
    assert_eq!(read(&register), some("two"), "by the other two");
    flush(&servers[1]);
    assert!(matches!(
        register.read(),
        Err(RegisterError::NoQuorum { .. })
    ));
    let error = client(&servers).register("a").unwrap().read().unwrap_err();
    assert!(error.to_string().contains("another epoch"), "{error}");
    assert_eq!(read(&same), some("two"));
    set(&same, "three");
    assert_eq!(repaired(&new), [shown(&servers[1])]);
    assert_eq!(read(&register), some("three"));
    // The old server does no harm, and can come back in the place of another.
    let urls = [servers[0].url(), servers[2].url(), fresh.url()];
    let back = with_long_timeout(urls).build().unwrap();
    assert_eq!(replaced(&back, &servers[1]), [shown(&servers[2])]);
    assert_eq!(read(&back.register("a").unwrap()), some("three"));
}

#[test]
fn a_repair_from_a_host_with_the_old_list_does_not_throw_out_the_new_server() {
    let (servers, old) = formed(3);
    set(&old.register("a").unwrap(), "one");
    let fresh = Server::start(&[]);
    let new = with_third(&servers, &fresh);
    assert_eq!(replaced(&new, &servers[2]), [shown(&fresh)]);
    // With its mark, without one, and half way through a repair that ended there.
    for words in [
        None,
        Some("FLUSHALL"),
        Some("SET :redlatch:member redlatch_1_joining_18_run_"),
    ] {
        if let Some(words) = words {
            let words: Vec<_> = words
                .split(' ')
                .map(|word| word.replace('_', " "))
                .collect();
            servers[2].command(&words);
        }
        is_refused_for(&client(&servers), &servers[2], &fresh);
        is_refused_for(&old, &servers[2], &fresh);
    }
    assert!(new.nodes().iter().all(is_member));
    // Who names the new server has it replaced, and no other one.
    assert!(old.registers().replace(&servers[1].url()).is_err());
    assert_eq!(replaced(&old, &fresh), [shown(&servers[2])]);
    assert_eq!(read(&old.register("a").unwrap()), some("one"));
}

#[test]
fn a_repair_that_began_before_a_replacement_does_not_undo_it() {
    let (servers, first) = formed(3);
    set(&first.register("a").unwrap(), "one");
    flush(&servers[2]);
    // From the moment when it has had the node join, it takes longer than the replacement.
    let (proxies, urls) = proxied(&servers[..2]);
    let delay = Duration::from_millis(100);
    proxies.iter().for_each(|it| {
        it.set(Mode::Delay {
            to_server: delay,
            to_client: delay,
        });
    });
    let urls = [urls[0].clone(), urls[1].clone(), servers[2].url()];
    let slow = with_long_timeout(urls).build().unwrap();
    let fresh = Server::start(&[]);
    let new = with_third(&servers, &fresh);
    let ended = thread::scope(|scope| {
        let repair = scope.spawn(|| slow.registers().repair());
        let mark = || servers[2].command(&["GET", ":redlatch:member"]);
        let joins = || matches!(mark(), Value::Bulk(it) if it.starts_with(b"redlatch 1 joining"));
        assert!(eventually(LIMIT, joins));
        replaced(&new, &servers[2]);
        repair.join().unwrap()
    });
    // Where this thread was late, it had ended before.
    use RegisterError::{NotRepaired, PlaceTaken};
    let is_expected = matches!(ended, Ok(_) | Err(PlaceTaken { .. } | NotRepaired { .. }));
    assert!(is_expected, "{ended:?}");
    assert!(new.nodes().iter().all(is_member));
}
