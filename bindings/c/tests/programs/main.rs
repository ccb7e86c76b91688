//! C and C++ programs against embedded nodes: compiled without a warning, linked with what
//! `install` has installed, and run under sanitizers or valgrind.

mod event_loops;

use redlatch::embedded::Nodes;
use redlatch::{LockClient, LockState};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;

const PREFIX: &str = "/opt/redlatch";
const WARNINGS: [&str; 6] = [
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wshadow",
    "-Wconversion",
    "-Werror",
];
const SANITIZED: [&str; 3] = [
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
];

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder below which everything is installed, as for a package. It is built where these tests
/// were, so other crates are not built once more. The library is, as these enable other features.
fn installed() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let destination = folder.join("installed");
        let mut install = Command::new(package().join("install"));
        let install = install
            .arg(PREFIX)
            .env("DESTDIR", &destination)
            .env("PROFILE", "dev");
        // Build scripts look at what cargo has told this program, and would run anew.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                install.env_remove(&name);
            }
        }
        let target = folder.parent().expect("it is in the folder of builds");
        succeed(install.env("CARGO_TARGET_DIR", target));
        destination
    })
}

fn library(name: &str) -> PathBuf {
    installed().join("opt/redlatch/lib").join(name)
}

/// What it prints, without errors.
fn succeed(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it runs");
    let output = String::from_utf8_lossy(&stdout);
    let errors = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {status}\n{output}{errors}");
    output.into_owned()
}

/// The flags of the package, with those for a static library or without.
fn flags(is_static: bool) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command
        .args(["--cflags", "--libs", "redlatch"])
        .args(is_static.then_some("--static"));
    command.env("PKG_CONFIG_PATH", library("pkgconfig"));
    let flags = succeed(command.env("PKG_CONFIG_SYSROOT_DIR", installed()));
    let flags = flags.split_whitespace().map(|flag| match flag {
        "-lredlatch" if is_static => "-l:libredlatch.a".to_owned(), // as README.md says
        flag => flag.to_owned(),
    });
    flags.collect()
}

fn compile(source: &str, options: &[&str], is_static: bool) -> PathBuf {
    let name = Path::new(source)
        .file_name()
        .and_then(|name| name.to_str())
        .expect("text");
    let name = format!("{name} {} {is_static}", options.join("")).replace(['/', ' ', '.'], "-");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (compiler, standard) = if source.ends_with(".c") {
        ("cc", "-std=gnu99")
    } else {
        ("c++", "-std=c++11")
    };
    let mut command = Command::new(compiler);
    command.args(WARNINGS).arg(standard).arg("-o").arg(&out);
    // Libraries stand behind what needs them.
    command
        .arg(package().join(source))
        .args(options)
        .arg("-pthread")
        .args(flags(is_static));
    assert_eq!(succeed(&mut command), "");
    out
}

fn sanitized(source: &str) -> PathBuf {
    compile(source, &SANITIZED, true)
}

fn nodes() -> Nodes {
    Nodes::start(3).expect("loopback")
}

/// A program that runs, and is ended with the test.
struct Running(Child);

impl Running {
    fn start(program: &Path, arguments: &[String]) -> Self {
        Self::spawn(Command::new(program).args(arguments))
    }

    fn spawn(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.stderr(Stdio::piped()).spawn().expect("it starts"))
    }

    /// It waits for a line, and then has no errors and is done.
    fn goes_on_to_its_end(&mut self, output: &mut impl BufRead) {
        self.0
            .stdin
            .take()
            .expect("it is piped")
            .write_all(b"\n")
            .expect("it reads");
        let mut errors = String::new();
        self.0
            .stderr
            .take()
            .expect("it is piped")
            .read_to_string(&mut errors)
            .expect("text");
        assert_eq!(errors, "");
        Running::read_to(output, "done");
        assert!(self.wait().success());
    }

    /// Reads its output to a line with this text, and returns the line.
    fn read_to(output: &mut impl BufRead, text: &str) -> String {
        let mut line = String::new();
        let mut before = String::new();
        while !line.contains(text) {
            before.push_str(&line);
            line.clear();
            assert!(
                output.read_line(&mut line).expect("text") > 0,
                "no {text:?} in:\n{before}"
            );
        }
        line
    }

    fn terminate(&self) {
        succeed(
            Command::new("sh")
                .args(["-c", "kill -TERM $0"])
                .arg(self.0.id().to_string()),
        );
    }

    fn wait(&mut self) -> ExitStatus {
        self.0.wait().expect("it ends")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_function_does_what_the_header_says() {
    let nodes = nodes();
    let version = format!("-DVERSION=\"{}\"", env!("CARGO_PKG_VERSION"));
    let program = compile(
        "tests/calls.c",
        &[&SANITIZED[..], &[&version]].concat(),
        true,
    );
    assert_eq!(succeed(Command::new(program).args(nodes.urls())), "done\n");
    check_owners(&nodes);
    // What the library reads and writes, and not only the program.
    let program = compile("tests/calls.c", &["-g", &version], true);
    assert_eq!(succeed(valgrind(&program).args(nodes.urls())), "done\n");
    check_owners(&nodes);
}

/// The program, in which no memory is lost either.
fn valgrind(program: &Path) -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["-q", "--error-exitcode=9", "--leak-check=full"]);
    // What threads that end by themselves have is "possibly lost".
    valgrind.args([
        "--errors-for-leak-kinds=definite",
        "--show-leak-kinds=definite",
    ]);
    valgrind.arg(program);
    valgrind
}

