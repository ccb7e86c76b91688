//! Settings and arguments: from files, and what of them is refused.

mod errors;
mod files;
