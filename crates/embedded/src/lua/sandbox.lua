-- What a script sees of Lua: most globals that Redis gives it, which it cannot change.
--
-- Arguments: redis.call, redis.pcall and redis.sha1hex; the line that the script is at; the text of
-- the node's last error; and whether the script has run for too long.
-- Returns: the globals, and a function that runs a script.
local call, command_pcall, sha1hex, line, failure, is_over = ...
local error, getmetatable, pcall, rawset, select, setmetatable, tostring, type, xpcall =
  error, getmetatable, pcall, rawset, select, setmetatable, tostring, type, xpcall
local find, gsub = string.find, string.gsub

local is_frozen = {}

local function refuse()
  error('Attempt to modify a readonly table', 2)
end

local function frozen(table)
  local seen = setmetatable({}, {__index = table, __newindex = refuse, __metatable = false})
  is_frozen[seen] = true
  return seen
end

-- What a call of a script raises is a text, or an error of the node, which is not a value of Lua.
local function text_of(raised)
  if type(raised) == 'userdata' then
    return failure()
  end
  return type(raised) == 'table' and type(raised.err) == 'string' and raised.err or raised
end

local function caught(is_well, raised, ...)
  if is_well then
    return true, raised, ...
  end
  if is_over() then
    error(raised, 0)
  end
  return false, text_of(raised)
end

local redis = {call = call, pcall = command_pcall, sha1hex = sha1hex}

function redis.error_reply(text, ...)
  if type(text) ~= 'string' or select('#', ...) > 0 then
    return {err = 'ERR wrong number or type of arguments'}
  end
  text = gsub(text, '^%-', '')
  return {err = find(text, ' ', 1, true) and text or 'ERR ' .. text}
end

function redis.status_reply(text, ...)
  if type(text) ~= 'string' or select('#', ...) > 0 then
    return {err = 'ERR wrong number or type of arguments'}
  end
  return {ok = text}
end

local globals = {
  assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs, next = next,
  pairs = pairs, rawequal = rawequal, rawget = rawget, select = select,
  setmetatable = setmetatable, tonumber = tonumber, tostring = tostring, type = type,
  unpack = unpack, _VERSION = _VERSION,
  math = frozen(math), redis = frozen(redis), string = frozen(string), table = frozen(table),
}

function globals.pcall(...)
  return caught(pcall(...))
end

function globals.rawset(table, ...)
  if is_frozen[table] then
    refuse()
  end
  return rawset(table, ...)
end

local script_globals = frozen(globals)
globals._G = script_globals

setmetatable(globals, {__index = function(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end})
getmetatable('').__metatable = false

-- The text of an error, with the line of the script that raised it.
local sha1
local function with_place(raised)
  local text = text_of(raised)
  text = type(raised) == 'string' and 'ERR ' .. text or tostring(text)
  local number = line()
  return number and text .. ' script: ' .. sha1 .. ', on @user_script:' .. number .. '.' or text
end

local function run(script, digest, keys, argv)
  globals.KEYS, globals.ARGV, sha1 = keys, argv, digest
  local is_well, result = xpcall(script, with_place)
  if result == 'not enough memory' and not is_well then
    result = 'ERR ' .. result -- for which Lua does not call with_place
  end
  return is_well, result
end

return script_globals, run