#[test]
fn a_call_that_is_started_calls_back_once_whatever_comes_of_it() {
    let nodes = nodes();
    let program = sanitized("tests/started.c");
    assert_eq!(succeed(Command::new(program).args(nodes.urls())), "done\n");
    let program = compile("tests/started.c", &["-g"], true);
    assert_eq!(succeed(valgrind(&program).args(nodes.urls())), "done\n");
}

#[test]
fn a_call_for_which_no_thread_can_be_started_has_not_begun() {
    let nodes = nodes();
    let program = compile("tests/no_threads.c", &["-g"], true);
    assert_eq!(succeed(Command::new(program).args(nodes.urls())), "done\n");
}

/// Looks at what a process of `calls.c` has left, and removes it.
fn check_owners(nodes: &Nodes) {
    let builder = LockClient::builder().nodes(nodes.urls()).key_prefix("c:");
    let client = builder.build().expect("they are nodes");
    let other = LockClient::new(nodes.urls()).expect("they are nodes");
    let mut found = 0;
    for (client, pattern) in [(&client, "owned:*"), (&other, "owned:3:*")] {
        for lock in client
            .locks(pattern)
            .map(|lock| lock.expect("it is listed"))
        {
            let name = lock.resource();
            let name = name.as_str().expect("text");
            let seen = client.inspect(name).expect("all nodes are up");
            let LockState::Held(holder) = &seen.state else {
                panic!("{seen:?}")
            };
            let owner = holder.owner().map(|owner| owner.to_string());
            let [_, kind, process] = name.split(':').collect::<Vec<_>>()[..] else {
                panic!()
            };
            match (kind, owner.as_deref()) {
                ("0", Some(owner)) => assert!(owner.ends_with(&format!(":{process}")), "{owner}"),
                ("1", Some("mine")) | ("2", None) | ("3", Some("all")) => {}
                _ => panic!("{name}: {owner:?}"),
            }
            assert!(client.force_release(&seen).expect("all nodes are up"));
            found += 1;
        }
    }
    assert_eq!(found, 4);
}

#[test]
fn many_threads_work_and_a_forked_child_leaves_the_locks_of_its_parent_alone() {
    let nodes = nodes();
    let program = compile("tests/threads.c", &["-g"], true);
    let threads = |command: &mut Command, count: &str, forks: &str| {
        let command = command.args([count, forks]).args(nodes.urls());
        assert_eq!(succeed(command), "done\n");
    };
    threads(&mut Command::new(&program), "64", "4");
    threads(
        Command::new("valgrind")
            .args(["-q", "--error-exitcode=9"])
            .arg(&program),
        "4",
        "4",
    );
    // A fork that another thread of a program does not expect hangs in AddressSanitizer itself.
    threads(&mut Command::new(sanitized("tests/threads.c")), "64", "0");
}

#[test]
fn a_forked_child_that_frees_what_it_has_inherited_loses_no_memory() {
    let nodes = nodes();
    let program = compile("tests/fork.c", &["-g"], true);
    let mut valgrind = Command::new("valgrind");
    valgrind.args([
        "-q",
        "--error-exitcode=9",
        "--leak-check=full",
        "--num-callers=40",
    ]);
    valgrind.args([
        "--errors-for-leak-kinds=definite",
        "--show-leak-kinds=definite",
    ]);
    valgrind.arg(format!(
        "--suppressions={}",
        package().join("valgrind.supp").display()
    ));
    assert_eq!(succeed(valgrind.arg(program).args(nodes.urls())), "done\n");
}

#[test]
fn the_loss_of_a_lock_is_told_and_no_callback_runs_after_a_release() {
    let nodes = nodes();
    let program = compile("tests/lost.c", &["-g"], true);
    let valgrind = ["-q", "--error-exitcode=9", program.to_str().expect("text")];
    let arguments: Vec<String> = valgrind
        .map(str::to_owned)
        .into_iter()
        .chain(nodes.urls())
        .collect();
    let mut running = Running::start(Path::new("valgrind"), &arguments);
    let mut output = BufReader::new(running.0.stdout.take().expect("it is piped"));
    Running::read_to(&mut output, "held");
    (0..2).for_each(|node| nodes.stop(node));
    running.goes_on_to_its_end(&mut output);
}

#[test]
fn descriptors_that_the_program_has_closed_are_not_used_for_connections() {
    let nodes = nodes();
    let program = compile("tests/closed.c", &["-g"], true);
    let mut running = Running::start(&program, &nodes.urls());
    let mut output = BufReader::new(running.0.stdout.take().expect("it is piped"));
    Running::read_to(&mut output, "closed");
    for node in 0..3 {
        nodes.stop(node);
        nodes.restart(node).expect("its port is free");
    }
    running.goes_on_to_its_end(&mut output);
}

