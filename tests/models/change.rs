//! Mistakes of a node: small changes of the text of its scripts.

use redlatch_protocol::node::script::Script;

/// A text in scripts, and what comes in its place. It is in each of the scripts once.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub scripts: &'static [Script],
    pub from: &'static str,
    pub to: &'static str,
}

/// The source of a script with these changes.
pub fn changed(script: Script, changes: &[Change]) -> String {
    let mut source = script.source.to_owned();
    for Change { from, to, .. } in changes.iter().filter(|it| it.scripts.contains(&script)) {
        assert_eq!(source.matches(from).count(), 1, "{from} in:\n{source}");
        source = source.replace(from, to);
    }
    source
}
