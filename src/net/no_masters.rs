//! In place of `masters`, without the feature `groups`: nobody is asked.

use super::locate::{Found, no_name};
use crate::node_url::Address;
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub(crate) struct LookupAuth {}

pub(super) fn find(_: &Address, _: &LookupAuth, _: Duration) -> Found {
    Err(no_name())
}
