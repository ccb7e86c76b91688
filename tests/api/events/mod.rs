//! What a client reports of its locks: to callbacks, to `tracing` and to `metrics`.

mod bridges;
mod callbacks;
mod locks;
