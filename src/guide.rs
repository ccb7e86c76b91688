//! The guide: pages on how to use the library and on what it promises, in the order in which they
//! are best read: how to use it, what is promised, what else there is, and figures.
//!
//! | page | what it answers |
//! |---|---|
//! | [`recipes`] | How do I ...? From tokio, in tests, at shutdown, as a cron job, with readers |
//! | [`settings`] | Which settings, URLs and access rights are there, and why these defaults? |
//! | [`errors`] | What does an error mean, and what do I do? |
//! | [`monitoring`] | Which logs and metrics are there, and what should I watch? |
//! | [`command`] | How do I run a command under a lock, and look at locks, without writing Rust? |
//! | [`guarantees`] | What is promised, under which assumptions, and which tests check it? |
//! | [`waiting`] | In which order are calls served that wait, and what do the nodes do for that? |
//! | [`limits`] | What can no lock of this kind promise, and what can I do about it? |
//! | [`one_server`] | What does one server promise, and how do I go to three? |
//! | [`groups`] | Your Redis has replicas: how do locks live through its failovers? |
//! | [`providers`] | My Redis is rented: which URL, and what is proven there? |
//! | [`other_programs`] | Which programs with other libraries exclude mine on the same keys? |
//! | [`zookeeper`] | Redis nodes or a ZooKeeper ensemble? What differs, and how do I move? |
//! | [`registers`] | What if a lock is not exact enough: values that a majority agrees on |
//! | [`transactions`] | Two processes change two databases, or none does |
//! | [`performance`] | How fast is it, and what limits it? |
//! | [`scale`] | How far does it go: one set of nodes, several, and how to add one? |
//! | [`comparison`] | How does it differ from other libraries? |

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/recipes.md")]
pub mod recipes {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/settings.md")]
pub mod settings {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/errors.md")]
pub mod errors {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/monitoring.md")]
pub mod monitoring {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/command.md")]
pub mod command {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/guarantees.md")]
pub mod guarantees {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/waiting.md")]
pub mod waiting {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/limits.md")]
pub mod limits {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/one_server.md")]
pub mod one_server {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/groups.md")]
pub mod groups {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/providers.md")]
pub mod providers {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/other_programs.md")]
pub mod other_programs {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/zookeeper.md")]
pub mod zookeeper {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/registers.md")]
pub mod registers {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/transactions.md")]
pub mod transactions {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/performance.md")]
pub mod performance {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/scale.md")]
pub mod scale {}

#[doc = include_str!("guide/links.txt")]
#[doc = include_str!("guide/comparison.md")]
pub mod comparison {}
