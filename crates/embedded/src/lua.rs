//! Runs Lua scripts as Redis does, by an interpreter of Lua 5.1 for each thread.
//!
//! While a script runs, the interpreter holds the node and the connection that sent the script: the
//! functions `redis.call` and `redis.pcall` are made once, and so find them without being made anew
//! for each script. `sandbox.lua` makes the globals of scripts.
//!
//! Intended differences from Redis: a script gets neither `cjson`, `cmsgpack`, `struct`, `bit` nor
//! `coroutine`, nor what compiles Lua or manages its memory. Of `redis`, it gets `call`, `pcall`,
//! `error_reply`, `status_reply` and `sha1hex`. One that runs for too long ends with an error.

mod values;

use super::command::{self, Call, integer};
use super::database::is_flush_mode;
use super::keyspace::Keyspace;
use super::nodes::NodeOptions;
use super::reply::{CommandError, CommandResult, OwnedReply, refuse};
use super::session::ConnectionState;
use mlua::{
    ChunkMode, Function, HookTriggers, Lua, LuaOptions, StdLib, Table, Value, Variadic, VmState,
};
use redlatch_protocol::engine;
use redlatch_protocol::node::script::ALL;
use redlatch_protocol::time::Time;
use redlatch_registers as registers;
use sha1_smol::Sha1;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use values::{reply, to_lua, to_text, word, words_of, words_to_lua};

/// How many instructions a script may take, how often they are counted, and as how many a command
/// counts. This library's scripts take some thousands. A loop without end ends within a second.
const INSTRUCTIONS_MAX: u32 = 50_000_000;
const COUNTED: u32 = 1_000_000;
const INSTRUCTIONS_OF_COMMAND: u32 = 100;

/// The memory of an interpreter, 64 MiB, while it runs a script that is not this library's.
const MEMORY_MAX: usize = 64 * 1024 * 1024;

/// How many compiled scripts an interpreter keeps.
const COMPILED_MAX: usize = 1_000;

thread_local! {
    static INTERPRETER: Interpreter =
        Interpreter::new().expect("the interpreter's own script is correct");
}

type Arguments<'a> = &'a [&'a [u8]];

/// The call of a script.
struct LuaCall<'a> {
    /// The SHA-1 of its source, in lower case.
    sha1: &'a str,
    source: &'a [u8],
    keys: Arguments<'a>,
    argv: Arguments<'a>,
}

struct Interpreter {
    lua: Lua,
    /// `run` of `sandbox.lua`.
    enter: Function,
    /// The compiled scripts, by their SHA-1.
    compiled: RefCell<HashMap<String, Compiled>>,
    running: Rc<Running>,
}

#[derive(Clone)]
struct Compiled {
    function: Function,
    /// Is it one of this library's? They need no limit of memory, without which each string that
    /// they get costs less.
    is_own: bool,
}

/// What the functions of `redis` work with.
struct Running {
    node: RefCell<ScriptedNode>,
    /// The text of the last error that was raised in Lua.
    failure: RefCell<Vec<u8>>,
    instructions: Cell<u32>,
}

/// The node that runs a script. An empty one while none does.
struct ScriptedNode {
    keyspace: Keyspace,
    session: ConnectionState,
    now: Time,
    /// `KEYS`, if the connection tracks the keys that it reads.
    declared: Vec<Vec<u8>>,
}

impl ScriptedNode {
    /// Exchanges the node and connection of the call with the ones here.
    fn swap(&mut self, call: &mut Call<'_>) {
        std::mem::swap(&mut self.keyspace, call.keyspace);
        std::mem::swap(&mut self.session, call.session);
    }
}

impl Running {
    fn new() -> Self {
        let mut keyspace = Keyspace::new(NodeOptions::default());
        let session = keyspace.connect();
        let node = ScriptedNode {
            keyspace,
            session,
            now: Time::ZERO,
            declared: Vec::new(),
        };
        Self {
            node: RefCell::new(node),
            failure: RefCell::default(),
            instructions: Cell::new(0),
        }
    }

    /// A function of Lua that is given this.
    fn function(
        self: &Rc<Self>,
        lua: &Lua,
        run: fn(&Running, &Lua, &[Value]) -> mlua::Result<Value>,
    ) -> mlua::Result<Function> {
        let running = Rc::clone(self);
        lua.create_function(move |lua, words: Variadic<Value>| run(&running, lua, &words))
    }

    /// Runs the command of a call of the script.
    fn command(&self, words: &[Value]) -> CommandResult {
        self.spend(INSTRUCTIONS_OF_COMMAND);
        let words = words_of(words)?;
        let args: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
        let ScriptedNode {
            keyspace,
            session,
            now,
            declared,
        } = &mut *self.node.borrow_mut();
        command::run_in_script(&mut Call {
            keyspace,
            session,
            now: *now,
            args: &args,
            declared: Some(declared),
        })
    }

