//! The mark by which a node is a member of a group, and may vote on its registers.
//!
//! A node that has forgotten what it promised must not vote. So each script compares the mark in
//! the step that acts: a server that lost its memory has lost the mark as well, and one that was
//! started again has another `run_id`.

use super::{Ballot, MembershipView, NodeMark};
use redlatch_protocol::engine::{NoVote, Node, RegisterMembership};
use std::fmt;
use std::sync::Arc;

/// How every mark begins, and its format.
const BEGIN: &str = "redlatch 1";

/// How the mark of a node begins that is being made a member. A number that the node has drawn
/// follows, and the `run_id` of its server.
pub const JOINING: &str = "redlatch 1 joining ";

/// A group of nodes in one of its epochs. Two groups, or two epochs with one number, have other
/// tokens.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Group {
    /// Which group: drawn when it was formed.
    pub id: u64,
    /// The number of its epoch.
    pub epoch: u64,
    /// Drawn for this epoch.
    pub token: u64,
}

impl Group {
    /// How the marks of its members begin: what follows is the `run_id` of the server.
    pub fn to_bytes(&self) -> Arc<[u8]> {
        self.to_string().into_bytes().into()
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, epoch, token } = self;
        write!(f, "{BEGIN} {id:016x} {epoch} {token:016x} ")
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_string().trim_end())
    }
}

/// An epoch of a group: who its members are.
///
/// The first is decided by the formation, and each other one by a majority of the one before it, as
/// the value of a register. So two epochs with one number never exist in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    pub group: Group,
    pub members: Arc<[MemberAddress]>,
}

/// The place of a member in its group. A node that shows nothing of what it was is given the place
/// of the member that was at its address, and that of another only if a person says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberAddress {
    /// Which member: the number was drawn when it became one.
    pub id: u64,
    /// Where it was then, as the client that made it one names it: without the scheme, the user and
    /// the password, which differ from client to client.
    pub address: Arc<str>,
}

impl MemberAddress {
    /// The longest address that is kept: the marks of 64 members must fit into an answer.
    const ADDRESS_MAX: usize = 100;

    /// The place of this member, which is at this URL.
    pub fn new(id: u64, url: &str) -> Self {
        Self {
            id,
            address: Arc::from(Self::address(url)),
        }
    }

    /// The address in a URL, as it is shown.
    pub fn address(url: &str) -> &str {
        let (_, authority) = url.split_once("://").unwrap_or(("", url));
        let (_, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (address, _) = place.split_once('?').unwrap_or((place, ""));
        match address.char_indices().nth(Self::ADDRESS_MAX) {
            Some((end, _)) => &address[..end],
            None => address,
        }
    }

    /// Reads what [`list`] writes of one member.
    fn parse(text: &str) -> Option<Self> {
        let (id, address) = text.split_once('@')?;
        Some(Self {
            id: hex(id)?,
            address: Arc::from(address),
        })
    }
}

impl Epoch {
    /// As it is kept in the register of the group.
    pub fn to_bytes(&self) -> Arc<[u8]> {
        self.to_string().into_bytes().into()
    }

    /// Reads what the register of the group has.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let words: Vec<&str> = words(std::str::from_utf8(bytes).ok()?)?;
        let [group, epoch, token, members] = words[..] else {
            return None;
        };
        Self::parse([group, epoch, token], members)
    }

    fn parse([id, epoch, token]: [&str; 3], members: &str) -> Option<Self> {
        let group = Group {
            id: hex(id)?,
            epoch: epoch.parse().ok()?,
            token: hex(token)?,
        };
        let members = members.split(',').map(MemberAddress::parse);
        Some(Self {
            group,
            members: members.collect::<Option<_>>()?,
        })
    }

    /// Has the epoch that follows no ballots? Then nothing could be changed in it.
    pub fn is_last(&self) -> bool {
        Ballot::beginning(self.group.epoch.saturating_add(1)) == Ballot::NUMBER_END
    }

