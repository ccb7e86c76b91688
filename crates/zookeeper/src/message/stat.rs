//! What a server knows about a znode besides its data.

use crate::jute::{JuteError, Reader};

/// The stat of a znode: 68 bytes, of which these fields are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The transaction that created it.
    pub created_by: i64,
    /// When that was, in milliseconds since 1970, by the leader's clock.
    pub created_at_ms: i64,
    /// The session with which it ends; 0 if it is not ephemeral.
    pub owner: i64,
    /// The number of its children.
    pub children: i32,
}

impl Stat {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, JuteError> {
        let created_by = reader.long()?;
        let _modified_by = reader.long()?;
        let created_at_ms = reader.long()?;
        let _modified_at_ms = reader.long()?;
        let _versions = (reader.int()?, reader.int()?, reader.int()?);
        let owner = reader.long()?;
        let _data_length = reader.int()?;
        let children = reader.int()?;
        let _children_changed_by = reader.long()?;
        Ok(Self { created_by, created_at_ms, owner, children })
    }
}
