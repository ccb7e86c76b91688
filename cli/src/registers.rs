//! `redlatch registers`: small values that a majority of the nodes agrees on.

pub(crate) mod arguments;
mod list;
mod members;
mod value;

pub(crate) use members::is_of_group;

use super::arguments::NodeArguments;
use super::exit::{self, Failure};
use super::inspect::{exact, shown};
use super::{output, settings};
use arguments::{
    DeleteArguments, FormArguments, RegistersArguments, RegistersCommand, SweepArguments,
};
use redlatch::register::{Swept, Value};
use redlatch::{LockClient, RegisterError};
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

pub(crate) fn registers(
    nodes: &NodeArguments,
    arguments: &RegistersArguments,
) -> Result<u8, Failure> {
    let client = settings::client(nodes)?;
    match &arguments.command {
        RegistersCommand::Form(arguments) => form(&client, arguments),
        RegistersCommand::List(arguments) => list::list(&client, arguments),
        RegistersCommand::Get(arguments) => value::get(&client, arguments),
        RegistersCommand::Set(arguments) => value::set(&client, arguments),
        RegistersCommand::Cas(arguments) => value::cas(&client, arguments),
        RegistersCommand::Delete(arguments) => delete(&client, arguments),
        RegistersCommand::Sweep(arguments) => sweep(&client, arguments),
        RegistersCommand::Status(arguments) => members::status(&client, arguments),
        RegistersCommand::Repair(arguments) => members::repair(&client, arguments),
        RegistersCommand::Trust(arguments) => members::trust(&client, arguments),
    }
}

fn form(client: &LockClient, arguments: &FormArguments) -> Result<u8, Failure> {
    let in_memory = arguments.in_memory;
    client
        .registers()
        .form(in_memory)
        .map_err(|error| match &error {
            RegisterError::NotDurable { .. } => Failure::new(
                exit::NO_GROUP,
                &format!("{error} (--in-memory accepts that)"),
            ),
            _ => error.into(),
        })?;
    let text = match arguments.json {
        true => json!({ "formed": true, "in_memory": in_memory }).to_string(),
        false => "the nodes are a group, and keep registers".to_owned(),
    };
    print_line(&text)
}

fn delete(client: &LockClient, arguments: &DeleteArguments) -> Result<u8, Failure> {
    let name = &arguments.name;
    let register = client.register(name.as_bytes())?;
    let deleted = register.delete()?;
    // The keys are removed once the last node has answered, which a program that ends now would not
    // see. If it is later still, or down, `sweep` removes them.
    let _ = register.read();
    if arguments.json {
        let version = deleted.as_ref().map(version);
        let is_deleted = deleted.is_some();
        let json =
            json!({ "name": exact(name.as_bytes()), "deleted": is_deleted, "version": version });
        output::print(&format!("{json}\n"))?;
        return Ok(if is_deleted {
            exit::SUCCESS
        } else {
            exit::NO_VALUE
        });
    }
    let deleted = deleted.ok_or_else(|| no_value(name))?;
    print_line(&format!(
        "{}: deleted version {}",
        shown(name.as_bytes()),
        version(&deleted)
    ))
}

fn sweep(client: &LockClient, arguments: &SweepArguments) -> Result<u8, Failure> {
    let pattern = arguments
        .pattern
        .as_deref()
        .map_or(&b"*"[..], OsStr::as_bytes);
    let delete = |age| client.registers().delete_older_than(pattern, age);
    let deleted = arguments.older_than.map(delete).transpose()?;
    let Swept {
        values,
        removed,
        left,
        ..
    } = client.registers().sweep()?;
    let text = match arguments.json {
        true => {
            let deleted = deleted.unwrap_or(0);
            json!({ "deleted": deleted, "values": values, "removed": removed, "left": left })
                .to_string()
        }
        false => {
            let why = if left > 0 {
                " (a node did not answer, or refused)"
            } else {
                ""
            };
            let deleted = deleted.map_or(String::new(), |it| format!("{it} deleted; "));
            format!(
                "{deleted}{}; deleted ones: {removed} removed, {left} left{why}",
                count(values)
            )
        }
    };
    print_line(&text)
}

fn count(registers: usize) -> String {
    if registers == 1 {
        "1 register".to_owned()
    } else {
        format!("{registers} registers")
    }
}

fn version(value: &Value) -> u64 {
    value.version().as_u64()
}

fn no_value(name: &OsStr) -> Failure {
    let text = format!("{}: there is no such register", shown(name.as_bytes()));
    Failure::new(exit::NO_VALUE, &text)
}

fn print_line(text: &str) -> Result<u8, Failure> {
    output::print(&format!("{text}\n"))?;
    Ok(exit::SUCCESS)
}
