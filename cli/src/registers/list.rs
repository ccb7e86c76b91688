//! `redlatch registers list`: the registers that have a value.

use super::arguments::ListArguments;
use super::count;
use crate::exit::{self, Failure};
use crate::inspect::{age, exact, shown, unix_millis};
use crate::{duration, output, table};
use redlatch::register::{Register, Value};
use redlatch::{LockClient, RegisterError};
use serde_json::json;
use std::os::unix::ffi::OsStrExt;

/// How often the nodes are asked about one register: of many, some are read when a node is slow.
const TRIES: u32 = 3;

/// A register that has a value, or one that this version cannot read.
struct Row {
    register: Register,
    value: Result<Value, RegisterError>,
}

pub(super) fn list(client: &LockClient, arguments: &ListArguments) -> Result<u8, Failure> {
    let mut rows = Vec::new();
    let mut without_value = 0;
    for register in client.registers().list(arguments.pattern.as_bytes()) {
        let register = register?;
        match read(&register) {
            Ok(Some(value)) => rows.push(Row {
                register,
                value: Ok(value),
            }),
            Ok(None) => without_value += 1,
            Err(error @ RegisterError::OtherFormat { .. }) => {
                rows.push(Row {
                    register,
                    value: Err(error),
                });
            }
            Err(error) => return Err(error.into()),
        }
    }
    rows.sort_by(|one, other| {
        one.register
            .name()
            .as_bytes()
            .cmp(other.register.name().as_bytes())
    });
    let text = if arguments.json {
        format!(
            "{}\n",
            serde_json::Value::Array(rows.iter().map(to_json).collect())
        )
    } else {
        to_text(&rows, without_value)
    };
    output::print(&text)?;
    Ok(exit::SUCCESS)
}

fn read(register: &Register) -> Result<Option<Value>, RegisterError> {
    for _ in 1..TRIES {
        match register.read() {
            Err(RegisterError::NoQuorum { .. }) => {}
            result => return result,
        }
    }
    register.read()
}

fn to_text(rows: &[Row], without_value: usize) -> String {
    let mut text = count(rows.len());
    if without_value > 0 {
        text += &format!(
            "; deleted ones of which something is left: {without_value} (`redlatch registers \
             sweep` removes it)"
        );
    }
    text.push('\n');
    if rows.is_empty() {
        return text;
    }
    let line = |row: &Row| {
        let mut cells = vec![shown(row.register.name().as_bytes())];
        match &row.value {
            Ok(value) => cells.extend([
                super::version(value).to_string(),
                table::cell(value.fence()),
                value.bytes().len().to_string(),
                format!("{} ago", duration::show(age(value.written_at()))),
            ]),
            Err(error) => cells.push(error.to_string()),
        }
        cells
    };
    // The text of an error takes the place of all other cells, and must not widen the first one.
    let (read, unread): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.value.is_ok());
    let lines: Vec<_> = read.into_iter().map(line).collect();
    text += "\n";
    text += &table::render(
        &["REGISTER", "VERSION", "FENCE", "LENGTH", "WRITTEN"],
        &lines,
    );
    for row in unread {
        text += &format!("{}\n", line(row).join(": "));
    }
    text
}

fn to_json(row: &Row) -> serde_json::Value {
    let value = row.value.as_ref().ok();
    json!({
        "name": exact(row.register.name().as_bytes()),
        "version": value.map(super::version),
        "fence": value.and_then(Value::fence).map(u64::from),
        "length": value.map(|value| value.bytes().len()),
        "written_unix_millis": value.map(|value| unix_millis(value.written_at())),
        "error": row.value.as_ref().err().map(ToString::to_string),
    })
}
