//! The parts of a URL that are optional: database, credentials, the name to verify, and the layout.

use super::{Address, NodeUrl, NodeUrlErrorKind, host, percent};
#[cfg(feature = "zookeeper")]
use crate::zookeeper::name::Layout;

/// A number without sign or blanks. The standard library's parser accepts a sign.
pub(super) fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Settings that a URL may contain once, in one of several places.
#[derive(Default)]
pub(super) struct Options {
    database: Option<u32>,
    pub(super) user: Option<Vec<u8>>,
    pub(super) password: Option<Vec<u8>>,
    pub(super) server_name: Option<String>,
    #[cfg(feature = "zookeeper")]
    pub(super) layout: Option<Layout>,
}

impl Options {
    /// Parses `user:password`, the text before the `@`. The password may contain colons. Text
    /// without a colon is a password to some programs and a user to others. Here it is an error:
    /// if a password were parsed as a user, it would be shown.
    pub(super) fn credentials(&mut self, text: &str) -> Result<(), NodeUrlErrorKind> {
        let (user, password) = match text.split_once(':') {
            Some(both) => both,
            None if text.is_empty() => ("", ""),
            None => return Err(NodeUrlErrorKind::AmbiguousCredentials),
        };
        self.set("user", user)?;
        self.set("password", password)
    }

    /// Takes `name=value&name=value`, as it stands behind the `?`.
    pub(super) fn query(
        &mut self,
        query: &str,
        known: &[&'static str],
    ) -> Result<(), NodeUrlErrorKind> {
        if query.is_empty() {
            return Ok(());
        }
        query.split('&').try_for_each(|option| {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match known.iter().find(|known| **known == name) {
                Some(name) => self.set(name, value),
                None => Err(NodeUrlErrorKind::unknown_option(name)),
            }
        })
    }

    pub(super) fn set(&mut self, name: &'static str, value: &str) -> Result<(), NodeUrlErrorKind> {
        let value = percent::decode(value).ok_or(NodeUrlErrorKind::BadPercentEscape)?;
        let before = match name {
            "db" => {
                let database = std::str::from_utf8(&value).ok().and_then(number);
                self.database.replace(database.ok_or(NodeUrlErrorKind::BadDatabase)?).is_some()
            }
            "server_name" => {
                let name = std::str::from_utf8(&value).ok().and_then(host::server_name);
                let name = name.ok_or(NodeUrlErrorKind::BadServerName)?;
                self.server_name.replace(name).is_some()
            }
            #[cfg(feature = "zookeeper")]
            "layout" => {
                let layout = match &*value {
                    b"curator" => Layout::Curator,
                    b"kazoo" => Layout::Kazoo,
                    _ => return Err(NodeUrlErrorKind::BadLayout),
                };
                self.layout.replace(layout).is_some()
            }
            _ if value.is_empty() => false,
            "user" => self.user.replace(value).is_some(),
            _ => self.password.replace(value).is_some(),
        };
        if before { Err(NodeUrlErrorKind::RepeatedOption(name)) } else { Ok(()) }
    }

    pub(super) fn url(self, address: Address) -> Result<NodeUrl, NodeUrlErrorKind> {
        let Self { database, user, password, server_name, .. } = self;
        Ok(NodeUrl { address, server_name, user, password, database: database.unwrap_or(0) })
    }
}
