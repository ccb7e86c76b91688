//! The command `redlatch`, as processes against real servers: what it prints, how it ends, and what
//! it leaves on the servers.

mod arguments;
mod bench;
mod cold;
mod conflict;
mod doctor;
mod exporter;
mod first_process;
mod groups;
mod health_file;
mod left_running;
mod lock;
mod log;
mod loss;
mod manual;
mod many;
mod metrics_page;
mod metrics_textfile;
mod nodes;
mod once_per;
mod program;
mod prometheus;
mod registers;
mod registers_errors;
mod registers_members;
mod run;
mod screenshot;
mod service;
mod several;
mod show;
mod signals;
mod terminal;
mod tokens;
mod top;
mod top_screen;
mod transactions;
mod waiting;
mod zookeeper;
// Linux: the certificates are made by a crate that the tests have there only.
#[cfg(target_os = "linux")]
mod groups_over_tls;
#[cfg(target_os = "linux")]
mod tls;