    /// Has it this member?
    pub fn has(&self, id: u64) -> bool {
        self.members.iter().any(|member| member.id == id)
    }

    /// The epoch that follows, in which a member has another one's place.
    pub fn with(&self, (old, new): (u64, MemberAddress), token: u64) -> Self {
        let mut members = self.members.to_vec();
        for member in &mut members {
            if member.id == old {
                *member = new.clone();
            }
        }
        Self {
            group: Group {
                epoch: self.group.epoch + 1,
                token,
                ..self.group
            },
            members: members.into(),
        }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.group, list(&self.members))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Of a node that is being made a member.
    Joining(JoiningNode),
    Member(Member),
    /// Of a later version of this library, or of another program.
    Unknown,
}

/// A node that is being made a member.
///
/// It has drawn a number, so that what was sent to it before it lost its memory, and arrives when
/// it is being made a member once more, does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoiningNode {
    /// The number that it has drawn.
    pub number: u64,
    /// The run of the server.
    pub run_id: String,
}

impl JoiningNode {
    /// How the mark begins, up to the `run_id` of the server.
    pub fn beginning(&self) -> Arc<[u8]> {
        format!("{JOINING}{} ", self.number).into_bytes().into()
    }
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The epoch that the node has entered last.
    pub epoch: Epoch,
    /// The run of the server that has the memory of this member.
    pub run_id: String,
    pub id: u64,
    /// Has the server, ever since, kept all that it answered, also over a restart?
    pub is_durable: bool,
}

impl Member {
    pub fn to_bytes(&self) -> Arc<[u8]> {
        let Self {
            epoch,
            run_id,
            id,
            is_durable,
        } = self;
        let kind = if *is_durable { "durable" } else { "volatile" };
        let members = list(&epoch.members);
        let mark = format!("{}{run_id} {id:016x} {kind} {members}", epoch.group);
        mark.into_bytes().into()
    }
}

impl Mark {
    /// Reads a mark that a node keeps.
    pub fn read(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).ok();
        text.and_then(Self::parse).unwrap_or(Self::Unknown)
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix(JOINING) {
            let (number, run_id) = rest.strip_suffix(' ')?.split_once(' ')?;
            let run_id = Some(run_id).filter(|it| !it.contains(' '))?.to_owned();
            return Some(Self::Joining(JoiningNode {
                number: number.parse().ok()?,
                run_id,
            }));
        }
        let words = words(text)?;
        let [group, epoch, token, run_id, id, kind, members] = words[..] else {
            return None;
        };
        let is_durable = match kind {
            "durable" => true,
            "volatile" => false,
            _ => return None,
        };
        let epoch = Epoch::parse([group, epoch, token], members)?;
        let member = Member {
            epoch,
            run_id: run_id.to_owned(),
            id: hex(id)?,
            is_durable,
        };
        Some(Self::Member(member))
    }
}

/// The words behind the beginning.
fn words(text: &str) -> Option<Vec<&str>> {
    let rest = text.strip_prefix(BEGIN)?.strip_prefix(' ')?;
    Some(rest.split(' ').collect())
}

fn hex(word: &str) -> Option<u64> {
    if word.len() != 16 {
        return None;
    }
    u64::from_str_radix(word, 16).ok()
}

fn list(members: &[MemberAddress]) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|MemberAddress { id, address }| format!("{id:016x}@{address}"))
        .collect();
    members.join(",")
}

// Which nodes have a vote on registers, and why the others have none.

/// Why a node with this mark has no vote in this group, in its epoch. `None` if the nodes are no
/// group.
pub fn no_vote(mark: Option<&[u8]>, group: Option<&Group>) -> NoVote {
    match mark.map(Mark::read) {
        None => NoVote::NoMark,
        Some(Mark::Joining(_)) => NoVote::Joining,
        Some(Mark::Member(member)) if Some(&member.epoch.group) == group => NoVote::Restarted,
        Some(Mark::Member(_)) => NoVote::OtherGroup,
        Some(Mark::Unknown) => NoVote::OtherFormat,
    }
}

