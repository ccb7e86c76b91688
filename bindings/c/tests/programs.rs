//! C and C++ programs that use the header, against embedded nodes: compiled without a warning, and
//! run under AddressSanitizer.

use redlatch::embedded::Nodes;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of this test's executable is `deps`, beside the library.
fn library() -> PathBuf {
    let exe = std::env::current_exe().expect("this program has a path");
    exe.parent().expect("deps").join("libredlatch_c.a")
}

fn compile(compiler: &str, standard: &str, source: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source.replace(['/', '.'], "-"));
    let compiled = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"])
        .args(["-fsanitize=address,undefined", "-I"])
        .arg(here)
        .arg("-o")
        .arg(&out)
        .arg(here.join(source))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm"])
        .output()
        .expect("the compiler runs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    out
}

fn run(program: &Path, nodes: &Nodes) -> String {
    let output = Command::new(program).args(nodes.urls()).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn every_function_does_what_the_header_says() {
    let nodes = Nodes::start(3).expect("loopback");
    let program = compile("cc", "-std=c11", "tests/calls.c");
    assert_eq!(run(&program, &nodes), "done\n");
}

#[test]
fn the_examples_run() {
    let nodes = Nodes::start(3).expect("loopback");
    for (compiler, standard, source) in
        [("cc", "-std=c99", "examples/charge.c"), ("c++", "-std=c++11", "examples/guard.cpp")]
    {
        let program = compile(compiler, standard, source);
        assert_eq!(run(&program, &nodes), "charging the card\nmarking the order as paid\n");
    }
}
