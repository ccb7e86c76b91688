//! The command `redlatch` is another program than the library, and uses it from outside.

use super::{assert_none, files};

#[test]
fn the_command_uses_only_the_public_interface() {
    let mut broken = Vec::new();
    for source in files("cli/src", "rs") {
        for (number, line) in source.statements() {
            let is_inside = line.contains("internal") || line.contains("#[path");
            let is_print = ["println!", "print!"]
                .iter()
                .any(|name| line.contains(name));
            if is_inside || (is_print && source.path != "cli/src/output.rs") {
                broken.push(format!("{}:{number}: {line}", source.path));
            }
        }
    }
    assert_none(
        "the command uses the public interface, and prints in output.rs",
        &broken,
    );
}
