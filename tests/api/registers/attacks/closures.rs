//! Changes that panic, are slow, or use registers themselves.

use super::setting::{append, formed, in_time, read, set};
use redlatch::RegisterError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use support::cli::Value;

#[test]
fn a_change_that_panics_makes_none_and_the_others_are_made() {
    let (_servers, client) = formed(3);
    let register = client.register("a").unwrap();
    set(&register, "-");
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..40)
            .map(|number| {
                let register = &register;
                scope.spawn(move || {
                    let change = || {
                        register.change(|value| {
                            thread::sleep(Duration::from_millis(2));
                            assert!(number % 4 > 0, "on purpose");
                            append(value, "x")
                        })
                    };
                    catch_unwind(AssertUnwindSafe(change))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let made = results
        .iter()
        .flatten()
        .filter(|result| result.is_ok())
        .count();
    let errors: Vec<&RegisterError> = results
        .iter()
        .flatten()
        .filter_map(|it| it.as_ref().err())
        .collect();
    eprintln!("{made} made, errors: {}", errors.len());
    let value = read(&register).unwrap();
    assert_eq!(value.len(), made + 1);
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn a_slow_change_does_not_keep_a_reader_of_its_client() {
    let (servers, client) = formed(3);
    let register = client.register("a").unwrap();
    set(&register, "one");
    // The nodes disagree: a read has to decide.
    let key = &b":redlatch:register:a"[..];
    let Value::Bulk(keep) = servers[0].command::<&[u8]>(&[b"GET", key]) else {
        panic!("no value")
    };
    set(&register, "two");
    servers[0].command::<&[u8]>(&[b"SET", key, &keep]);
    servers[2].pause();
    let (entered, is_entered) = channel();
    let slow = register.clone();
    let (go_on, may_go_on) = channel::<()>();
    let slow = thread::spawn(move || {
        slow.change(|value| {
            let _ = entered.send(());
            let _ = may_go_on.recv_timeout(Duration::from_secs(60));
            append(value, "!")
        })
    });
    is_entered.recv().unwrap();
    let value = in_time(move || read(&register));
    assert_eq!(value, Some("two".to_owned()));
    drop(go_on);
    slow.join().unwrap().unwrap();
}

#[test]
fn a_change_that_uses_its_register_ends() {
    let (_servers, client) = formed(3);
    let register = client.register("a").unwrap();
    set(&register, "one");
    in_time(move || {
        let inner = register.clone();
        let change = || {
            register.change(|value| {
                let _ = inner.change(|value| append(value, "inner"));
                append(value, "outer")
            })
        };
        let _ = catch_unwind(AssertUnwindSafe(change));
    });
}
