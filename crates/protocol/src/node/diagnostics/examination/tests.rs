//! Tests of the answers, as servers of several versions give them.

use super::CrashLoss;
use super::*;
use crate::resp::decode;
use std::time::Duration;

fn read(question: Question, bytes: &[u8]) -> Option<Examination> {
    let (reply, _) = decode(bytes).expect("RESP").expect("a whole reply");
    Examination::read(question, &reply, None)
}

fn bulk(text: &str) -> Vec<u8> {
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

/// The answer that says this and nothing else.
fn said(say: impl FnOnce(&mut Examination)) -> Examination {
    let mut examination = Examination::default();
    say(&mut examination);
    examination
}

fn memory(memory: Memory) -> Examination {
    said(|it| it.memory = memory)
}

fn full_memory(used: u64, max: u64, policy: &str) -> Examination {
    memory(Memory {
        used: Some(used),
        max: Some(max),
        policy: Some(policy.to_owned()),
    })
}

fn append_only(is_on: Option<bool>) -> Examination {
    said(|it| it.persistence.append_only = is_on)
}

fn role(role: Option<Role>, has_replicated: Option<bool>) -> Examination {
    said(|it| (it.role, it.persistence.has_replicated) = (role, has_replicated))
}

fn cluster(is_cluster: Option<bool>) -> Examination {
    said(|it| it.is_cluster = is_cluster)
}

fn fsync(fsync: Option<Fsync>) -> Examination {
    said(|it| it.persistence.fsync = fsync)
}

fn snapshots(are_made: bool) -> Examination {
    said(|it| it.persistence.snapshots = Some(are_made))
}

#[test]
fn sections_of_info_are_read_as_several_versions_write_them() {
    let long = "# Memory\r\nused_memory:5000\r\nmaxmemory:9000\r\nmaxmemory_policy:allkeys-lru\r\n\
                mem_not_counted_for_evict:1000\r\n";
    let short = "# Memory\r\nused_memory:5000\r\nused_memory_human:5K\r\n"; // Redis 2.6
    let only_used = Memory {
        used: Some(5000),
        ..Memory::default()
    };
    let table = [
        (
            Question::Memory,
            long,
            full_memory(4000, 9000, "allkeys-lru"),
        ),
        (Question::Memory, short, memory(only_used)),
        (Question::Memory, "", memory(Memory::default())),
        (
            Question::Memory,
            "maxmemory:-1\r\n",
            memory(Memory::default()),
        ),
        (
            Question::Persistence,
            "aof_enabled:1\r\n",
            append_only(Some(true)),
        ),
        (
            Question::Persistence,
            "aof_enabled:0\n",
            append_only(Some(false)),
        ),
        (Question::Persistence, "loading:0\r\n", append_only(None)),
    ];
    for (question, text, found) in table {
        expect_read(question, text, found);
    }
}

fn expect_read(question: Question, text: &str, found: Examination) {
    assert_eq!(read(question, &bulk(text)), Some(found.clone()), "{text:?}");
    let verbatim = format!("={}\r\ntxt:{text}\r\n", text.len() + 4);
    assert_eq!(read(question, verbatim.as_bytes()), Some(found), "{text:?}");
}

#[test]
fn roles_are_read_as_several_versions_write_them() {
    let table = [
        (
            Question::Replication,
            "role:master\r\nconnected_slaves:2\r\nslave0:ip=::1\r\nmaster_repl_offset:14\r\n",
            role(Some(Role::Master { replicas: 2 }), Some(true)),
        ),
        (
            Question::Replication,
            "role:master\r\nconnected_slaves:0\r\nmaster_repl_offset:0\r\n\
             second_repl_offset:-1\r\nrepl_backlog_active:0\r\n",
            role(Some(Role::Master { replicas: 0 }), Some(false)),
        ),
        (
            Question::Replication,
            "role:master\r\nmaster_repl_offset:0\r\nsecond_repl_offset:1\r\n",
            role(Some(Role::Master { replicas: 0 }), Some(true)),
        ),
        (
            Question::Replication,
            "role:slave\r\n",
            role(Some(Role::Replica), None),
        ),
        (Question::Replication, "role:sentinel\r\n", role(None, None)),
        (
            Question::Cluster,
            "# Cluster\r\ncluster_enabled:1\r\n",
            cluster(Some(true)),
        ),
        (
            Question::Cluster,
            "cluster_enabled:0\r\n",
            cluster(Some(false)),
        ),
        (Question::Cluster, "", cluster(None)), // Redis 2.6
    ];
    for (question, text, found) in table {
        expect_read(question, text, found);
    }
}

#[test]
fn settings_are_read_in_both_versions_of_the_protocol() {
    let both = |name: &str, value: &str| {
        let pair = [bulk(name), bulk(value)].concat();
        [
            [&b"*2\r\n"[..], &pair].concat(),
            [&b"%1\r\n"[..], &pair].concat(),
        ]
    };
    let table = [
        ("always", Some(Fsync::Always)),
        ("everysec", Some(Fsync::EverySecond)),
        ("no", Some(Fsync::Never)),
        ("sometimes", None),
    ];
    for (value, expected) in table {
        for bytes in both("appendfsync", value) {
            assert_eq!(read(Question::Fsync, &bytes), Some(fsync(expected)));
        }
    }
    for (value, are_made) in [("", false), ("3600 1 300 100", true)] {
        for bytes in both("SAVE", value) {
            assert_eq!(read(Question::Snapshots, &bytes), Some(snapshots(are_made)));
        }
    }
    for none in [&b"*0\r\n"[..], b"%0\r\n"] {
        assert_eq!(read(Question::Fsync, none), Some(fsync(None)));
    }
}

#[test]
fn what_a_group_does_without_its_replicas_or_its_cluster_is_read_from_the_settings() {
    let settings = |question, pairs: &[&str]| {
        let bytes: Vec<u8> = pairs.iter().copied().flat_map(bulk).collect();
        let list = [format!("*{}\r\n", pairs.len()).as_bytes(), &bytes].concat();
        read(question, &list)
            .expect("an answer to the question")
            .failover
    };
    let min = ["min-replicas-max-lag", "10", "min-replicas-to-write", "1"];
    let expected = FailoverSettings {
        min_replicas: Some(1),
        max_lag: Some(Duration::from_secs(10)),
        ..FailoverSettings::default()
    };
    assert_eq!(settings(Question::MinReplicas, &min), expected);
    let backlog = settings(Question::Backlog, &["repl-backlog-ttl", "3600"]).backlog_ttl;
    assert_eq!(backlog, Some(Duration::from_secs(3600)));
    let timeout = ["cluster-node-timeout", "15000"];
    let old = settings(Question::ClusterSettings, &timeout);
    let timeout = Some(Duration::from_secs(15));
    assert_eq!(
        (old.cluster_timeout, old.replica_migration),
        (timeout, Some(true))
    );
    let moves = |value| {
        let pair = ["cluster-allow-replica-migration", value];
        settings(Question::ClusterSettings, &pair).replica_migration
    };
    assert_eq!((moves("yes"), moves("no")), (Some(true), Some(false)));
}

#[test]
fn the_limit_of_memory_is_read_from_the_settings_of_a_server_that_does_not_report_it() {
    let pairs = [
        "maxmemory-samples",
        "5",
        "maxmemory-policy",
        "allkeys-lru",
        "maxmemory",
        "9000",
    ];
    let bytes = [b"*6\r\n".to_vec(), pairs.map(bulk).concat()].concat();
    let limit = read(Question::MemoryLimit, &bytes).expect("an answer to the question");
    let memory = |answers: [(Question, &Examination); 2]| {
        let note = |it: &mut Examination, (question, read): (_, &Examination)| {
            it.note(question, read.clone(), (Time::ZERO, Time::ZERO));
        };
        said(|it| answers.into_iter().for_each(|answer| note(it, answer))).memory()
    };
    let used = self::memory(Memory {
        used: Some(7),
        ..Memory::default()
    });
    let both = memory([(Question::Memory, &used), (Question::MemoryLimit, &limit)]);
    assert_eq!(both, full_memory(7, 9000, "allkeys-lru").memory);
    let full = full_memory(7, 80, "noeviction");
    let both = memory([(Question::MemoryLimit, &limit), (Question::Memory, &full)]);
    assert_eq!(both, full.memory);
}

#[test]
fn an_answer_to_another_command_is_none_to_a_question() {
    let pair = [&b"*2\r\n"[..], &bulk("save"), &bulk("")].concat();
    let limit = [&b"*2\r\n"[..], &bulk("maxmemory-samples"), &bulk("5")].concat();
    let time: &[u8] = b"*2\r\n$2\r\n17\r\n$1\r\n5\r\n";
    let info = bulk("aof_enabled:1\r\n");
    let strange: [&[u8]; 5] = [
        b"+OK\r\n",
        b"+PONG\r\n",
        b":1\r\n",
        b"_\r\n",
        b"*3\r\n:1\r\n:2\r\n:3\r\n",
    ];
    for question in Question::ALL {
        for bytes in strange {
            let is_wait = question == Question::Wait && bytes == b":1\r\n";
            assert_eq!(read(question, bytes).is_some(), is_wait, "{question:?}");
        }
        let is_time = question == Question::Time;
        assert_eq!(read(question, time).is_some(), is_time, "{question:?}");
        let is_limit = question == Question::MemoryLimit;
        assert_eq!(read(question, &limit).is_some(), is_limit, "{question:?}");
        let of_group = question.is_of_groups();
        let is_save = question == Question::Snapshots;
        assert_eq!(read(question, &pair).is_some(), is_save, "{question:?}");
        let is_fsync = question == Question::Fsync;
        let is_info = ![is_save, is_limit, is_time, is_fsync, of_group].contains(&true);
        assert_eq!(read(question, &info).is_some(), is_info, "{question:?}");
    }
    for time in [
        "*1\r\n$1\r\n5\r\n",
        "*2\r\n$1\r\n5\r\n$7\r\n1000000\r\n",
        "*2\r\n:5\r\n:5\r\n",
    ] {
        assert_eq!(read(Question::Time, time.as_bytes()), None, "{time:?}");
    }
}

#[test]
fn the_clock_difference_is_taken_in_the_middle_of_the_round_trip() {
    let at = Time::from_millis;
    let reading = |micros| ClockReading {
        micros,
        between: (at(100), at(104)),
    };
    // At 110 ms, the wall clock shows 5 s. So it showed 4.992 s in the middle, at 102 ms.
    let difference = |micros| reading(micros).difference(at(110), 5_000_000);
    let same = difference(4_992_000);
    let ahead = difference(5_992_000);
    let behind = difference(4_991_000);
    assert_eq!(
        (same.by, same.error),
        (Duration::ZERO, Duration::from_millis(2))
    );
    assert_eq!((ahead.by, ahead.is_ahead), (Duration::from_secs(1), true));
    assert_eq!(
        (behind.by, behind.is_ahead),
        (Duration::from_millis(1), false)
    );
    assert_eq!(ahead.to_string(), "1.0s (±2.0ms) ahead");
    assert_eq!(behind.to_string(), "no difference (±2.0ms)");
}

#[test]
fn a_crash_costs_what_the_settings_say() {
    let loss = |append_only, fsync, snapshots| {
        Persistence {
            append_only,
            fsync,
            snapshots,
            ..Persistence::default()
        }
        .crash_loss()
    };
    let table = [
        (
            Some(true),
            Some(Fsync::Always),
            Some(false),
            Some(CrashLoss::Nothing),
        ),
        (
            Some(true),
            Some(Fsync::EverySecond),
            Some(true),
            Some(CrashLoss::LastSeconds),
        ),
        (
            Some(true),
            Some(Fsync::Never),
            None,
            Some(CrashLoss::Unwritten),
        ),
        (Some(true), None, Some(true), None),
        (
            Some(false),
            Some(Fsync::Always),
            Some(true),
            Some(CrashLoss::SinceSnapshot),
        ),
        (Some(false), None, None, Some(CrashLoss::SinceSnapshot)),
        (Some(false), None, Some(false), Some(CrashLoss::Everything)),
        (None, Some(Fsync::Always), Some(true), None),
    ];
    for (append_only, fsync, snapshots, lost) in table {
        assert_eq!(
            loss(append_only, fsync, snapshots),
            lost,
            "{append_only:?} {fsync:?}"
        );
    }
}
