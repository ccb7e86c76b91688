//! The guide: pages on how to use the library and on what it promises.
//!
//! | page | what it answers |
//! |---|---|
//! | [`recipes`] | How do I ...? From tokio, in tests, at shutdown, as a cron job, with readers |
//! | [`guarantees`] | What is promised, under which assumptions, and which tests check it? |
//! | [`limits`] | What can no lock of this kind promise, and what can I do about it? |
//! | [`settings`] | Which settings, URLs and access rights are there, and why these defaults? |
//! | [`registers`] | What if a lock is not exact enough: values that a majority agrees on |
//! | [`transactions`] | Two processes change two databases, or none does |
//! | [`zookeeper`] | Redis nodes or a ZooKeeper ensemble? What differs, and how do I move? |
//! | [`other_programs`] | Which programs with other libraries exclude mine on the same keys? |
//! | [`command`] | How do I run a command under a lock, and look at locks, without writing Rust? |
//! | [`monitoring`] | Which logs and metrics are there, and what should I watch? |
//! | [`one_server`] | What does one server promise, and how do I go to three? |
//! | [`errors`] | What does an error mean, and what do I do? |
//! | [`performance`] | How fast is it, and what limits it? |
//! | [`comparison`] | How does it differ from other libraries? |

#[cfg(doc)]
use crate::*;

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/recipes.md")]
/// # Items of this page
///
/// [`Builder::metrics`], [`Builder::on_event`], [`Builder::tracing`], [`CancelToken`],
/// [`Election::campaign`], [`Election::leader`], [`Event::Queued`], [`Event::Woken`],
/// [`FencingToken`], [`Leadership::epoch`], [`Leadership::on_lost`], [`LockClient::cancel_token`],
/// [`LockClient::election`], [`LockClient::force_release`], [`register::Registers::form`],
/// [`LockClient::inspect`], [`LockClient::once_per`], [`LockClient::request_all`],
/// [`LockClient::with_lock`], [`Error::Cancelled`], [`Error::Lost`], [`Error::NoQuorum`],
/// [`LockGuard::into_token`], [`LockGuard::let_expire`],
/// [`LockGuard::slot`], [`LockGuard`], [`LockRequest::cancelled_by`], [`LockRequest::fenced`],
/// [`LockRequest::hold_at_least`], [`LockRequest::max_hold`], [`LockRequest::one_of`],
/// [`LockRequest::owner`], [`LockRequest::resume`], [`LockRequest::shared`], [`LockToken`],
/// [`Nodes::start`](crate::embedded::Nodes::start), [`OncePer::exact`], [`OncePer::forget`],
/// [`OncePer::retry_failed`],
/// [`OncePer::tolerance`], [`OncePerRun::HeldByOther`], [`OncePerRun::NotDue`],
/// [`LockRequest::with_lock`], [`Register::write_fenced`]
pub mod recipes {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/guarantees.md")]
/// # Items of this page
///
/// [`Builder::connect_timeout`], [`Builder::drift_factor`], [`Builder::fencing_expiry`],
/// [`Builder::io_thread`], [`Builder::max_ttl`], [`Builder::node_timeout`], [`Builder::queue`],
/// [`Builder::waiter_lease`], [`Error::NotResumable`], [`Event::Quarantined`], [`FencingToken`],
/// [`LockClient::request_all`], [`LockGuard::into_token`], [`LockGuard::let_expire`],
/// [`LockGuard::remaining`], [`LockRequest::hold_at_least`], [`LockRequest::keep_alive`],
/// [`LockRequest::one_of`], [`LockRequest::resume`], [`LockRequest::shared`],
/// [`NodeStatus::quarantine`], [`NodeStatus::queue`], [`NoQuorum`], [`OncePer::exact`],
/// [`OncePer::retry_failed`], [`Register::write_fenced`], [`RegisterError::may_have_happened`],
/// [`RegisterError::Unknown`]
pub mod guarantees {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/limits.md")]
/// # Items of this page
///
/// [`Builder::io_thread`], [`Builder::queue`],
/// [`Builder::session_timeout`](Builder#method.session_timeout),
/// [`error::ResourceError::SharedSet`], [`FencingToken`], [`LockClient::request_all`],
/// [`LockClient::with_lock`], [`Error::HeldByThisThread`], [`Error::TooManyHeld`],
/// [`Error::TooManyKeptAlive`], [`LockGuard::ensure_held`], [`LockGuard::into_token`],
/// [`LockGuard::let_expire`],
/// [`LockRequest::hold_at_least`], [`LockRequest::shared`], [`NodeStatus::warnings`]
pub mod limits {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/settings.md")]
/// # Items of this page
///
/// [`Builder::connect_timeout`], [`Builder::from`], [`Builder::max_ttl`], [`Builder::nodes`],
/// [`Builder::nodes_from_env`], [`Builder::restart_guard`], [`Builder::tls`](Builder#method.tls),
/// [`Builder`], [`error::TlsSettingsError`], [`Event::NodeQueue`], [`LockClient::inspect`],
/// [`LockClient::locks`], [`LockClient::new`], [`LockClient::nodes`], [`OncePer::exact`],
/// [`LockClient::registers`], [`register::Registers::repair`], [`LockClient::request`],
/// [`LockClient::request_all`], [`register::Registers::sweep`], [`LockRequest::one_of`],
/// [`LockRequest::shared`], [`LockRequest`], [`LockState::Undecided`], [`NodeStatus::queue`],
/// [`NodeStatus::warnings`], [`NodeStatus`], [`NodeWarning::SameHost`], [`NodeWarning`],
/// [`status::NoVote::RunNotTold`], [`QueueSupport::Unsupported`], [`QueueSupport::WithoutPushes`],
/// [`TlsSettings::from_config`]
pub mod settings {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/registers.md")]
/// # Items of this page
///
/// [`register::Registers::delete_older_than`], [`register::Registers::form`],
/// [`LockClient::nodes`], [`OncePer::exact`], [`register::Registers::repair`],
/// [`register::Registers::replace`], [`register::Registers::sweep`],
/// [`register::Registers::trust`], [`NodeStatus::registers`], [`Register::change`],
/// [`Register::compare_and_set`], [`register::Version`], [`Register::write_fenced`],
/// [`RegisterError::may_have_happened`], [`RegisterError::NodesDiffer`],
/// [`RegisterError::PlaceTaken`], [`RegisterError::Unknown`],
/// [`error::ServerErrorKind::WriteRefused`]
pub mod registers {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/transactions.md")]
/// # Items of this page
///
/// [`transaction::Transactions::begin`], [`transaction::Decision::Over`],
/// [`transaction::Participant`],
/// [`TransactionError::OtherGroup`]
pub mod transactions {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/zookeeper.md")]
/// # Items of this page
///
/// [`ConfigError::Setting`],
/// [`Builder::client_name`], [`Builder::connect_timeout`], [`Builder::drift_factor`],
/// [`Builder::fencing_expiry`], [`Builder::handoff_limit`], [`Builder::io_thread`],
/// [`Builder::key_prefix`], [`Builder::max_hold`], [`Builder::max_ttl`], [`Builder::min_validity`],
/// [`Builder::node_timeout`], [`Builder::queue`], [`Builder::restart_guard`], [`Builder::retry`],
/// [`Builder::session_timeout`](Builder#method.session_timeout),
/// [`Builder::tls`](Builder#method.tls), [`Builder::wait_for_all`], [`Builder::waiter_lease`],
/// [`error::TtlError::BeyondSession`], [`error::TtlError::HoldTooLong`], [`Event::SessionLost`],
/// [`FencingToken`], [`LockClient::force_release`], [`LockClient::inspect`], [`LockClient::locks`],
/// [`LockClient::nodes`], [`LockGuard::ensure_held`], [`LockGuard::extend`],
/// [`LockGuard::let_expire`], [`LockGuard::remaining`], [`LockRequest::fenced`],
/// [`LockRequest::hold_at_least`], [`LockRequest::keep_alive`], [`LockRequest::max_hold`],
/// [`LockRequest::owner`], [`LossReason::Expired`], [`LossReason::Gone`], [`NodeError::Refused`],
/// [`NoQuorum`]
pub mod zookeeper {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/other_programs.md")]
/// # Items of this page
///
/// [`Builder::queue`], [`Holder::other_program`], [`LockState::NotALock`], [`NotALock::NoTtl`]
pub mod other_programs {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/command.md")]
/// # Items of this page
///
/// [`FencingToken`], [`LockClient::request_all`], [`LockRequest::owner`], [`LockRequest::resume`],
/// [`NodeStatus::warnings`],
/// [`OncePer::tolerance`]
pub mod command {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/monitoring.md")]
/// # Items of this page
///
/// [`Builder::metrics`], [`Builder::on_event`], [`Builder::tracing`], [`Event`],
/// [`LockClient::locks`], [`LockRequest::fenced`], [`LockRequest::keep_alive`],
/// [`NodeStatus::warnings`], [`NodeWarning::as_str`]
pub mod monitoring {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/one_server.md")]
/// # Items of this page
///
/// [`Builder::key_prefix`], [`Builder::max_ttl`], [`FencingToken`],
/// [`FencingToken`](FencingToken#what-is-guaranteed), [`LockClient::nodes`],
/// [`LockGuard::ensure_held`], [`LockGuard::let_expire`], [`LockRequest::hold_at_least`],
/// [`NodeStatus::warnings`], [`NodeWarning::SameHost`], [`status::Persistence::crash_loss`]
pub mod one_server {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/errors.md")]
/// # Items of this page
///
/// [`TlsSettings::ca_file`], [`TlsSettings::client_certificate`],
/// [`CancelToken`], [`ConfigError`], [`Error`], [`error::JoinError`], [`error::TlsErrorKind`],
/// [`error`], [`LockClient::inspect`], [`LockClient::nodes`], [`LockClient::with_lock`],
/// [`LockRequest::with_lock`], [`LockState::NotALock`], [`LockState::Reserved`], [`LossReason`],
/// [`NodeError::is_permanent`], [`NodeError::Refused`], [`NodeError::Tls`],
/// [`NoQuorum::quarantine`], [`NoQuorum::reports`], [`NoQuorum`], [`OncePer::exact`],
/// [`error::RecoverError`], [`RegisterError`],
/// [`RegisterError::may_have_happened`], [`TransactionError`]
pub mod errors {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/performance.md")]
/// # Items of this page
///
/// [`Builder::io_thread`], [`Builder::queue`], [`LockClient::request_all`],
/// [`LockRequest::fenced`], [`LockRequest::keep_alive`], [`LockRequest::shared`],
/// [`RegisterError::Unknown`]
pub mod performance {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/comparison.md")]
pub mod comparison {}
