//! The group that nodes which are started together are: they keep registers without a formation.

use std::io;

use super::database::{Database, Entry, Value};
use redlatch_registers::{Epoch, Group, Member, Place, RegisterKeys};

/// The members of a group in its first epoch: the nodes at these URLs.
pub(super) fn members(urls: impl Iterator<Item = String>) -> io::Result<Vec<Member>> {
    let places: Vec<Place> =
        urls.map(|url| Ok(Place::new(draw()?, &url))).collect::<io::Result<_>>()?;
    let group = Group { id: draw()?, epoch: 1, token: draw()? };
    let epoch = Epoch { group, members: places.as_slice().into() };
    let member = |Place { id, .. }| {
        let (epoch, run_id) = (epoch.clone(), String::new());
        Member { epoch, run_id, id, is_durable: false }
    };
    Ok(places.into_iter().map(member).collect())
}

/// Makes a node a member, from its start to its end: it loses its memory with that.
pub(super) fn join(database: &mut Database, run_id: &str, member: &Member) {
    let mark = Member { run_id: run_id.to_owned(), ..member.clone() }.to_bytes();
    let value = Value::String(mark.to_vec());
    database.insert(0, RegisterKeys::MARK, Entry { value, expires_at_ms: None });
}

fn draw() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(u64::from_le_bytes(bytes))
}
