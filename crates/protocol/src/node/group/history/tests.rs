//! The rule by enumeration, against slower words for the same.

use super::*;
use crate::resp::decode;

const ID: &str = "5f1a";
const BEFORE: &str = "4e0b";

/// All sets of so many servers, as bits.
fn sets(servers: u32) -> impl Iterator<Item = u32> {
    0..1 << servers
}

#[test]
fn witnesses_meet_every_majority_and_two_majorities_meet() {
    for replicas in 2..10 {
        let group = Replicas(replicas);
        let majority = group.majority() as u32;
        let witnesses = group.witnesses() as u32;
        assert!(2 * (majority + 1) > replicas + 1, "with the master");
        // A master's replicas, and those of another one, which is a replica of the first.
        assert!(2 * majority + 1 > replicas);
        let of_size = |size| sets(replicas).filter(move |set| set.count_ones() == size);
        for acknowledged in of_size(majority) {
            assert!(
                of_size(witnesses).all(|set| set & acknowledged != 0),
                "{replicas}"
            );
        }
        // One witness fewer may miss it, and so may one that acknowledges too few.
        assert!(of_size(witnesses - 1).any(|set| of_size(majority).any(|it| it & set == 0)));
        assert!(of_size(majority - 1).any(|set| of_size(witnesses).any(|it| it & set == 0)));
    }
}

fn marker(text: &str) -> Marker {
    Marker::parse(text.as_bytes()).expect("a marker")
}

fn text(since: &str, former: &str) -> String {
    format!("redlatch2 run1 {ID} 7 {since} n1 2 {former}")
}

#[test]
fn a_marker_is_read_word_by_word() {
    let it = marker(&text("1234", &format!("{BEFORE} run0")));
    assert_eq!(
        (it.since, it.epoch),
        (Since::Clock(Duration::from_millis(1234)), 7)
    );
    assert_eq!([&*it.run_id, &it.id, &it.nonce], ["run1", ID, "n1"]);
    assert_eq!(it.replicas, 2);
    let former = Former {
        id: BEFORE.to_owned(),
        run_id: "run0".to_owned(),
    };
    assert_eq!(it.former, Some(former));
    assert_eq!(marker(&text("-", "0 0")).since, Since::Unknown);
    assert_eq!(marker(&text("0", "0 0")).since, Since::Proven);
    assert_eq!(marker(&text("-", "0 0")).former, None);
    for wrong in [
        "",
        "redlatch1 run1 5f1a 7 0 n1",
        "redlatch2 run1 5f1a 7 0 n1 2 0",
        "redlatch2 run1 5f1a 7 0 n1 2 0 0 0",
        "redlatch2 run1 5f1a 7 x n1 2 0 0",
        "redlatch2 run1 5f1a 7 0 n1 two 0 0",
    ] {
        assert_eq!(Marker::parse(wrong.as_bytes()), None, "{wrong}");
    }
}

#[test]
fn a_quarantine_counts_from_the_first_vote_that_was_acknowledged() {
    let seconds = Duration::from_secs;
    let left = |since: &str, clock| {
        let marker = marker(&text(since, "0 0"));
        marker.quarantine_left(seconds(10), seconds(clock))
    };
    assert_eq!(left("-", 1_000_000), seconds(10));
    assert_eq!(left("0", 0), Duration::ZERO);
    assert_eq!(left("100000", 100), seconds(10));
    assert_eq!(left("100000", 109), seconds(1));
    assert_eq!(left("100000", 110), Duration::ZERO);
    assert_eq!(left("100000", 99), seconds(10), "the clock was set");
}

fn standing(marker: &str, id: &str, offset: u64, listed: usize, replicas: &[u64]) -> Standing {
    Standing::Reigning(Reigning {
        marker: marker.into(),
        id: id.into(),
        now: Duration::ZERO,
        offset,
        listed,
        acknowledged: replicas.to_vec(),
        after: None,
    })
}

/// All lists of up to four replicas that have come to one of these offsets.
fn lists() -> Vec<Vec<u64>> {
    let mut lists = vec![Vec::new()];
    for length in 0..4 {
        let longer = lists.iter().filter(|list| list.len() == length);
        let added = longer.flat_map(|list| [9, 10, 11].map(|last| [&list[..], &[last]].concat()));
        lists.extend(added.collect::<Vec<_>>());
    }
    lists
}

