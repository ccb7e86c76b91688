//! In place of `groups`, without the feature `groups`: a node gets nothing more.

use crate::config::Settings;
use crate::net::{LookupAuth, TlsTarget};
use crate::node::SessionOptions;
use crate::node_url::NodeUrl;

pub(super) fn lookup_auth(_: &NodeUrl, _: Option<TlsTarget>, _: &Settings) -> LookupAuth {
    LookupAuth {}
}

pub(super) fn adapt(_: &mut SessionOptions, _: &NodeUrl, _: &Settings) {}