    /// Raises an error in Lua. The sandbox asks for its text.
    fn raise<T>(&self, text: Vec<u8>) -> mlua::Result<T> {
        *self.failure.borrow_mut() = text;
        Err(mlua::Error::runtime(""))
    }

    /// The script has taken some more instructions.
    fn count(&self) -> mlua::Result<VmState> {
        self.spend(COUNTED);
        match self.is_over() {
            true => self.raise(b"ERR embedded nodes run no script for so long".to_vec()),
            false => Ok(VmState::Continue),
        }
    }

    fn spend(&self, instructions: u32) {
        self.instructions
            .set(self.instructions.get().saturating_add(instructions));
    }

    fn is_over(&self) -> bool {
        self.instructions.get() > INSTRUCTIONS_MAX
    }
}

impl Interpreter {
    fn new() -> mlua::Result<Self> {
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        let running = Rc::new(Running::new());
        let call = running.function(&lua, |it, lua, words| match it.command(words) {
            Ok(reply) => to_lua(lua, reply),
            Err(failure) => it.raise(failure.0),
        })?;
        let pcall = running.function(&lua, |it, lua, words| {
            to_lua(lua, it.command(words).unwrap_or_else(OwnedReply::from))
        })?;
        let failure = running.function(&lua, |it, lua, _| to_text(lua, &it.failure.borrow()))?;
        let is_over = running.function(&lua, |it, _, _| Ok(Value::Boolean(it.is_over())))?;
        let it = running.clone();
        let sha1hex =
            lua.create_function(move |_, words: Variadic<mlua::String>| match &words[..] {
                [text] => Ok(digest(&text.as_bytes())),
                _ => it.raise(b"ERR wrong number of arguments".to_vec()),
            })?;
        let line = lua.create_function(|lua, ()| Ok(line(lua)))?;
        let sandbox = lua
            .load(include_str!("lua/sandbox.lua"))
            .set_name("@sandbox");
        let (globals, enter): (Table, Function) =
            sandbox.call((call, pcall, sha1hex, line, failure, is_over))?;
        lua.set_globals(globals)?;
        let it = running.clone();
        let triggers = HookTriggers::new().every_nth_instruction(COUNTED);
        lua.set_global_hook(triggers, move |_, _| it.count())?;
        Ok(Self {
            lua,
            enter,
            compiled: RefCell::default(),
            running,
        })
    }

    fn compiled(&self, sha1: &str, source: &[u8]) -> Result<Compiled, CommandError> {
        if let Some(known) = self.compiled.borrow().get(sha1) {
            return Ok(known.clone());
        }
        let chunk = self
            .lua
            .load(source)
            .set_name("@user_script")
            .set_mode(ChunkMode::Text);
        let function = chunk.into_function().map_err(|error| {
            let text = match error {
                mlua::Error::SyntaxError { message, .. } => message,
                other => other.to_string(),
            };
            CommandError::new(format!("ERR Error compiling script (new function): {text}"))
        })?;
        let mut compiled = self.compiled.borrow_mut();
        if compiled.len() >= COMPILED_MAX {
            compiled.clear();
        }
        let is_own = own_scripts().any(|own| own.sha1 == sha1);
        let new = Compiled { function, is_own };
        compiled.insert(sha1.to_owned(), new.clone());
        Ok(new)
    }

    fn run(&self, call: &mut Call<'_>, script: &LuaCall<'_>) -> CommandResult {
        let Compiled { function, is_own } = self.compiled(script.sha1, script.source)?;
        let database = call.session.database;
        {
            let mut node = self.running.node.borrow_mut();
            let keys = if call.session.remembers_reads() {
                script.keys
            } else {
                &[]
            };
            node.declared = keys.iter().map(|key| key.to_vec()).collect();
            node.now = call.now;
            node.swap(call);
        }
        self.running.instructions.set(0);
        // 0 is not a limit. Memory of this allocator can always be limited.
        let _ = self
            .lua
            .set_memory_limit(if is_own { 0 } else { MEMORY_MAX });
        let result = self.enter(function, script);
        let _ = self.lua.set_memory_limit(0);
        self.running.node.borrow_mut().swap(call);
        // A `SELECT` in a script counts for the script alone.
        call.session.database = database;
        result.unwrap_or_else(|error| refuse(format!("ERR {error}")))
    }

