//! The end of a session at will: a second connection with its number and password ends it.

use crate::client::Client;
use crate::drive::LIMIT;
use redlatch_zookeeper::message::{ConnectReply, ConnectRequest, EnsembleRequest};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Ends the client's session without its knowledge, by the server at this port. The server closes
/// the client's connection. Returns when the session has ended, and whether there was one.
#[track_caller]
pub(crate) fn expire(port: u16, client: &Client) -> bool {
    let (session, password) = client.identity.expect("its session has begun");
    let mut request = ConnectRequest::new(10_000, 0);
    (request.session, request.password) = (session, password);
    let mut bytes = Vec::new();
    request.encode(&mut bytes);
    EnsembleRequest::CloseSession
        .encode(1, &mut bytes)
        .expect("a short request");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server accepts");
    stream
        .set_read_timeout(Some(LIMIT))
        .expect("a limit above zero");
    stream.write_all(&bytes).expect("a server reads");
    let mut replies = Vec::new();
    stream
        .read_to_end(&mut replies)
        .expect("the server closes the connection at the end");
    // A session that ends at this moment by itself has none.
    let reply = ConnectReply::decode(replies.get(4..).unwrap_or_default());
    reply.is_ok_and(|reply| reply.timeout_ms > 0 && reply.session == session)
}
