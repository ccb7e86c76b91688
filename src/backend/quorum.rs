//! Who keeps registers.

mod memory;

pub(crate) use memory::{
    CombinedRegister, Combiner, CombinerMessage, CombiningRole, Committed, RegisterMemory,
    ReportedVotes,
};
