//! tests/retry, which runs a test that failed twice more, with a cargo that plays a part.

use super::root;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A run of two programs in which these tests of the second one fail.
fn a_run_with(failed: &[&str]) -> String {
    let outputs: String = failed
        .iter()
        .map(|name| format!("---- {name} stdout ----\n{name} is why\n\n"))
        .collect();
    let list: String = failed.iter().map(|name| format!("    {name}\n")).collect();
    format!(
        "     Running unittests src/lib.rs (target/debug/deps/a-1)\n\
         test result: ok. 5 passed; 0 failed; 0 ignored\n\
         failures:\n\n{outputs}\nfailures:\n{list}\n\
         test result: FAILED. 2 passed; {} failed; 0 ignored\n\n\
         error: test failed, to rerun pass `-p redlatch-tests --test api`\n\
         error: 1 target failed:\n    `-p redlatch-tests --test api`\n",
        failed.len()
    )
}

const ONE_PASSED: &str = "test result: ok. 1 passed; 0 failed; 0 ignored\n";

/// What `tests/retry` ends with and prints, if cargo prints and ends with these, one call after the
/// other. A call that is not among them ends with 9.
fn retried(calls: &[(&str, i32)]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (number, (output, _)) in calls.iter().enumerate() {
        fs::write(path(&format!("output{number}")), output).unwrap();
    }
    let ends: String = calls
        .iter()
        .enumerate()
        .map(|(n, (_, code))| format!("{n}) exit {code} ;;\n"))
        .collect();
    let script = format!(
        "#!/bin/sh\ncd \"$(dirname \"$0\")\" || exit 8\nn=$(cat calls 2>/dev/null || echo 0)\n\
         echo $((n + 1)) >calls\necho \"called with $*\"\ncat output$n || exit 9\n\
         case $n in\n{ends}esac\n"
    );
    fs::write(path("cargo"), script).unwrap();
    fs::set_permissions(path("cargo"), fs::Permissions::from_mode(0o755)).unwrap();

    let mut command = Command::new(root().join("tests/retry"));
    command
        .arg(path("cargo"))
        .args(["test", "--locked", "--", "lock::"]);
    let output = command.env("REDLATCH_TEST_LIMIT", "60").output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn a_run_without_a_failure_passes() {
    let (code, text) = retried(&[("test result: ok. 7 passed; 0 failed; 0 ignored\n", 0)]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("\n7 passed, 0 failed\n"), "{text}");
}

#[test]
fn a_test_that_failed_and_passes_twice_alone_is_listed_with_its_output() {
    let first = a_run_with(&["lock::a", "lock::b"]);
    let again = (ONE_PASSED, 0);
    let (code, text) = retried(&[(&first, 101), again, again, again, again]);
    assert_eq!(code, Some(0), "{text}");
    for name in ["lock::a", "lock::b"] {
        let alone = format!("called with test --locked --test api -- --exact {name}\n");
        assert_eq!(text.matches(&alone).count(), 2, "{text}");
    }
    let (_, listed) = text.split_once("== FAILED ONCE").expect("the heading");
    assert!(
        listed.contains("lock::a is why") && listed.contains("lock::b is why"),
        "{text}"
    );
    assert!(text.ends_with("\n9 passed, 0 failed\n"), "{text}");
}

#[test]
fn a_test_that_fails_again_is_a_failure() {
    let first = a_run_with(&["lock::a"]);
    for calls in [
        &[(&*first, 101), ("", 101)][..],
        &[(&first, 101), (ONE_PASSED, 0), ("", 101)],
    ] {
        let (code, text) = retried(calls);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.ends_with("\n7 passed, 1 failed\n"), "{text}");
    }
}

#[test]
fn a_name_that_no_test_has_is_a_failure() {
    let nothing = "test result: ok. 0 passed; 0 failed; 0 ignored\n";
    let (code, text) = retried(&[(&a_run_with(&["lock::a"]), 101), (nothing, 0), (nothing, 0)]);
    assert_eq!(code, Some(1), "{text}");
}

#[test]
fn more_than_three_tests_that_failed_are_a_failure() {
    let first = a_run_with(&["lock::a", "lock::b", "lock::c", "lock::d"]);
    let (code, text) = retried(&[(&first, 101)]);
    assert_eq!(code, Some(1), "{text}");
    assert_eq!(text.matches("called with").count(), 1, "{text}");
    assert!(text.ends_with("\n7 passed, 4 failed\n"), "{text}");
}

#[test]
fn a_program_without_a_list_of_failures_runs_again_as_a_whole() {
    let first = "error: test failed, to rerun pass `-p redlatch-tests --test suspend`\n";
    let (code, text) = retried(&[(first, 101), ("", 0), ("", 0)]);
    assert_eq!(code, Some(0), "{text}");
    let alone = "called with test --locked --test suspend --\n";
    assert_eq!(text.matches(alone).count(), 2, "{text}");
}

#[test]
fn what_was_not_built_is_a_failure() {
    let (code, text) = retried(&[("error: could not compile `redlatch`\n", 101)]);
    assert_eq!(code, Some(101), "{text}");
    assert_eq!(text.matches("called with").count(), 1, "{text}");
}
