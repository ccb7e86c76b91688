//! The errors of a call before the nodes have answered: nothing that is simulated has one.

pub(crate) use std::convert::Infallible as Error;