/// Whether those of `nodes` nodes that have answered have a vote.
pub fn memberships(seen: &[NodeMark], nodes: usize) -> Vec<(Node, RegisterMembership)> {
    let view = MembershipView::new(seen.to_vec(), nodes).ok();
    seen.iter()
        .map(|it| (it.node, membership(it, view.as_ref())))
        .collect()
}

/// Without a view, the nodes are not a group.
fn membership(seen: &NodeMark, view: Option<&MembershipView>) -> RegisterMembership {
    match (seen.member(), view) {
        (Some(member), Some(view)) if view.voters(view.epoch()).contains(seen.node) => {
            RegisterMembership::Member {
                epoch: view.epoch().group.epoch,
                is_durable: member.is_durable,
            }
        }
        _ => RegisterMembership::NoVote(seen.no_vote(view.map(MembershipView::epoch))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch() -> Epoch {
        let group = Group {
            id: 7,
            epoch: 3,
            token: u64::MAX,
        };
        let members = [(1, "a:1/0"), (u64::MAX, "b:1/0"), (0, "")];
        Epoch {
            group,
            members: members
                .map(|(id, address)| MemberAddress::new(id, address))
                .into(),
        }
    }

    #[test]
    fn an_address_is_the_same_for_all_users_and_has_an_end() {
        for url in [
            "redis://h:7/1",
            "rediss://u:***@h:7/1?server_name=x",
            "h:7/1",
        ] {
            assert_eq!(MemberAddress::address(url), "h:7/1", "{url}");
        }
        assert_eq!(
            MemberAddress::address("unix:///run/redis?db=0"),
            "/run/redis"
        );
        assert_eq!(
            MemberAddress::address(&format!("redis://{}", "x".repeat(400))).len(),
            100
        );
    }

    #[test]
    fn a_mark_is_read_back_and_others_are_unknown() {
        for is_durable in [false, true] {
            let run_id = "0123456789012345678901234567890123456789".to_owned();
            let member = Member {
                epoch: epoch(),
                run_id,
                id: 9,
                is_durable,
            };
            let bytes = member.to_bytes();
            assert!(bytes.starts_with(&epoch().group.to_bytes()));
            assert_eq!(Mark::read(&bytes), Mark::Member(member));
            assert_eq!(Mark::read(&[&bytes[..], b" more"].concat()), Mark::Unknown);
            assert_eq!(Mark::read(&bytes[..bytes.len() - 1]), Mark::Unknown);
        }
        let joining = JoiningNode {
            number: 17,
            run_id: "abc".into(),
        };
        assert_eq!(&*joining.beginning(), b"redlatch 1 joining 17 ");
        assert_eq!(
            Mark::read(b"redlatch 1 joining 17 abc "),
            Mark::Joining(joining)
        );
        for unknown in [
            "",
            "redlatch 2 joining 17 abc ",
            "redlatch 1 joining x abc ",
            "redlatch 1 joining 17 abc",
            "redlatch 1 joining 17 abc d ",
            "redlatch 1",
        ] {
            assert_eq!(Mark::read(unknown.as_bytes()), Mark::Unknown, "{unknown}");
        }
    }

    #[test]
    fn an_epoch_is_read_back_and_the_next_one_has_another_member() {
        let epoch = epoch();
        assert_eq!(Epoch::read(&epoch.to_bytes()), Some(epoch.clone()));
        assert_eq!(Epoch::read(b"redlatch 1 x 3 y 1"), None);
        let next = epoch.with((u64::MAX, MemberAddress::new(5, "c:1/0")), 8);
        assert_eq!(
            next.group,
            Group {
                id: 7,
                epoch: 4,
                token: 8
            }
        );
        assert!(next.has(5) && !next.has(u64::MAX));
        assert_eq!(*next.members[1].address, *"c:1/0");
        assert_eq!(next.members[0], epoch.members[0]);
        let is_last = |number| {
            let group = Group {
                epoch: number,
                ..epoch.group.clone()
            };
            Epoch {
                group,
                ..epoch.clone()
            }
            .is_last()
        };
        assert_eq!(
            [1, 8190, 8191, u64::MAX].map(is_last),
            [false, false, true, true]
        );
    }

    mod membership {
        use crate::mark::*;
        use crate::{Epoch, Member, MemberAddress};
        use std::sync::Arc;

        const JOINING: &[u8] = b"redlatch 1 joining 17 run ";

        fn epoch(group: u64, number: u64) -> Epoch {
            let group = Group {
                id: group,
                epoch: number,
                token: number,
            };
            Epoch {
                group,
                members: [0, 1, 2].map(|id| MemberAddress::new(id, "")).into(),
            }
        }

        fn mark(epoch: &Epoch, id: u64, run_id: &str) -> Vec<u8> {
            let epoch = epoch.clone();
            let run_id = run_id.to_owned();
            Member {
                epoch,
                run_id,
                id,
                is_durable: id == 0,
            }
            .to_bytes()
            .to_vec()
        }

        fn seen(marks: &[Option<Vec<u8>>]) -> Vec<NodeMark> {
            let run_id: Arc<str> = Arc::from("run");
            let seen = |(index, mark): (usize, &Option<Vec<u8>>)| NodeMark {
                node: Node::new(index),
                mark: mark.as_deref().map(Arc::from),
                run_id: Arc::clone(&run_id),
            };
            marks.iter().enumerate().map(seen).collect()
        }

        fn of(marks: &[Option<Vec<u8>>]) -> Vec<RegisterMembership> {
            let all = memberships(&seen(marks), 3);
            all.into_iter().map(|(_, membership)| membership).collect()
        }

        #[test]
        fn members_of_the_latest_epoch_vote() {
            let old = epoch(7, 1);
            let latest = epoch(7, 2);
            let ours = [mark(&latest, 0, "run"), mark(&latest, 1, "run")];
            let member = |is_durable| RegisterMembership::Member {
                epoch: 2,
                is_durable,
            };
            for (mark, why) in [
                (None, NoVote::NoMark),
                (Some(JOINING.to_vec()), NoVote::Joining),
                (Some(mark(&latest, 2, "before")), NoVote::Restarted),
                (Some(mark(&old, 2, "run")), NoVote::OtherGroup),
                (Some(mark(&old, 3, "run")), NoVote::Replaced),
                (Some(mark(&epoch(8, 2), 2, "run")), NoVote::OtherGroup),
                (Some(b"words".to_vec()), NoVote::OtherFormat),
            ] {
                let [one, other] = ours.clone().map(Some);
                let expected = [member(true), member(false), RegisterMembership::NoVote(why)];
                assert_eq!(of(&[one, other, mark]), expected);
            }
        }

        #[test]
        fn whose_run_is_not_told_was_not_started_again() {
            let all = [0, 1, 2].map(|id| Some(mark(&epoch(7, 1), id, "run")));
            let mut seen = seen(&all);
            seen.iter_mut().for_each(|it| it.run_id = Arc::from(""));
            let found = memberships(&seen, 3).into_iter().map(|(_, it)| it);
            assert!(found.eq([RegisterMembership::NoVote(NoVote::RunNotTold); 3]));
        }

        #[test]
        fn nodes_that_are_no_group_have_no_vote() {
            let no_votes = |whys: [NoVote; 3]| whys.map(RegisterMembership::NoVote);
            let joining = Some(JOINING.to_vec());
            let expected = no_votes([NoVote::NoMark, NoVote::Joining, NoVote::OtherFormat]);
            assert_eq!(of(&[None, joining, Some(b"words".to_vec())]), expected);
            // Of two groups, neither of which has a majority.
            let marks = [7, 8].map(|group| Some(mark(&epoch(group, 1), 0, "run")));
            let [one, other] = marks;
            let expected = no_votes([NoVote::OtherGroup, NoVote::OtherGroup, NoVote::NoMark]);
            assert_eq!(of(&[one, other, None]), expected);
            assert!(of(&[]).is_empty());
        }
    }
}