    fn enter(&self, function: Function, script: &LuaCall<'_>) -> mlua::Result<CommandResult> {
        let keys = words_to_lua(&self.lua, script.keys)?;
        let argv = words_to_lua(&self.lua, script.argv)?;
        let arguments = (function, script.sha1, keys, argv);
        let (is_well, value): (bool, Value) = self.enter.call(arguments)?;
        if is_well {
            let unread = "ERR the value of the script cannot be read";
            return Ok(reply(&value, 0).map_err(|_| CommandError::new(unread)));
        }
        let text = match word(&value) {
            Some(text) => text.as_ref().to_vec(),
            None => b"ERR the script failed".to_vec(),
        };
        Ok(refuse(text))
    }
}

/// The line of the script that runs or called what runs.
fn line(lua: &Lua) -> Option<usize> {
    let levels = (0..).map_while(|level| {
        lua.inspect_stack(level, |at| {
            let is_of_script = at.source().source.as_deref() == Some("@user_script");
            at.current_line().filter(|_| is_of_script)
        })
    });
    levels.flatten().next()
}

/// All scripts of this library.
fn own_scripts() -> impl Iterator<Item = &'static engine::Script> {
    ALL.iter().chain(registers::script::ALL)
}

/// The SHA-1 of a text, in lower-case hexadecimal. Those of this library's scripts are known.
pub(super) fn digest(text: &[u8]) -> String {
    let known = own_scripts().find(|script| script.source.as_bytes() == text);
    match known {
        Some(script) => script.sha1.to_owned(),
        None => Sha1::from(text).digest().to_string(),
    }
}

// The script cache, and the commands that run scripts.

/// `EVAL source numkeys [key ...] [arg ...]`
pub(super) fn eval(call: &mut Call<'_>) -> CommandResult {
    let (keys, argv) = keys_and_argv(call.args)?;
    let source = call.args[1];
    let sha1 = &*load(call, source)?;
    let script = LuaCall {
        sha1,
        source,
        keys,
        argv,
    };
    INTERPRETER.with(|it| it.run(call, &script))
}

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

/// `EVALSHA sha1 numkeys [key ...] [arg ...]`
pub(super) fn evalsha(call: &mut Call<'_>) -> CommandResult {
    // A text that cannot be a digest is refused before the number of keys is parsed.
    if call.args[1].len() != 40 {
        return refuse(NO_SCRIPT);
    }
    let (keys, argv) = keys_and_argv(call.args)?;
    let sha1 = &*lower(call.args[1]);
    let Some(source) = call.keyspace.scripts.get(sha1).cloned() else {
        return refuse(NO_SCRIPT);
    };
    let script = LuaCall {
        sha1,
        source: &source,
        keys,
        argv,
    };
    INTERPRETER.with(|it| it.run(call, &script))
}

/// `SCRIPT LOAD source`
pub(super) fn script_load(call: &mut Call<'_>) -> CommandResult {
    Ok(OwnedReply::bulk(load(call, call.args[2])?))
}

/// `SCRIPT EXISTS sha1 [sha1 ...]`
pub(super) fn script_exists(call: &mut Call<'_>) -> CommandResult {
    let mut known = Vec::new();
    for sha1 in &call.args[2..] {
        let is_cached = call.keyspace.scripts.contains_key(&lower(sha1));
        known.push(OwnedReply::Integer(is_cached.into()));
    }
    Ok(OwnedReply::Array(known))
}

/// `SCRIPT FLUSH [SYNC | ASYNC]`
pub(super) fn script_flush(call: &mut Call<'_>) -> CommandResult {
    if !is_flush_mode(&call.args[2..]) {
        return refuse("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
    }
    call.keyspace.flush_scripts();
    Ok(OwnedReply::OK)
}

/// Compiles a script, caches its source and returns its SHA-1.
fn load(call: &mut Call<'_>, source: &[u8]) -> Result<String, CommandError> {
    let sha1 = digest(source);
    if !call.keyspace.scripts.contains_key(&sha1) {
        INTERPRETER.with(|it| it.compiled(&sha1, source).map(drop))?;
        call.keyspace.scripts.insert(sha1.clone(), source.into());
    }
    Ok(sha1)
}

/// The digest as it is a key of the cache.
fn lower(sha1: &[u8]) -> String {
    String::from_utf8_lossy(sha1).to_ascii_lowercase()
}

/// `KEYS` and `ARGV` of a script call.
fn keys_and_argv(args: Arguments<'_>) -> Result<(Arguments<'_>, Arguments<'_>), CommandError> {
    let wanted = usize::try_from(integer(args[2])?)
        .map_err(|_| CommandError::new("ERR Number of keys can't be negative"))?;
    args[3..]
        .split_at_checked(wanted)
        .ok_or_else(|| CommandError::new("ERR Number of keys can't be greater than number of args"))
}

#[cfg(test)]
mod tests;
