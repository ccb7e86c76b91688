//! Completions and manual pages.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use super::program::{bare, end};
use super::registers::formed;
use support::locks::{LONG, take, with_long_timeout};
use support::program::in_memory;

#[test]
fn shells_complete_options_and_the_names_that_the_nodes_have() {
    let servers = formed(3);
    let client = with_long_timeout(servers.urls())
        .build()
        .expect("the URLs can be used");
    let _first = take(&client, "deploy:a", LONG);
    let _second = take(&client, "deploy:b", LONG);
    let _other = take(&client, "other", LONG);
    let depth = client.register("depth").expect("it can be used");
    let _ = depth
        .change(|_| Some(Vec::new()))
        .expect("the nodes are up");
    let script = end(bare().args(["completions", "bash"])).stdout;
    let program = Path::new(env!("CARGO_BIN_EXE_redlatch"))
        .parent()
        .expect("it has a folder");
    let mut path = vec![program.to_owned()];
    path.extend(env::split_paths(&env::var_os("PATH").expect("it is set")));
    let path = env::join_paths(path).expect("its folders have no colons");
    let completed = |words: &[&str]| {
        let line = words.join(" ");
        let index = words.len() - 1;
        let function = "_clap_complete_redlatch";
        let word = words[index];
        let ask = format!(
            "{script}\nCOMP_WORDS=({line}); COMP_CWORD={index}; COMP_TYPE=9\n\
             {function} redlatch '{word}' ''; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", &ask])
            .env("PATH", &path)
            .env("REDLATCH_NODES", servers.urls().join(","));
        let ended = bash.output().expect("bash starts");
        assert!(ended.status.success(), "{ended:?}");
        let mut found: Vec<String> = String::from_utf8_lossy(&ended.stdout)
            .lines()
            .map(str::to_owned)
            .collect();
        found.sort();
        found
    };
    assert_eq!(
        completed(&["redlatch", "run", "--no-restart-g"]),
        ["--no-restart-guard"]
    );
    assert_eq!(
        completed(&["redlatch", "inspect", "dep"]),
        ["deploy:a", "deploy:b"]
    );
    assert_eq!(
        completed(&["redlatch", "registers", "get", "de"]),
        ["depth"]
    );
}

#[test]
fn shells_without_nodes_complete_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = end(bare().args(["completions", shell]));
        assert_eq!((script.code, &*script.stderr), (0, ""));
        assert!(script.stdout.contains("REDLATCH_COMPLETE"), "{shell}");
        let mut asked = bare();
        asked
            .args(["--", "redlatch", "inspect", "x"])
            .env("REDLATCH_COMPLETE", shell);
        let asked = end(asked.env("_CLAP_COMPLETE_INDEX", "2"));
        assert_eq!(
            (asked.code, &*asked.stdout, &*asked.stderr),
            (0, "", ""),
            "{shell}"
        );
    }
    assert_eq!(end(bare().args(["completions", "sh"])).code, 2);
}

#[test]
fn the_manual_has_the_options_and_the_exit_codes() {
    for (arguments, texts) in [
        (&["man"][..], ["REDLATCH_NODES", "waiters"]),
        (&["man", "lock"], ["coproc", "until\\-signal"]),
        (
            &["man", "run"],
            [
                "<NAME> [\\-\\-] <COMMAND>...\n.br\n",
                "<NAME> \\-c <STRING>",
            ],
        ),
    ] {
        let ended = end(bare().args(arguments));
        assert_eq!((ended.code, &*ended.stderr), (0, ""));
        assert!(ended.stdout.contains(".TH redlatch"), "{}", ended.stdout);
        assert!(
            !ended.stdout.contains("redlatch\\-help(1)"),
            "there is no such page"
        );
        let all = [
            "EXIT STATUS",
            "128+n",
            "the lock was lost",
            ".SH \"ENVIRONMENT\"",
            "NO_COLOR",
        ];
        let files = [".SH \"FILES\"", "/etc/redlatch.conf", "restart_guard"];
        for text in texts.into_iter().chain(all).chain(files) {
            assert!(ended.stdout.contains(text), "{text}: {}", ended.stdout);
        }
    }
    assert_eq!(end(bare().args(["man", "walk"])).code, 2);
}

