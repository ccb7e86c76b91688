//! The counters of a lock that is held are raised.

use super::{Call, NodeCommand, Script, counters, lua_script, ttl_of_counters};
use crate::engine::Fence;
use crate::node::command::{decimal, member_of};

pub const FENCE: Script = lua_script!("counters.lua", "fence.lua");

impl NodeCommand for Fence {
    fn script(&self) -> Option<(Script, u32)> {
        Some((FENCE, 4))
    }

    fn encode(&self, call: Call<'_>, out: &mut Vec<u8>) {
        let [mut locks, mut first, mut counters_ttl] = [[0; 20]; 3];
        let locks = decimal(self.lock.keys().count() as u64, &mut locks);
        let first = decimal(self.fence, &mut first);
        let counters_ttl = decimal(ttl_of_counters(&self.lock), &mut counters_ttl);
        let arguments = [locks, &member_of(&self.lock), first, counters_ttl];
        call.run(FENCE, &self.lock, &counters(&self.lock), &arguments, out);
    }
}