#[test]
fn a_wait_on_silent_nodes_ends_after_its_time_and_not_before() {
    let nodes = nodes();
    let program = compile("tests/waits.c", &["-g"], true);
    (0..3).for_each(|node| nodes.pause(node));
    let output = Command::new(program)
        .args(nodes.urls())
        .output()
        .expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
}

#[test]
fn an_exception_of_a_callback_ends_the_process() {
    let nodes = nodes();
    let program = compile("tests/throws.cpp", &[], true);
    let mut running = Running::start(&program, &nodes.urls());
    let mut output = BufReader::new(running.0.stdout.take().expect("it is piped"));
    Running::read_to(&mut output, "held");
    (0..3).for_each(|node| nodes.stop(node));
    assert!(!running.wait().success());
}

#[test]
fn the_header_stands_alone_and_has_the_layout_of_the_library() {
    let header = package().join("redlatch.h");
    let cpp = ["-xc++", "-std=c++11", "-Wold-style-cast"];
    for flags in [
        &["-xc", "-std=c99"][..],
        &["-xc", "-std=c99", "-fshort-enums"],
        &cpp,
    ] {
        let mut command = Command::new("cc");
        command
            .args(WARNINGS)
            .args(flags)
            .args(["-c", "-o", "/dev/null"])
            .arg(&header);
        assert_eq!(succeed(&mut command), "");
    }
    let program = compile("tests/layout.c", &["-fshort-enums"], true);
    assert_eq!(succeed(&mut Command::new(program)), redlatch_c::layout());
}

#[test]
fn the_shared_library_has_a_name_and_the_functions_of_the_header() {
    let dynamic = succeed(
        Command::new("readelf")
            .arg("-d")
            .arg(library("libredlatch.so")),
    );
    assert!(dynamic.contains("soname: [libredlatch.so.0]") && dynamic.contains("NODELETE"));
    let symbols = succeed(
        Command::new("nm")
            .arg("-D")
            .arg("--defined-only")
            .arg(library("libredlatch.so")),
    );
    let mut symbols: Vec<_> = symbols
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .collect();
    let header = std::fs::read_to_string(package().join("redlatch.h")).expect("it is there");
    let code = header.lines().filter(|line| !line.starts_with([' ', '/']));
    let functions = code.filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next());
    let functions = functions.filter(|name| name.starts_with("redlatch_"));
    let mut functions: Vec<_> = functions.collect();
    assert_eq!(functions.len(), 26, "{functions:?}");
    let inline =
        ["text", "default_options", "request_for", "lock"].map(|it| format!("redlatch_{it}"));
    functions.retain(|name| !inline.iter().any(|it| it == name));
    symbols.sort_unstable();
    functions.sort_unstable();
    assert_eq!(symbols, functions);
}

#[test]
fn the_examples_run_with_either_library() {
    let nodes = nodes();
    for source in ["examples/charge.c", "examples/guard.cpp"] {
        let programs = [
            sanitized(source),
            compile(source, &[], false),
            compile(source, &[], true),
        ];
        for program in programs {
            let mut command = Command::new(program);
            command
                .env("LD_LIBRARY_PATH", library(""))
                .args(nodes.urls());
            let output = succeed(&mut command);
            assert_eq!(output, "charging the card\nmarking the order as paid\n");
        }
    }
}

#[test]
fn the_examples_of_the_readme_are_programs() {
    let page = std::fs::read_to_string(package().join("README.md")).expect("it is there");
    let codes = page.split("```c\n").skip(1);
    let codes: Vec<_> = codes.filter_map(|code| code.split("```").next()).collect();
    // What the program of a loop has besides.
    let list = "static void hand_over(struct wait *wait) { (void)wait; }\n";
    let main = "int main(void) { return begin(NULL, NULL) == REDLATCH_OK; }\n";
    let looping = format!(
        "#include <redlatch.h>\nstruct wait;\n{list}{}{main}",
        codes[1]
    );
    for (name, code) in [("readme.c", codes[0]), ("readme_loop.c", &looping)] {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&file, code).expect("it can be written");
        compile(file.to_str().expect("text"), &[], false);
    }
    assert_eq!(codes.len(), 2);
}

#[test]
fn one_of_the_daemons_leads_and_the_next_when_it_ends() {
    let nodes = nodes();
    let program = sanitized("examples/daemon.c");
    let start = || {
        let mut running = Running::start(&program, &nodes.urls());
        let log = BufReader::new(running.0.stderr.take().expect("it is piped"));
        (running, log)
    };
    let (mut first, mut first_log) = start();
    let led = Running::read_to(&mut first_log, "the leader, term");
    let (mut second, mut second_log) = start();
    first.terminate();
    assert!(first.wait().success());
    assert_ne!(Running::read_to(&mut second_log, "the leader, term"), led);
    // A majority is silent: the loss is told, and SIGTERM ends the wait for another term.
    (0..2).for_each(|node| nodes.pause(node));
    Running::read_to(&mut second_log, "not the leader any more");
    second.terminate();
    assert!(second.wait().success());
}
