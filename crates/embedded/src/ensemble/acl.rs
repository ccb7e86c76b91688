//! Who may do what with a znode: the schemes `world`, `digest` and `auth`.

use super::refusal::Refusal;
use super::request::AclEntry;

/// What is permitted, as bits. `admin`, 16, is for requests that this server does not know.
pub(super) mod permission {
    pub(in super::super) const READ: i32 = 1;
    pub(in super::super) const WRITE: i32 = 2;
    pub(in super::super) const CREATE: i32 = 4;
    pub(in super::super) const DELETE: i32 = 8;
}

/// Credentials that a connection has shown, without the password: `user:digest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity(Box<str>);

impl Identity {
    /// The identity of `user:password`: the user, and the SHA-1 of both in Base64.
    pub(super) fn digest(credentials: &[u8]) -> Self {
        let user = credentials.split(|byte| *byte == b':').next().unwrap_or_default();
        let digest = sha1_smol::Sha1::from(credentials).digest().bytes();
        Self(format!("{}:{}", String::from_utf8_lossy(user), base64(&digest)).into())
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The access control list of a znode. An empty one permits everything to everybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Acl(Vec<Grant>);

/// Permissions for one identity, or for everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Grant {
    permissions: i32,
    to: Option<Identity>,
}

impl Acl {
    /// Everybody may read it, and nobody may change it.
    pub(super) fn read_only() -> Self {
        Self(vec![Grant { permissions: permission::READ, to: None }])
    }

    /// The list for a new znode. `auth` stands for the identities of who creates it.
    pub(super) fn of_request(
        entries: &[AclEntry<'_>],
        identities: &[Identity],
    ) -> Result<Self, Refusal> {
        let mut grants = Vec::new();
        for AclEntry { permissions, scheme, id } in entries {
            let grant = |to| Grant { permissions: *permissions, to };
            match *scheme {
                "world" if *id == "anyone" => grants.push(grant(None)),
                "digest" if id.split(':').count() == 2 => {
                    grants.push(grant(Some(Identity((*id).into()))));
                }
                "auth" if !identities.is_empty() => {
                    grants.extend(identities.iter().cloned().map(|it| grant(Some(it))));
                }
                _ => return Err(Refusal::InvalidAcl),
            }
        }
        if grants.is_empty() { Err(Refusal::InvalidAcl) } else { Ok(Self(grants)) }
    }

    /// Fails unless one of these identities, or everybody, has this permission.
    pub(super) fn check(&self, permission: i32, identities: &[Identity]) -> Result<(), Refusal> {
        let is_for_us = |to: &Identity| identities.contains(to);
        let is_granted = |grant: &Grant| {
            grant.permissions & permission != 0 && grant.to.as_ref().is_none_or(is_for_us)
        };
        if self.0.is_empty() || self.0.iter().any(is_granted) {
            Ok(())
        } else {
            Err(Refusal::NoAuth)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_zookeeper() {
        // From the manual of ZooKeeper's administrators.
        let identity = Identity::digest(b"super:test");
        assert_eq!(&*identity.0, "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");
    }

    #[test]
    fn base64_is_padded() {
        let texts =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, encoded) in texts {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }
}
