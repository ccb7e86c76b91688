//! What a session knows about its present connection, and forgets with it.

use super::reply_order::ReplyOrder;
use crate::node::command::KnownScripts;
use crate::node::examination::Examination;
use crate::resp::Decoder;

/// One connection, from the moment at which it is established.
#[derive(Debug, Default)]
pub(super) struct Connection {
    pub(super) decoder: Decoder,
    /// The beginning of an incomplete reply.
    pub(super) input: Vec<u8>,
    pub(super) scripts: KnownScripts,
    pub(super) reply_order: ReplyOrder,
    /// What the server has told about itself.
    pub(super) examination: Examination,
    /// Did the last reply have a valid form?
    pub(super) is_proven: bool,
}
