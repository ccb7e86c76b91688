//! Several resources at once: all of them or none.

mod nodes;
mod queue;
mod together;