#[test]
fn votes_count_that_enough_replicas_have_acknowledged() {
    let greeted = text("0", "0 0");
    let first = standing(&greeted, ID, 10, 0, &[]);
    for replicas in 2..6 {
        for list in lists() {
            for listed in list.len()..6 {
                let second = standing(&greeted, ID, 20, listed, &list);
                let weight = weigh(Replicas(replicas), &marker(&greeted), &first, &second);
                // 9 is in front of the votes.
                let behind = list.iter().filter(|offset| **offset != 9).count();
                let is_majority = 2 * (behind + 1) > replicas as usize + 1;
                let wanted = match (listed > replicas as usize, is_majority) {
                    (true, _) => Weight::TooManyReplicas { listed },
                    (false, true) => Weight::Acknowledged,
                    (false, false) => Weight::TooFew {
                        acknowledged: behind,
                    },
                };
                assert_eq!(weight, wanted, "{replicas} {listed} {list:?}");
            }
        }
    }
}

#[test]
fn votes_count_in_the_reign_that_was_greeted() {
    let greeted = text("0", "0 0");
    let good = standing(&greeted, ID, 10, 2, &[30, 30]);
    let others = [
        standing(&greeted, BEFORE, 10, 2, &[30, 30]),
        standing(&greeted.replace("n1", "n2"), ID, 10, 2, &[30, 30]),
        standing(&greeted.replace("run1", "run2"), ID, 10, 2, &[30, 30]),
        standing(&greeted.replace(" 7 ", " 8 "), ID, 10, 2, &[30, 30]),
        standing("", ID, 10, 2, &[30, 30]),
        Standing::NotMaster,
        Standing::Hidden,
        Standing::OtherMode(greeted.clone().into_bytes()),
    ];
    let weigh = |first, second| weigh(Replicas(2), &marker(&greeted), first, second);
    assert_eq!(weigh(&good, &good), Weight::Acknowledged);
    // Somebody else has said meanwhile since when the reign is known.
    let timed = standing(&text("5", "0 0"), ID, 10, 2, &[30, 30]);
    assert_eq!(weigh(&good, &timed), Weight::Acknowledged);
    for other in &others {
        assert_eq!(weigh(&good, other), Weight::OtherReign, "{other:?}");
        assert_eq!(weigh(other, &good), Weight::OtherReign, "{other:?}");
    }
}

#[test]
fn an_answer_is_read_as_a_whole() {
    let read = |reply: &str| {
        let (reply, _) = decode(reply.as_bytes()).unwrap().unwrap();
        Standing::read(7, &reply)
    };
    assert_eq!(read(":-7\r\n"), Some(Standing::NotMaster));
    assert_eq!(read("*1\r\n:7\r\n"), Some(Standing::Hidden));
    let other = Standing::OtherMode(b"string".to_vec());
    assert_eq!(read("*2\r\n:7\r\n$6\r\nstring\r\n"), Some(other));
    let elements = [
        ":7",
        "$1\r\nm",
        "$2\r\nid",
        ":1500",
        ":40",
        ":2",
        "*2\r\n:39\r\n:40",
        "$4\r\n4e0b",
    ];
    let mut all = Reigning {
        marker: b"m".to_vec(),
        id: b"id".to_vec(),
        now: Duration::from_millis(1500),
        offset: 40,
        listed: 2,
        acknowledged: vec![39, 40],
        after: Some(BEFORE.to_owned()),
    };
    let list = |elements: &[&str]| format!("*{}\r\n{}\r\n", elements.len(), elements.join("\r\n"));
    assert_eq!(
        read(&list(&elements)),
        Some(Standing::Reigning(all.clone()))
    );
    let mut unmarked = elements;
    unmarked[1] = "$-1";
    unmarked[7] = "$1\r\n0";
    all.marker.clear();
    all.after = None;
    assert_eq!(read(&list(&unmarked)), Some(Standing::Reigning(all)));
    // A part of it, and a number in place of each element that is none.
    for length in 3..elements.len() {
        assert_eq!(read(&list(&elements[..length])), None, "{length}");
    }
    for (place, wrong) in [
        (0, ":8"),
        (2, ":1"),
        (3, ":-1"),
        (4, "$1\r\nx"),
        (6, ":2"),
        (7, ":2"),
    ] {
        let mut elements = elements;
        elements[place] = wrong;
        assert_eq!(read(&list(&elements)), None, "{place}");
    }
    assert_eq!(read(":7\r\n"), None);
}

/// As Redis 7.0 answers it, in parts.
const INFO: &str = "# Server\r\nredis_version:7.0.15\r\nrun_id:run2\r\nuptime_in_seconds:75\r\n\r\n\
    # Replication\r\nrole:slave\r\nmaster_host:127.0.0.1\r\nmaster_replid:5f1a\r\n\
    master_replid2:4e0b\r\nmaster_repl_offset:3001\r\nsecond_repl_offset:2900\r\n";

