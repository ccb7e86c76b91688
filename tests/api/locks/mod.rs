//! One lock of one name: acquiring, extending, handing on, releasing, and giving up.

mod acquire;
mod attempt_line;
mod cancel_stress;
mod cancel_token;
mod contention;
mod extend;
mod handoff;
mod handoff_faults;
mod hold_at_least;
mod name_length;
mod other_data;
mod release;
mod split_votes;
mod system_calls;
mod timeout;
mod tokens;
