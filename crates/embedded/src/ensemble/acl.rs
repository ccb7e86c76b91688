//! Who may do what with a znode: the schemes `world`, `digest` and `auth`.

use super::messages::{AclEntry, Refusal};

/// What is permitted, as bits. `admin`, 16, is for requests that this server does not know.
pub(super) mod permission {
    pub(in crate::ensemble) const READ: i32 = 1;
    pub(in crate::ensemble) const WRITE: i32 = 2;
    pub(in crate::ensemble) const CREATE: i32 = 4;
    pub(in crate::ensemble) const DELETE: i32 = 8;
}

/// Credentials that a connection has shown, without the password: `user:digest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AclIdentity(Box<str>);

impl AclIdentity {
    /// The identity of `user:password`: the user, and the SHA-1 of both in Base64.
    pub(super) fn digest(credentials: &[u8]) -> Self {
        let user = credentials
            .split(|byte| *byte == b':')
            .next()
            .unwrap_or_default();
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
            text.push(if place <= chunk.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    text
}

/// The access control list of a znode. An empty one permits everything to everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ZnodeAcl(Vec<AclGrant>);

/// Permissions for one identity, or for everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AclGrant {
    permissions: i32,
    to: Option<AclIdentity>,
}

impl ZnodeAcl {
    /// Permits everything.
    pub(super) fn open() -> Self {
        Self(Vec::new())
    }

    /// Permits everybody to read.
    pub(super) fn read_only() -> Self {
        Self(vec![AclGrant {
            permissions: permission::READ,
            to: None,
        }])
    }

    /// The list for a new znode. `auth` stands for the identities of who creates it.
    pub(super) fn of_request(
        entries: &[AclEntry<'_>],
        identities: &[AclIdentity],
    ) -> Result<Self, Refusal> {
        let mut grants = Vec::new();
        for AclEntry {
            permissions,
            scheme,
            id,
        } in entries
        {
            let permissions = *permissions;
            match *scheme {
                "world" if *id == "anyone" => grants.push(AclGrant {
                    permissions,
                    to: None,
                }),
                "digest" if id.split(':').count() == 2 => {
                    let to = Some(AclIdentity((*id).into()));
                    grants.push(AclGrant { permissions, to });
                }
                "auth" if !identities.is_empty() => {
                    for identity in identities {
                        let to = Some(identity.clone());
                        grants.push(AclGrant { permissions, to });
                    }
                }
                _ => return Err(Refusal::InvalidAcl),
            }
        }
        if grants.is_empty() {
            Err(Refusal::InvalidAcl)
        } else {
            Ok(Self(grants))
        }
    }

    /// Fails unless one of these identities, or everybody, has this permission.
    pub(super) fn check(&self, permission: i32, identities: &[AclIdentity]) -> Result<(), Refusal> {
        let mut grants = self.0.iter();
        let is_permitted = self.0.is_empty()
            || grants.any(|grant| {
                let is_for_us = grant.to.as_ref().is_none_or(|to| identities.contains(to));
                grant.permissions & permission != 0 && is_for_us
            });
        is_permitted.then_some(()).ok_or(Refusal::NoAuth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_zookeeper() {
        // From the manual of ZooKeeper's administrators.
        let identity = AclIdentity::digest(b"super:test");
        assert_eq!(&*identity.0, "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");
    }

    #[test]
    fn base64_is_padded() {
        let texts = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ];
        for (plain, encoded) in texts {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }
}