#[test]
fn each_register_command_has_a_page() {
    let group = end(bare().args(["man", "registers"]));
    assert_eq!((group.code, &*group.stderr), (0, ""));
    for text in [
        "EXAMPLES",
        "registers form",
        "EXIT STATUS",
        "another version",
    ] {
        assert!(group.stdout.contains(text), "{text}: {}", group.stdout);
    }
    assert!(
        !group.stdout.contains("registers\\-help(1)"),
        "there is no such page"
    );
    for (name, text) in [
        ("form", "in\\-memory"),
        ("list", "[PATTERN]"),
        ("get", "<NAME>"),
        ("set", "\\-\\-fence"),
        ("cas", "\\-\\-version <VERSION>"),
        ("delete", "<NAME>"),
        ("sweep", "\\-\\-json"),
    ] {
        assert!(
            group
                .stdout
                .contains(&format!("redlatch\\-registers\\-{name}(1)")),
            "{name}"
        );
        let page = end(bare().args(["man", "registers", name]));
        assert_eq!((page.code, &*page.stderr), (0, ""), "{name}");
        let title = format!(".TH redlatch-registers-{name} 1");
        for text in [&*title, text] {
            assert!(page.stdout.contains(text), "{text}: {}", page.stdout);
        }
        assert!(!page.stdout.contains("SUBCOMMANDS"), "it has none");
    }
    assert_eq!(end(bare().args(["man", "registers", "walk"])).code, 2);
    assert_eq!(end(bare().args(["man", "run", "set"])).code, 2);
    let help = end(bare().args(["registers", "--help"]));
    for text in [
        "Examples:",
        "cas import:2026-11 --version none done",
        "Exit codes:",
    ] {
        assert!(help.stdout.contains(text), "{text}: {}", help.stdout);
    }
}

/// What `dist` hands out starts the command with arguments that no compiler sees.
#[test]
fn the_command_knows_the_arguments_of_the_units_and_of_the_compose_file() {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist");
    let read = |name| fs::read_to_string(dist.join(name)).expect("it is in the repository");
    let unit = read("systemd/nightly-report.service");
    let compose = read("compose.yaml");
    let units = unit + &read("systemd/redlatch-exporter.service");
    let starts = units
        .lines()
        .filter_map(|line| line.strip_prefix("ExecStart=/usr/bin/redlatch "));
    let lists = compose
        .split("command: [")
        .skip(1)
        .filter_map(|rest| rest.split(']').next());
    let mut tried = 0;
    for text in starts.chain(lists.filter(|list| !list.contains("redis-server"))) {
        let words = text.split([' ', ',', '\n']).filter(|word| !word.is_empty());
        // What is before --help is checked, and nothing is done.
        let ended = end(bare()
            .args(words.take_while(|word| *word != "--"))
            .arg("--help"));
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{text}");
        let about = if text.starts_with("exporter") {
            "Serve metrics"
        } else {
            "Run a command"
        };
        assert!(ended.stdout.starts_with(about), "{text}: {}", ended.stdout);
        tried += 1;
    }
    assert_eq!(tried, 4);
}

#[test]
fn the_sample_of_the_file_names_settings_that_there_are() {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist");
    let text = fs::read_to_string(dist.join("redlatch.conf")).expect("it is in the repository");
    let is_setting = |line: &&str| line.starts_with('#') && !line.starts_with("# ");
    let settings: Vec<_> = text
        .lines()
        .filter(is_setting)
        .map(|line| &line[1..])
        .collect();
    assert!(settings.len() > 10, "{settings:?}");
    let folder = in_memory();
    let file = folder.path().join("redlatch.conf");
    // The last line is one that is wrong.
    fs::write(&file, format!("{}\n[wrong]\n", settings.join("\n"))).expect("a folder");
    let ended = end(bare().arg("--config").arg(&file).arg("status"));
    assert!(
        ended.stderr.contains(": unknown field `wrong`, "),
        "{}",
        ended.stderr
    );
}
