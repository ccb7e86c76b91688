//! The public client on real ZooKeeper servers, under faults: one test or more for each row of the
//! table of faults, seen by its holder and by a waiter.
//!
//! # Bugs of other libraries
//!
//! What goes wrong there, and the test that shows that it does not here: of this program, or of
//! `zookeeper_servers` (S), `zookeeper` (Z), `api`'s `interface` (I), or of the library's own tests
//! (L).
//!
//! - CURATOR-42: a delete whose reply is lost finds nothing and is repeated for ever. Shown by
//!   `connections::a_release_without_a_reply…`, S `lost_replies::a_delete_whose_reply_is_lost…`.
//! - CURATOR-79: a wait that is interrupted in its create leaves the znode. Shown by
//!   `known_bugs::a_wait_that_is_cancelled…`.
//! - CURATOR-106: deletes that are repeated without a connection overflow the stack. Shown by
//!   `known_bugs::many_releases_without_a_connection…`.
//! - CURATOR-206: a holder whose session has expired is not told. Shown by
//!   `outages::a_holder_at_a_follower…`, `sessions::a_holder_whose_session_has_expired…`.
//! - CURATOR-264: a create is looked for without a sync, and a second one waits for it. Shown by S
//!   `lost_replies::a_create_that_the_majority…`.
//! - CURATOR-307: a release after the loss of the session panics. Shown by
//!   `known_bugs::a_release_after_the_directory_was_removed…`.
//! - CURATOR-435: the directory is removed under the create. Shown by
//!   `settings::directories_are_swept…`.
//! - CURATOR-486, 678: a release that fails forgets the znode, which stays. Shown by
//!   `connections::a_release_that_does_not_arrive…`.
//! - CURATOR-498, 604, 696: a znode of the session before is taken for one's own. Shown by
//!   `known_bugs::a_znode_of_an_earlier_session…`, Z `a_crowd_notices_what_it_relies_on`.
//! - CURATOR-527: a predecessor goes between the look and the wait: no wake-up. Shown by I
//!   `many_clients_exclude_each_other`, `connections::a_wake_up_that_comes…`.
//! - CURATOR-621: a writer beside a reader, after a downgrade. Shown by I
//!   `many_readers_and_writers_exclude_each_other`.
//! - CURATOR-315, 335, 462: a connection lost in the middle of a permit's creation leaves it taken.
//!   Shown by `known_bugs::permits_are_not_lost_with_connections`.
//! - CURATOR-595: permits of a lost session are not given back. Shown by
//!   `known_bugs::permits_of_a_session…`.
//! - kazoo #2: a holder does not hear that its session is gone. Shown by
//!   `sessions::a_holder_whose_session_has_expired…`.
//! - kazoo #170: a waiter stands still after a reconnection. Shown by
//!   `outages::a_rolling_restart…`, `connections::a_wake_up_that_comes…`.
//! - kazoo #288: the contender of a cancelled wait stays. Shown by
//!   `known_bugs::a_wait_that_is_cancelled…`.
//! - kazoo #429: a semaphore that is not waited for stays taken. Shown by
//!   `known_bugs::permits_are_not_lost_with_connections`.
//! - kazoo #563: the directory is removed under the create. Shown by
//!   `settings::directories_are_swept…`.
//! - kazoo #649: a reader and a writer wait for each other. Shown by I
//!   `readers_behind_a_waiting_writer…`, `many_readers_and_writers_exclude_each_other`.
//! - kazoo #730: numbers past 2147483647 have no order. Shown by S
//!   `numbers::across_the_end_of_the_numbers…`.
//! - kazoo #732: tries that fail write, and leave znodes. Shown by
//!   `known_bugs::whoever_does_not_wait…`, `callers_that_get_no_lock…`.
//! - go-zookeeper/zk #65, samuel/go-zookeeper #229: a create whose reply is lost leaves the znode.
//!   Shown by `connections::a_create_whose_reply_is_lost…`, `a_wait_that_ends_without_a_reply…`.
//! - zk-ruby #49: a wait that has timed out leaves its znode. Shown by
//!   `known_bugs::callers_that_get_no_lock…`.
//! - zk-ruby #54: after a lost connection a waiter creates a second znode. Shown by
//!   `connections::connections_that_are_cut…`.
//! - ZOOKEEPER-706: the watches of many locks make a request that servers refuse. Shown by
//!   `interface::a_thousand_locks…` (nothing is watched again by one request).
//! - ZOOKEEPER-3162: the wrong predecessor is chosen. Shown by `known_bugs::foreign_names…`, I
//!   `clients_are_served_in_the_order…`.
//! - ZOOKEEPER-4306: the end of a session with too many znodes stops the ensemble. Shown by
//!   `bounds::a_client_holds_no_more…`.
//! - ClickHouse #116690: another session answers to the old one's number. Shown by L
//!   `zookeeper::session` (no such server is at hand).

#![expect(
    clippy::unwrap_used,
    reason = "a lock is poisoned only after the test has failed"
)]

mod bounds;
mod connections;
mod interface;
mod known_bugs;
mod operator;
mod outages;
mod processes;
mod refusals;
mod rig;
mod sessions;
mod settings;

use std::time::Duration;

/// A ttl that outlasts every test, and a time that every wait in a test stays below.
const LONG: Duration = Duration::from_secs(58);
const LIMIT: Duration = Duration::from_secs(50);
