//! `redlatch transactions`: those that are not at their end, and their abortion.

use super::arguments::{AbortArguments, NodeArguments, TransactionsArguments, TransactionsCommand};
use super::exit::{self, Failure};
use super::inspect::shown;
use super::{duration, output, settings, table};
use redlatch::TransactionError;
use redlatch::transaction::{Decision, Transaction, TransactionId};
use serde_json::{Value, json};

pub(crate) fn transactions(
    nodes: &NodeArguments,
    arguments: &TransactionsArguments,
) -> Result<u8, Failure> {
    let is_json = arguments.json;
    if let Some(TransactionsCommand::Abort(arguments)) = &arguments.command {
        return abort(nodes, arguments, is_json);
    }
    let found = settings::client(nodes)?.transactions().list()?;
    let text = if is_json {
        format!("{}\n", Value::Array(found.iter().map(to_json).collect()))
    } else {
        to_text(&found)
    };
    output::print(&text)?;
    Ok(exit::SUCCESS)
}

fn to_text(found: &[Transaction]) -> String {
    let count = match found.len() {
        1 => "1 transaction is not at its end".to_owned(),
        count => format!("{count} transactions are not at their end"),
    };
    if found.is_empty() {
        return format!("{count}\n");
    }
    let mut rows = Vec::new();
    for it in found {
        let names = it.awaited.iter();
        let awaited: Vec<String> = names.map(|name| shown(name.as_bytes())).collect();
        rows.push(vec![
            it.id.to_string(),
            state(it).to_owned(),
            duration::show(it.age),
            awaited.join(", "),
        ]);
    }
    let table = table::render(&["TRANSACTION", "STATE", "AGE", "WAITS FOR"], &rows);
    format!("{count}\n\n{table}")
}

fn to_json(it: &Transaction) -> Value {
    json!({
        "id": it.id.to_string(),
        "state": state(it),
        "age_seconds": duration::seconds(it.age),
        "participants": it.participants,
        "awaited": it.awaited,
    })
}

fn state(it: &Transaction) -> &'static str {
    if it.is_committed { "committed" } else { "open" }
}

fn abort(nodes: &NodeArguments, arguments: &AbortArguments, is_json: bool) -> Result<u8, Failure> {
    let id: TransactionId = arguments
        .id
        .parse()
        .map_err(|error| Failure::usage(&error))?;
    let decision = settings::client(nodes)?.transactions().abort(&id)?;
    let (code, text) = match decision {
        Decision::Aborted => (exit::SUCCESS, "aborted"),
        Decision::Committed => (
            exit::COMMITTED,
            "it is committed; its participants finish when they start",
        ),
        Decision::Over => (
            exit::NO_VALUE,
            "it is over, or never was; its participants may have committed: see their databases",
        ),
    };
    let text = format!("{id}: {text}");
    if is_json {
        let json = json!({ "id": id.to_string(), "aborted": code == exit::SUCCESS });
        output::print(&format!("{json}\n"))?;
    } else if code == exit::SUCCESS {
        output::print(&format!("{text}\n"))?;
    } else {
        return Err(Failure::new(code, &text));
    }
    Ok(code)
}

impl From<TransactionError> for Failure {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Register(error) => error.into(),
            TransactionError::OtherGroup { .. } => Self::new(exit::NO_GROUP, &error),
            _ => Self::usage(&error),
        }
    }
}
