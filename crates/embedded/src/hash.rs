//! The commands on hashes: `HSET` and `HMGET`, which the marker of a group's reign needs.

use super::command::{Call, wrong_arity};
use super::database::{StoredValue, bulk_or_null};
use super::reply::{CommandError, CommandResult, OwnedReply, count};
use std::collections::BTreeMap;

/// The fields of a hash, and their values.
pub(super) type Hash = BTreeMap<Vec<u8>, Vec<u8>>;

/// `HSET key field value [field value ...]`
pub(super) fn hset(call: &mut Call<'_>) -> CommandResult {
    let pairs = call.args[2..].chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(wrong_arity("hset"));
    }
    let (database, args) = call.parts();
    let mut created = Hash::new();
    let found = database.hash(args[1])?;
    let is_new = found.is_none();
    let hash = found.unwrap_or(&mut created);
    let mut added = 0;
    for pair in pairs {
        added += usize::from(hash.insert(pair[0].to_vec(), pair[1].to_vec()).is_none());
    }
    if is_new {
        database.insert(args[1], StoredValue::Hash(created), None);
    } else {
        database.touch(args[1]);
    }
    Ok(count(added))
}

/// `HMGET key field [field ...]`
pub(super) fn hmget(call: &mut Call<'_>) -> CommandResult {
    let (database, args) = call.parts();
    let hash = database.hash(args[1])?;
    let value = |field: &&[u8]| hash.as_ref().and_then(|hash| hash.get(*field));
    let values = args[2..]
        .iter()
        .map(|field| bulk_or_null(value(field).map(Vec::as_slice)));
    Ok(OwnedReply::Array(values.collect()))
}

impl super::database::Database {
    /// The value of a key, which must be a hash.
    fn hash(&mut self, key: &[u8]) -> Result<Option<&mut Hash>, CommandError> {
        match self.find(key).map(|entry| &mut entry.value) {
            None => Ok(None),
            Some(StoredValue::Hash(hash)) => Ok(Some(hash)),
            Some(_) => Err(CommandError::wrong_type()),
        }
    }
}
