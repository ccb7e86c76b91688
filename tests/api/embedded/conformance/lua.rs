//! Small scripts, for what a server and an embedded node make of Lua: `redis.call`, values in both
//! directions, errors and their places. Each runs with the keys `text`, `list`, `set` and `none`.

use super::rig::{Rig, Sequence};

/// Sources of one line each; `;;` is a line break.
const SCRIPTS: &[(&str, &[&str])] = &[
    (
        "values of Lua become replies",
        &[
            "return",
            "return nil",
            "return false",
            "return true",
            "return 'text'",
            "return ''",
            "return 'a\\0b\\r\\n'",
            "return 17",
            "return 1.9",
            "return -1.9",
            "return 2^53",
            "return -2^63",
            "return '5' + 2",
            "return {}",
            "return {1, 'two', {3, {4}}}",
            "return {1, nil, 3}",
            "return {1, false, 3}",
            "return {true, name = 'x'}",
            "return {name = 'x'}",
            "return {ok = 'fine'}",
            "return {ok = 'a\\nb'}",
            "return {ok = 1}",
            "return {err = 'MINE failed'}",
            "return {err = 'a\\nb'}",
            "return {1, {err = 'MINE failed'}, {ok = 'fine'}}",
            "return print == nil and 1 or type",
            "local t = {} t[1] = t return #t",
            "return 1, 2",
            "return redis.status_reply('fine')",
            "return redis.status_reply()",
            "return redis.status_reply(1)",
            "return redis.error_reply('MINE failed')",
            "return redis.error_reply('-MINE failed')",
            "return redis.error_reply('failed')",
            "return redis.error_reply('-failed')",
            "return redis.error_reply()",
            "return redis.error_reply({})",
            "return redis.error_reply('x', 'y')",
        ],
    ),
    (
        "replies become values of Lua",
        &[
            "local r = redis.call('PING') return {type(r), r.ok}",
            "local r = redis.call('GET', KEYS[1]) return {type(r), r}",
            "local r = redis.call('GET', KEYS[4]) return {type(r), r == false}",
            "local r = redis.call('STRLEN', KEYS[1]) return {type(r), r}",
            "local r = redis.call('ZSCORE', KEYS[3], 'b') return {type(r), r, r + 1}",
            "local r = redis.call('ZSCORE', KEYS[3], 'x') return {type(r), r}",
            "local r = redis.call('ZRANK', KEYS[3], 'x') return {type(r), r}",
            "local r = redis.call('ZRANGE', KEYS[3], 0, -1) return {type(r), #r, r}",
            "local r = redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES') return {#r, r}",
            "local r = redis.call('ZRANGE', KEYS[4], 0, -1) return {type(r), #r, r[1] == nil}",
            "local r = redis.call('TYPE', KEYS[2]) return {type(r), r.ok, r}",
            "local r = redis.call('SET', KEYS[1], 'new', 'GET') return r",
            "local r = redis.call('SET', KEYS[1], 'newer', 'NX') return {type(r), r}",
            "local r = redis.call('SCAN', '0', 'COUNT', 100) return {r[1], #r[2]}",
            "local r = redis.call('TIME') return {#r, type(r[1]), tonumber(r[2]) < 1000000}",
            "local r = redis.pcall('GET', KEYS[2]) return {type(r), r.err, r.ok == nil}",
            "return redis.pcall('GET', KEYS[2])",
            "return redis.pcall('NONSENSE')",
            "return {redis.pcall('GET', KEYS[2]), 1}",
        ],
    ),
    (
        "arguments of commands",
        &[
            "return redis.call('ECHO', 17)",
            "return redis.call('ECHO', -17)",
            "return redis.call('ECHO', 1763835000000)",
            "return redis.call('ECHO', 2^53)",
            "return redis.call('ECHO', 1e17)",
            "return redis.call('ECHO', 123456.5)",
            "return redis.call('ECHO', 0.1)",
            "return redis.call('ECHO', -2^63)",
            "return redis.call('ECHO', 1e-7)",
            "return redis.call('ECHO', 1/0)",
            "return redis.call('ECHO', 'a\\0b')",
            "return redis.call('ECHO', true)",
            "return redis.call('ECHO', {})",
            "return redis.call('ECHO', nil)",
            "return redis.call()",
            "return redis.pcall()",
            "return redis.pcall('ECHO', {})",
            "return redis.call('ping')",
            "return {#KEYS, #ARGV, KEYS[1], ARGV[2], type(ARGV[2]), ARGV[3]}",
            "KEYS[1] = 'x' ARGV = ARGV return KEYS",
            "KEYS[1] = 'x' return KEYS",
            "table.insert(ARGV, 'three') return ARGV",
            "return redis.sha1hex('')",
            "return redis.sha1hex(17)",
            "return redis.sha1hex()",
            "return redis.sha1hex('a', 'b')",
        ],
    ),
    (
        "errors and their places",
        &[
            "return redis.call('GET', KEYS[2])",
            "local a = 1;;redis.call('GET', KEYS[2]);;return a",
            "local function f() redis.call('GET', KEYS[2]) end;;f()",
            "local call = redis.call;;return call('NONSENSE')",
            "redis.call('GET')",
            "redis.call('GET', 'a', 'b')",
            "redis.call('SET', 'k', 'v', 'PX', '0')",
            "redis.call('SET', 'k', 'v', 'PX', 1.5)",
            "redis.call('PEXPIRE', KEYS[1], 'x')",
            "redis.call('CLIENT', 'NONSENSE')",
            "redis.call('CLIENT')",
            "redis.call('ZADD', KEYS[3], 'x', 'y')",
            "error('mine')",
            "error('mine', 0)",
            "error({err = 'MINE failed'})",
            "local x;;return x.y",
            "local x;;return x()",
            "return 'a' + 1",
            "return 1 < 'a'",
            "return string.rep()",
            "return tonumber(nil, 10)",
            "return nonsense",
            "nonsense = 1",
            "string.find = nil",
            "redis.call = nil",
            "KEYS = {}",
            "assert(false, 'mine')",
            "return unpack()",
            "return 1 +",
            "return )",
            "local a = 'open",
            "local ok, e = pcall(redis.call, 'GET', KEYS[2]) return {ok, type(e), e}",
            "local ok, e = pcall(redis.call, 'NONSENSE') return {ok, type(e), e}",
            "local ok, e = pcall(error, 'mine') return {tostring(ok), type(e), e}",
            "local ok, e = pcall(error, {err = 'MINE'}) return {tostring(ok), type(e), e}",
            "local ok, e = pcall(error, {1, 2}) return {tostring(ok), type(e), e}",
            "return {pcall(function() return 1, 2 end)}",
            "local _, e = pcall(redis.call, 'GET', KEYS[2]);;error(e)",
            "local _, e = pcall(redis.call, 'GET', KEYS[2]);;error(e, 0)",
            "return redis.call('GET', KEYS[1]) .. nil",
        ],
    ),
    (
        "commands that a script may run",
        &[
            "return redis.call('EVAL', 'return 1', 0)",
            "return redis.call('EVALSHA', redis.sha1hex(''), 0)",
            "return redis.call('SCRIPT', 'FLUSH')",
            "return redis.call('SCRIPT', 'LOAD', 'return 1')",
            "return redis.call('CLIENT', 'ID')",
            "return redis.call('CLIENT', 'SETNAME', 'x')",
            "return redis.call('CLIENT', 'TRACKING', 'ON')",
            "return redis.call('CONFIG', 'GET', 'save')",
            "return redis.call('AUTH', 'x')",
            "return redis.call('HELLO', 3)",
            "return redis.call('QUIT')",
            "return redis.call('RESET')",
            "return redis.call('ECHO', 'x')",
            "return redis.call('DBSIZE')",
            "redis.call('SELECT', 3) return redis.call('SET', 'elsewhere', 1)",
            "return redis.call('EXISTS', 'elsewhere', KEYS[1])",
        ],
    ),
    (
        "the libraries",
        &[
            "return {string.sub('abc', -2), ('x'):rep(3), #'abc', string.format('%.0f', 2^52)}",
            "return {string.match('12s3 w', '^%d+s(%d+) '), string.find('a:b', ':', 1, true)}",
            "return {math.floor(1.5), math.max(1, 3, 2), math.min(2, 1), 7 % 3, 2 ^ 10}",
            "return {table.concat({1, 2}, ','), unpack({1, 2, 3}, 2, 3)}",
            "local t = {} for i, v in ipairs({5, 6}) do t[#t + 1] = i * v end return t",
            "local t = {3, 1, 2} table.sort(t) return t",
            "return {tostring(1.5), tostring(17), tostring(nil), tonumber('0x10'), type(next)}",
            "local t = setmetatable({}, {__index = function() return 7 end}) return t.x",
            "return select('#', 1, nil, 3)",
            "return {rawequal(1, 1), rawget({5}, 1), #rawset({}, 1, 2)}",
            "return tostring(1e15) .. ' ' .. 1763835000000 .. ' ' .. 2^53",
            "return _G.KEYS[1] .. _VERSION",
        ],
    ),
];

fn run(sequence: &mut Sequence, scripts: &[&str]) {
    for source in scripts {
        sequence.run(
            "DEL text list set\nSET text words\nLPUSH list x y\nZADD set 2 b 1.5 a 1763835000000 c",
        );
        let source = source.replace(";;", "\n");
        let words = [
            "EVAL", &source, "4", "text", "list", "set", "none", "first", "2",
        ];
        sequence.compare(&words.map(|word| word.as_bytes().to_vec()));
    }
}

#[test]
fn a_script_has_the_same_reply() {
    let rig = Rig::start(None);
    for (name, scripts) in SCRIPTS {
        run(&mut rig.sequence(name), scripts);
    }
}

#[test]
fn a_script_has_the_same_reply_in_resp3() {
    support::needs!(Resp3);
    let rig = Rig::start(None);
    for (name, scripts) in SCRIPTS {
        let mut sequence = rig.sequence(name);
        sequence.run("HELLO 3");
        run(&mut sequence, scripts);
    }
}
