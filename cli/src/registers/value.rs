//! `redlatch registers get`, `set` and `cas`: one value.

use super::arguments::{CasArguments, GetArguments, SetArguments, ValueArgument};
use super::{no_value, print_line, version};
use crate::exit::{self, Failure};
use crate::inspect::{exact, shown, unix_millis};
use crate::output;
use redlatch::register::{VALUE_MAX, Value, Version};
use redlatch::{LockClient, RegisterError};
use serde_json::json;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;

pub(super) fn get(client: &LockClient, arguments: &GetArguments) -> Result<u8, Failure> {
    let name = &arguments.name;
    let value = client.register(name.as_bytes())?.read()?;
    if arguments.json {
        let json = json!({
            "name": exact(name.as_bytes()),
            "version": value.as_ref().map(version),
            "fence": value.as_ref().and_then(Value::fence).map(u64::from),
            "written_unix_millis": value.as_ref().map(|value| unix_millis(value.written_at())),
            "value": value.as_ref().map(|value| exact(value.bytes())),
        });
        output::print(&format!("{json}\n"))?;
        return Ok(if value.is_some() {
            exit::SUCCESS
        } else {
            exit::NO_VALUE
        });
    }
    let value = value.ok_or_else(|| no_value(name))?;
    if output::stdout_is_terminal() {
        output::print(&for_terminal(value.bytes()))?;
    } else {
        output::print_bytes(value.bytes())?;
    }
    Ok(exit::SUCCESS)
}

pub(super) fn set(client: &LockClient, arguments: &SetArguments) -> Result<u8, Failure> {
    let name = &arguments.name;
    let register = client.register(name.as_bytes())?;
    let new = bytes(&arguments.value)?;
    let Some(token) = arguments.fence else {
        let changed = register.change(|_| Some(new.to_vec()))?;
        let version = changed.version().expect("the change has put a value");
        return print_written(name, version, arguments.json);
    };
    match register.write_fenced(token, &new)? {
        Ok(version) => print_written(name, version, arguments.json),
        Err(stale) if arguments.json => {
            let by = stale.by().as_u64();
            let json = json!({ "name": exact(name.as_bytes()), "written": false, "fence": by });
            output::print(&format!("{json}\n"))?;
            Ok(exit::STALE)
        }
        Err(stale) => {
            let text = format!("{}: nothing was written: {stale}", shown(name.as_bytes()));
            Err(Failure::new(exit::STALE, &text))
        }
    }
}

pub(super) fn cas(client: &LockClient, arguments: &CasArguments) -> Result<u8, Failure> {
    let name = &arguments.name;
    let register = client.register(name.as_bytes())?;
    let new = bytes(&arguments.value)?;
    let current = match register.compare_and_set(arguments.version.0, &new)? {
        Ok(version) => return print_written(name, version, arguments.json),
        Err(current) => current.as_ref().map(version),
    };
    if arguments.json {
        let json = json!({ "name": exact(name.as_bytes()), "written": false, "version": current });
        output::print(&format!("{json}\n"))?;
        return Ok(exit::OTHER_VERSION);
    }
    let is = current.map_or_else(
        || "there is no value".to_owned(),
        |version| format!("its version is {version}"),
    );
    let text = format!("{}: nothing was written: {is}", shown(name.as_bytes()));
    Err(Failure::new(exit::OTHER_VERSION, &text))
}

fn print_written(name: &OsStr, version: Version, is_json: bool) -> Result<u8, Failure> {
    let version = version.as_u64();
    print_line(&match is_json {
        true => json!({ "name": exact(name.as_bytes()), "written": true, "version": version })
            .to_string(),
        false => format!("{}: version {version}", shown(name.as_bytes())),
    })
}

/// The value from the arguments, or from stdin.
fn bytes(argument: &ValueArgument) -> Result<Cow<'_, [u8]>, Failure> {
    let Some(value) = argument.value.as_ref().filter(|value| *value != "-") else {
        return read_stdin().map(Cow::from);
    };
    let length = value.len();
    let most = VALUE_MAX;
    if length > most {
        // The library says so too, but asks the nodes first: it has `set` make the value.
        return Err(RegisterError::TooLong { length, most }.into());
    }
    Ok(value.as_bytes().into())
}

fn read_stdin() -> Result<Vec<u8>, Failure> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        output::note("reads the value from the terminal, to the end of the input (^D)");
    }
    let mut bytes = Vec::new();
    // Stdin may have no end, so one byte more than fits is enough.
    let limit = VALUE_MAX as u64 + 1;
    let read = stdin.lock().take(limit).read_to_end(&mut bytes);
    read.map_err(|error| Failure::system("stdin", &error))?;
    if bytes.len() > VALUE_MAX {
        let text = format!("stdin has more than {VALUE_MAX} bytes, the most of a register");
        return Err(Failure::usage(&text));
    }
    Ok(bytes)
}

/// The value as text that does not act on a terminal, in lines of its own.
fn for_terminal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text += &output::visible(chunk.valid());
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::for_terminal;

    #[test]
    fn a_terminal_gets_lines_of_text() {
        assert_eq!(for_terminal(b"one"), "one\n");
        assert_eq!(for_terminal(b"one\ntwo\n"), "one\ntwo\n");
        assert_eq!(for_terminal(b""), "\n");
        assert_eq!(for_terminal(b"\x1b[31m\xff\xc3\xbc"), "\\u{1b}[31m\\xffü\n");
    }
}
