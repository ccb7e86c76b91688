//! The words for errors.
