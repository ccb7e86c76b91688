//! Calls that take no thread: what they return, and that they end as those of threads do.

mod backends;
mod bodies;
mod callbacks;
mod cancel;
mod extending;
mod kinds;
mod losing;
mod order;
mod releasing;
mod verbs;
mod wakers;
