//! What ends a script, and what one script leaves behind for the next.

use crate::keyspace::Keyspace;
use crate::nodes::NodeOptions;
use crate::reply::OwnedReply;
use crate::session::ConnectionState;
use redlatch_protocol::time::Time;

struct Rig {
    node: Keyspace,
    session: ConnectionState,
}

impl Rig {
    fn new() -> Self {
        let mut node = Keyspace::new(NodeOptions::default());
        let session = node.connect();
        Self { node, session }
    }

    fn command(&mut self, words: &[&str]) -> OwnedReply {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.node
            .execute(Time::from_millis(1), &mut self.session, &words)
    }

    fn eval(&mut self, source: &str) -> OwnedReply {
        self.command(&["EVAL", source, "0"])
    }

    /// The text of the script's error.
    fn error(&mut self, source: &str) -> String {
        match self.eval(source) {
            OwnedReply::Error(text) => String::from_utf8_lossy(&text).into_owned(),
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[test]
fn a_script_without_end_is_ended() {
    let mut rig = Rig::new();
    for source in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function f() return f() end return f()",
        "while true do redis.pcall('PING') end",
    ] {
        let error = rig.error(source);
        assert!(
            error.starts_with("ERR embedded nodes run no script for so long"),
            "{error}"
        );
        assert!(error.ends_with("on @user_script:1."), "{error}");
    }
    assert_eq!(rig.eval("return 1"), OwnedReply::Integer(1));
}

#[test]
fn a_script_that_takes_too_much_memory_or_stack_is_ended() {
    let mut rig = Rig::new();
    for source in [
        "return string.rep('x', 2^30)",
        "local t = {} while true do t[#t + 1] = string.rep('x', 2^20) .. #t end",
        "local function f() return 1 + f() end return f()",
        "local t = {} for i = 1, 1000 do t = {t} end return t",
        "return string.rep('(', 100):gsub('.', error)",
    ] {
        let reply = rig.eval(source);
        let is_error = |reply: &OwnedReply| matches!(reply, OwnedReply::Error(_));
        let mut inner = &reply;
        while let OwnedReply::Array(items) = inner {
            inner = &items[0];
        }
        assert!(is_error(inner), "{source}: {reply:?}");
    }
    assert_eq!(rig.eval("return 1"), OwnedReply::Integer(1));
}

/// Neither on the same node nor on another: they share an interpreter.
#[test]
fn a_script_changes_nothing_for_the_next() {
    let mut rig = Rig::new();
    let mut other = Rig::new();
    for source in [
        "x = 1",
        "_G.x = 1",
        "rawset(_G, 'x', 1)",
        "rawset(string, 'rep', 1)",
        "setmetatable(_G, nil)",
        "redis.call = nil",
        "string.rep = nil",
        "getmetatable('').__index = nil",
        "math = nil",
        "local keep = KEYS KEYS = nil",
    ] {
        rig.error(source);
    }
    for rig in [&mut rig, &mut other] {
        let missing = rig.error("return x");
        assert!(
            missing.contains("nonexistent global variable 'x'"),
            "{missing}"
        );
        let works = "return {('x'):rep(2), redis.call('PING'), #KEYS, math.floor(1.5)}";
        assert!(matches!(rig.eval(works), OwnedReply::Array(found) if found.len() == 4));
    }
}

#[test]
fn a_script_has_a_node_and_a_database_of_its_own() {
    let mut rig = Rig::new();
    let mut other = Rig::new();
    assert_eq!(
        rig.eval("redis.call('SELECT', 3) return redis.call('SET', 'k', 1)"),
        OwnedReply::OK
    );
    assert_eq!(rig.command(&["EXISTS", "k"]), OwnedReply::Integer(0));
    assert_eq!(rig.command(&["SELECT", "3"]), OwnedReply::OK);
    assert_eq!(rig.command(&["GET", "k"]), OwnedReply::bulk("1"));
    assert_eq!(
        other.eval("redis.call('SELECT', 3) return redis.call('EXISTS', 'k')"),
        OwnedReply::Integer(0)
    );
    assert_eq!(rig.command(&["SELECT", "0"]), OwnedReply::OK);
    rig.error("redis.call('SELECT', 3) error('mine')");
    assert_eq!(rig.command(&["EXISTS", "k"]), OwnedReply::Integer(0));
}

#[test]
fn a_script_may_have_any_bytes() {
    let mut rig = Rig::new();
    let source: &[u8] = b"return '\xff\x01\\0'";
    let reply = rig
        .node
        .execute(Time::ZERO, &mut rig.session, &[b"EVAL", source, b"0"]);
    assert_eq!(reply, OwnedReply::bulk(&b"\xff\x01\0"[..]));
    assert!(
        rig.error("\x1bLua")
            .starts_with("ERR Error compiling script")
    );
}
