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

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use mlua::{
    ChunkMode, Function, HookTriggers, Lua, LuaOptions, StdLib, Table, Value, Variadic, VmState,
};
use sha1_smol::Sha1;

use super::command::{self, Call};
use super::keyspace::Keyspace;
use super::options::Options;
use super::reply::{Answer, Failure, OwnedReply};
use super::session::ConnectionState;
use redlatch_protocol::engine;
use redlatch_protocol::node::script::ALL;
use redlatch_protocol::time::Time;
use redlatch_registers as registers;

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

/// A script of a node.
pub(super) struct Script<'a> {
    /// The SHA-1 of its source, in lower case.
    pub(super) sha1: &'a str,
    pub(super) source: &'a [u8],
    pub(super) keys: &'a [&'a [u8]],
    pub(super) argv: &'a [&'a [u8]],
}

/// Fails if the source is no Lua.
pub(super) fn compile(sha1: &str, source: &[u8]) -> Result<(), Failure> {
    INTERPRETER.with(|interpreter| interpreter.compiled(sha1, source).map(|_| ()))
}

/// Runs a script, and returns its reply.
pub(super) fn run(call: &mut Call<'_>, script: &Script<'_>) -> Answer {
    INTERPRETER.with(|interpreter| interpreter.run(call, script))
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
    node: RefCell<Node>,
    /// The text of the last error that was raised in Lua.
    failure: RefCell<Vec<u8>>,
    instructions: Cell<u32>,
}

/// The node that runs a script. An empty one while none does.
struct Node {
    keyspace: Keyspace,
    session: ConnectionState,
    now: Time,
    now_ms: i64,
    /// `KEYS`, if the connection tracks the keys that it reads.
    declared: Vec<Vec<u8>>,
}

impl Node {
    /// Exchanges the node and connection of the call with the ones here.
    fn swap(&mut self, call: &mut Call<'_>) {
        std::mem::swap(&mut self.keyspace, call.keyspace);
        std::mem::swap(&mut self.session, call.session);
    }
}

impl Running {
    fn new() -> Self {
        let mut keyspace = Keyspace::new(Options::new());
        let session = keyspace.connect();
        let node = Node { keyspace, session, now: Time::ZERO, now_ms: 0, declared: Vec::new() };
        Self {
            node: RefCell::new(node),
            failure: RefCell::new(Vec::new()),
            instructions: Cell::new(0),
        }
    }

    /// Runs the command of a call of the script.
    fn command(&self, words: &[Value]) -> Answer {
        self.spend(INSTRUCTIONS_OF_COMMAND);
        let words = values::words(words)?;
        let args: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
        let Node { keyspace, session, now, now_ms, declared } = &mut *self.node.borrow_mut();
        let (now, now_ms, args, declared) = (*now, *now_ms, &args[..], Some(&declared[..]));
        command::run_in_script(&mut Call { keyspace, session, now, now_ms, args, declared })
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
        self.instructions.set(self.instructions.get().saturating_add(instructions));
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
        let it = running.clone();
        let call =
            lua.create_function(move |lua, words: Variadic<Value>| match it.command(&words) {
                Ok(reply) => values::to_lua(lua, reply),
                Err(failure) => it.raise(failure.into_text()),
            })?;
        let it = running.clone();
        let pcall = lua.create_function(move |lua, words: Variadic<Value>| {
            values::to_lua(lua, it.command(&words).unwrap_or_else(OwnedReply::from))
        })?;
        let it = running.clone();
        let sha1hex =
            lua.create_function(move |_, words: Variadic<mlua::String>| match &words[..] {
                [text] => Ok(digest(&text.as_bytes())),
                _ => it.raise(b"ERR wrong number of arguments".to_vec()),
            })?;
        let it = running.clone();
        let failure =
            lua.create_function(move |lua, ()| lua.create_string(&*it.failure.borrow()))?;
        let it = running.clone();
        let is_over = lua.create_function(move |_, ()| Ok(it.is_over()))?;
        let line = lua.create_function(|lua, ()| Ok(line(lua)))?;
        let sandbox = lua.load(include_str!("lua/sandbox.lua")).set_name("@sandbox");
        let (globals, enter): (Table, Function) =
            sandbox.call((call, pcall, sha1hex, line, failure, is_over))?;
        lua.set_globals(globals)?;
        let it = running.clone();
        let triggers = HookTriggers::new().every_nth_instruction(COUNTED);
        lua.set_global_hook(triggers, move |_, _| it.count())?;
        Ok(Self { lua, enter, compiled: RefCell::default(), running })
    }

    fn compiled(&self, sha1: &str, source: &[u8]) -> Result<Compiled, Failure> {
        if let Some(known) = self.compiled.borrow().get(sha1) {
            return Ok(known.clone());
        }
        let chunk = self.lua.load(source).set_name("@user_script").set_mode(ChunkMode::Text);
        let function = chunk.into_function().map_err(|error| {
            let text = match error {
                mlua::Error::SyntaxError { message, .. } => message,
                other => other.to_string(),
            };
            Failure::new(format!("ERR Error compiling script (new function): {text}"))
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

    fn run(&self, call: &mut Call<'_>, script: &Script<'_>) -> Answer {
        let Compiled { function, is_own } = self.compiled(script.sha1, script.source)?;
        let database = call.session.database;
        {
            let mut node = self.running.node.borrow_mut();
            let keys = if call.session.remembers_reads() { script.keys } else { &[] };
            node.declared = keys.iter().map(|key| key.to_vec()).collect();
            (node.now, node.now_ms) = (call.now, call.now_ms);
            node.swap(call);
        }
        self.running.instructions.set(0);
        // 0 is no limit. Memory of this allocator can always be limited.
        let _ = self.lua.set_memory_limit(if is_own { 0 } else { MEMORY_MAX });
        let result = self.enter(function, script);
        let _ = self.lua.set_memory_limit(0);
        self.running.node.borrow_mut().swap(call);
        // A `SELECT` in a script counts for the script alone.
        call.session.database = database;
        result.unwrap_or_else(|error| Err(Failure::new(format!("ERR {error}"))))
    }

    fn enter(&self, function: Function, script: &Script<'_>) -> mlua::Result<Answer> {
        let table = |words: &[&[u8]]| {
            let table = self.lua.create_table_with_capacity(words.len(), 0)?;
            words.iter().try_for_each(|word| table.raw_push(self.lua.create_string(word)?))?;
            Ok::<_, mlua::Error>(table)
        };
        let (keys, argv) = (table(script.keys)?, table(script.argv)?);
        let (is_well, value): (bool, Value) =
            self.enter.call((function, script.sha1, keys, argv))?;
        if is_well {
            return Ok(values::to_reply(&value));
        }
        let text = values::word(&value).map(|text| text.as_ref().to_vec());
        Ok(Err(Failure::new(text.unwrap_or_else(|| b"ERR the script failed".to_vec()))))
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
    ALL.iter().chain(&registers::script::ALL).chain(&redlatch_protocol::inspect::ALL)
}

/// The SHA-1 of a text, in lower-case hexadecimal. Those of this library's scripts are known.
pub(super) fn digest(text: &[u8]) -> String {
    let known = own_scripts().find(|script| script.source.as_bytes() == text);
    known.map_or_else(|| Sha1::from(text).digest().to_string(), |script| script.sha1.to_owned())
}

#[cfg(test)]
mod tests;