#[test]
fn a_server_that_hides_its_history_proves_nothing() {
    let whole = History {
        run_id: "run2".to_owned(),
        uptime: Duration::from_secs(75),
        is_master: false,
        id: ID.to_owned(),
        former: Some((BEFORE.to_owned(), 2900)),
    };
    assert_eq!(History::parse(INFO), Some(whole.clone()));
    for line in INFO.lines().filter(|line| line.contains(':')) {
        let name = line.split(':').next().unwrap();
        let needless = ["redis_version", "master_host", "master_repl_offset"];
        let hidden = INFO.replace(&format!("{line}\r\n"), "");
        assert_eq!(
            History::parse(&hidden).is_some(),
            needless.contains(&name),
            "{name}"
        );
    }
    let none = INFO
        .replace("4e0b", &"0".repeat(40))
        .replace("offset:2900", "offset:-1");
    let none = History::parse(&none).unwrap();
    assert_eq!(
        none,
        History {
            former: None,
            ..whole
        }
    );
}

/// What holds, or does not, of a server, its master and the marker.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Of the server that is asked.
    is_master: bool,
    is_slave: bool,
    is_here: bool,
    /// Was it a part of the reign before, and does it say at which offset it left?
    was_there: bool,
    is_behind: bool,
    is_old: bool,
    is_former_master: bool,
    /// Of the master that was greeted.
    reigns: bool,
    followed: bool,
    has_marker: bool,
}

const CASES: u32 = 1 << 10;

impl Case {
    fn of(bits: u32) -> Self {
        let bit = |place: u32| bits & 1 << place != 0;
        Self {
            is_master: bit(0),
            is_slave: bit(1),
            is_here: bit(2),
            was_there: bit(3),
            is_behind: bit(4),
            is_old: bit(5),
            is_former_master: bit(6),
            reigns: bit(7),
            followed: bit(8),
            has_marker: bit(9),
        }
    }

    fn testimony(self) -> Testimony {
        let former = if self.has_marker { "4e0b run0" } else { "0 0" };
        let mut marker = marker(&text("-", former));
        let master = History {
            run_id: "run1".to_owned(),
            uptime: Duration::from_secs(if self.is_old { 62 } else { 61 }),
            is_master: self.reigns,
            id: ID.to_owned(),
            former: Some((if self.followed { BEFORE } else { "3d" }.to_owned(), 100)),
        };
        let other = History {
            run_id: if self.is_former_master {
                "run0"
            } else {
                "run2"
            }
            .to_owned(),
            is_master: !self.is_slave,
            id: if self.is_here { ID } else { BEFORE }.to_owned(),
            former: Some((
                if self.was_there { BEFORE } else { "3d" }.to_owned(),
                if self.is_behind { 100 } else { 101 },
            )),
            ..master.clone()
        };
        if self.is_master && self.is_former_master {
            marker
                .former
                .iter_mut()
                .for_each(|it| it.run_id = "run1".to_owned());
        }
        let server = if self.is_master { &master } else { &other };
        // More than a minute, the skew, and the grain.
        let max_ttl = Duration::from_secs(59);
        Testimony::of(server, &master, &marker, max_ttl, Duration::from_secs(1))
    }

    /// In other words.
    fn wanted(self) -> Testimony {
        let reign_is_known = self.reigns && self.followed && self.has_marker;
        let was_continued = self.is_slave && self.is_here && self.was_there && self.is_behind;
        if !reign_is_known || !self.is_master && !was_continued {
            Testimony::Nothing
        } else if self.is_former_master {
            Testimony::Whole
        } else if self.is_old {
            Testimony::Own
        } else {
            Testimony::Nothing
        }
    }
}

#[test]
fn a_witness_was_there_and_was_continued_here() {
    let mut seen = [0; 3];
    for case in (0..CASES).map(Case::of) {
        let testimony = case.testimony();
        assert_eq!(testimony, case.wanted(), "{case:?}");
        seen[testimony as usize] += 1;
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn a_proof_counts_processes() {
    let group = Replicas(4);
    let history = |run: &str| History {
        run_id: run.to_owned(),
        ..History::parse(INFO).unwrap()
    };
    let mut proof = Proof::default();
    for run in ["a", "b", "b", "a"] {
        proof.hear(&history(run), Testimony::Own);
        proof.hear(&history("c"), Testimony::Nothing);
        assert!(!proof.is_complete(group), "{run}");
    }
    proof.hear(&history("d"), Testimony::Own);
    assert!(proof.is_complete(group));
    let mut proof = Proof::default();
    proof.hear(&history("a"), Testimony::Whole);
    assert!(proof.is_complete(group));
}
