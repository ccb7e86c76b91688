//! A finding: how bad it is, of which node, and what to do.

use crate::exit;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Ok,
    /// It breaks a promise of the lock in a fault that is to be expected, or hides one.
    Warning,
    /// The node takes no part in locks, or not in all that they need.
    Error,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Finding {
    /// The node's URL. `None` if it is about all of them.
    pub(super) node: Option<Arc<str>>,
    pub(super) level: Level,
    /// What was looked at, in a word.
    pub(super) check: &'static str,
    /// What is so, and what to do about it.
    text: String,
}

impl Finding {
    pub(super) fn of(
        node: &Arc<str>,
        level: Level,
        check: &'static str,
        text: &impl ToString,
    ) -> Self {
        Self {
            node: Some(Arc::clone(node)),
            ..Self::of_all(level, check, text)
        }
    }

    pub(super) fn of_all(level: Level, check: &'static str, text: &impl ToString) -> Self {
        Self {
            node: None,
            level,
            check,
            text: exit::words(text),
        }
    }

    pub(super) fn to_row(&self) -> Vec<String> {
        let node = self.node.as_deref().unwrap_or("all").to_owned();
        vec![
            self.level.as_str().to_owned(),
            node,
            self.check.to_owned(),
            self.text.clone(),
        ]
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "node": self.node.as_deref(),
            "level": self.level.as_str(),
            "check": self.check,
            "text": self.text,
        })
    }
}
