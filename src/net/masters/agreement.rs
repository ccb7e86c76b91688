//! Do the servers of one URL speak of one group? Those of several would name several masters, which
//! do not exclude each other's clients: who is asked first would decide where a lock is.

use super::{About, Answer, count_naming};
use crate::net::masters::learned;
use crate::node::NodeError;

/// Fails unless these servers of one URL may all be of one group.
pub(super) fn expect_one_group(
    about: &About,
    servers: usize,
    found: &[Answer],
) -> Result<(), NodeError> {
    expect_no_strangers(about, found)?;
    expect_one_owner(found)?;
    expect_one_name(about, servers, found)
}

/// Servers of one group tell of the same others. It is permanent: the URL is wrong.
fn expect_no_strangers(about: &About, found: &[Answer]) -> Result<(), NodeError> {
    let told_min = match about {
        // A Sentinel does not tell of itself: of two, each tells of the other one only.
        About::Group(_) => 2,
        About::Slot(_) => 1,
    };
    let telling: Vec<&Answer> = found
        .iter()
        .filter(|it| it.told.len() >= told_min)
        .collect();
    for (index, one) in telling.iter().enumerate() {
        let stranger = telling[index + 1..]
            .iter()
            .find(|other| !learned::have_one_in_common(&one.told, &other.told));
        if let Some(other) = stranger {
            return Err(NodeError::LookupRefused(format!(
                "{} and {} are of different {}, so a lock could be held in both: give each a URL \
                 of its own",
                one.asked,
                other.asked,
                about.groups(),
            )));
        }
    }
    Ok(())
}

/// Members that each are the master of one slot are of different clusters; or one of them was
/// replaced a moment ago, and does not know it yet.
fn expect_one_owner(found: &[Answer]) -> Result<(), NodeError> {
    let mut masters = found.iter().filter(|answer| answer.member.is_some());
    let Some(one) = masters.next() else {
        return Ok(());
    };
    let Some(other) = masters.find(|other| other.member != one.member) else {
        return Ok(());
    };
    Err(NodeError::NoMaster(format!(
        "{} and {} both say that the slot is theirs: they are of different clusters, or one was \
         replaced a moment ago",
        one.asked, other.asked
    )))
}

/// Sentinels name one master in one epoch, but for the moment in which a failover begins; unless
/// the user may not ask of whom they tell, and they watch different groups. What most of the URL's
/// Sentinels name is the same for all clients. (Members of a cluster name a place in several ways.)
fn expect_one_name(about: &About, servers: usize, found: &[Answer]) -> Result<(), NodeError> {
    let About::Group(_) = about else {
        return Ok(());
    };
    let Some(epoch) = found.iter().map(|answer| answer.master.epoch).max() else {
        return Ok(());
    };
    let latest: Vec<&Answer> = found.iter().filter(|it| it.master.epoch == epoch).collect();
    let one = latest[0];
    let other = latest.iter().find(|it| it.master != one.master);
    let is_one_of_most = latest
        .iter()
        .any(|it| count_naming(found, &it.master) > servers / 2);
    match other {
        Some(other) if !is_one_of_most => Err(NodeError::NoMaster(format!(
            "{} names {}, and {} names {}: a failover begins, or they watch different groups, \
                 which need a URL each",
            one.asked, one.master.place, other.asked, other.master.place
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Master;
    use super::*;
    use crate::node_url::HostPort;

    fn at(host: &str) -> HostPort {
        HostPort {
            host: host.to_owned(),
            port: 1,
        }
    }

    /// What the server at `asked` says, who tells of servers with these ids.
    fn answer(asked: &str, master: &str, epoch: u64, ids: &str) -> Answer {
        let told = ids
            .chars()
            .filter_map(|id| learned::server(&id.to_string(), "x", 1));
        Answer {
            asked: at(asked),
            master: Master {
                place: at(master),
                epoch,
            },
            member: None,
            told: told.collect(),
        }
    }

    fn group() -> About {
        About::Group("locks".to_owned())
    }

    #[test]
    fn servers_that_tell_of_nobody_in_common_are_of_different_groups() {
        let is_refused = |about: &About, one: &str, other: &str| {
            let found = [answer("s1", "m", 3, one), answer("s2", "m", 7, other)];
            let verdict = expect_one_group(about, 2, &found);
            matches!(verdict, Err(NodeError::LookupRefused(_)))
        };
        assert!(is_refused(&group(), "bc", "yz") && is_refused(&About::Slot(1), "a", "y"));
        // Three Sentinels, two, and one that may not be asked.
        assert!(!is_refused(&group(), "bc", "ac"));
        assert!(!is_refused(&group(), "b", "a"));
        assert!(!is_refused(&group(), "bc", ""));
        assert!(
            !is_refused(&About::Slot(1), "abc", "abc") && !is_refused(&About::Slot(1), "a", "")
        );
    }

    #[test]
    fn sentinels_that_name_different_masters_in_one_epoch_are_not_believed() {
        let is_one = |servers, named: &[(&str, u64)]| {
            let found: Vec<_> = named
                .iter()
                .map(|(it, epoch)| answer("s", it, *epoch, ""))
                .collect();
            let verdict = expect_one_group(&group(), servers, &found);
            assert!(
                matches!(verdict, Ok(()) | Err(NodeError::NoMaster(_))),
                "it may pass"
            );
            verdict.is_ok()
        };
        assert!(!is_one(2, &[("a", 3), ("b", 3)]));
        assert!(
            !is_one(4, &[("a", 3), ("a", 3), ("b", 3)]),
            "another client may hear two of b"
        );
        assert!(
            is_one(3, &[("a", 3), ("b", 3), ("a", 3)]),
            "all clients hear one of these two"
        );
        assert!(
            is_one(2, &[("a", 3), ("b", 4)]),
            "a failover that not all have heard of"
        );
        assert!(is_one(2, &[("a", 3), ("a", 3)]) && is_one(3, &[]));
    }

    #[test]
    fn members_that_both_have_a_slot_are_not_believed() {
        let owner = |asked, member: Option<&str>| {
            let member = member.map(|name| name.as_bytes().to_vec());
            Answer {
                member,
                ..answer(asked, asked, 0, "")
            }
        };
        let is_one = |found: &[Answer]| expect_one_group(&About::Slot(1), 3, found).is_ok();
        assert!(is_one(&[
            owner("s1", Some("a")),
            owner("s2", Some("a")),
            owner("s3", None)
        ]));
        assert!(!is_one(&[
            owner("s1", Some("a")),
            owner("s3", None),
            owner("s2", Some("b"))
        ]));
    }
}
