//! Fencing tokens: that they grow, what keeps them on the nodes, and what they cost.

mod counters;
mod rounds;
mod tokens;
