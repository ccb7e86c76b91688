//! The model without sockets: bad bytes, sessions that end, containers, and the library's own
//! session and contender.

mod library;

use super::*;
use redlatch_zookeeper::message::{
    Acl, ConnectReply, ConnectRequest, Create, CreateKind, EnsembleRequest,
};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(100);

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn model() -> Model {
    let settings = EnsembleBuilder {
        tick: TICK,
        timeouts: None,
        sweep_interval: Duration::from_secs(1),
    };
    Model::new(settings, Time::ZERO, 1_700_000_000_000_000)
}

/// The frames that were sent to this connection, and whether it was closed.
fn outputs(model: &mut Model, connection: ConnectionId) -> (Vec<Vec<u8>>, bool) {
    let mut frames = Vec::new();
    let mut is_closed = false;
    while let Some(output) = model.poll() {
        match output {
            Output::Send(id, bytes) if id == connection => frames.push(bytes[4..].to_vec()),
            Output::Close(id) if id == connection => is_closed = true,
            _ => {}
        }
    }
    (frames, is_closed)
}

/// A connection with a new session.
fn connect(model: &mut Model, now: Time, timeout_ms: i32) -> (ConnectionId, ConnectReply) {
    let id = model.connect();
    let mut bytes = Vec::new();
    ConnectRequest::new(timeout_ms, 0).encode(&mut bytes);
    model.received(now, id, &bytes[4..]);
    let (frames, is_closed) = outputs(model, id);
    assert!(!is_closed);
    (id, ConnectReply::decode(&frames[0]).unwrap())
}

fn ask(model: &mut Model, now: Time, id: ConnectionId, request: &EnsembleRequest) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    request.encode(1, &mut bytes).unwrap();
    model.received(now, id, &bytes[4..]);
    outputs(model, id).0
}

fn create(path: &str, kind: CreateKind) -> EnsembleRequest {
    EnsembleRequest::Create(Create {
        path: path.into(),
        data: [].into(),
        acl: Acl::Anyone,
        kind,
    })
}

#[test]
fn a_silent_session_ends_at_the_tick_after_its_timeout() {
    let mut model = model();
    let (id, reply) = connect(&mut model, at(0), 1_000);
    assert_eq!(reply.timeout_ms, 1_000);
    ask(&mut model, at(0), id, &create("/a", CreateKind::Ephemeral));
    // What a session sends keeps it alive.
    ask(&mut model, at(500), id, &EnsembleRequest::Sync("/".into()));
    model.advance(at(1_599));
    assert_eq!(model.children("/").unwrap(), ["a", "zookeeper"]);
    assert_eq!(outputs(&mut model, id), (vec![], false));
    model.advance(at(1_600));
    assert_eq!(model.children("/").unwrap(), ["zookeeper"]);
    assert_eq!(outputs(&mut model, id), (vec![], true));
}

#[test]
fn after_a_restart_each_session_has_its_whole_timeout() {
    let mut model = model();
    let (id, reply) = connect(&mut model, at(0), 500);
    ask(&mut model, at(0), id, &create("/a", CreateKind::Ephemeral));
    model.restart(at(60_000));
    model.advance(at(60_599));
    assert_eq!(model.children("/").unwrap(), ["a", "zookeeper"]);
    let session = reply.session;
    let password = reply.password;
    let again = model.connect();
    let mut bytes = Vec::new();
    ConnectRequest {
        session,
        password,
        ..ConnectRequest::new(500, 2)
    }
    .encode(&mut bytes);
    model.received(at(60_599), again, &bytes[4..]);
    let (frames, _) = outputs(&mut model, again);
    assert_eq!(ConnectReply::decode(&frames[0]), Ok(reply));
    model.advance(at(61_200));
    assert_eq!(model.children("/").unwrap(), ["zookeeper"]);
}

#[test]
fn containers_go_when_they_had_children_and_have_none() {
    let mut model = model();
    let (id, _) = connect(&mut model, at(0), 60_000);
    for path in ["/never", "/empty"] {
        ask(&mut model, at(0), id, &create(path, CreateKind::Container));
    }
    ask(
        &mut model,
        at(0),
        id,
        &create("/empty/a", CreateKind::Ephemeral),
    );
    model.advance(at(1_000));
    assert_eq!(
        model.children("/").unwrap(),
        ["empty", "never", "zookeeper"]
    );
    ask(
        &mut model,
        at(1_000),
        id,
        &EnsembleRequest::Delete("/empty/a".into()),
    );
    model.advance(at(1_999));
    assert_eq!(
        model.children("/").unwrap(),
        ["empty", "never", "zookeeper"]
    );
    model.advance(at(2_000));
    assert_eq!(model.children("/").unwrap(), ["never", "zookeeper"]);
}

#[test]
fn no_bytes_make_it_panic() {
    let mut model = model();
    let mut state = 1_u64;
    let mut random = |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % bound
    };
    let types = [1, 2, 3, 4, 5, 8, 9, 11, 12, 13, 14, 15, 19, 21, 100];
    for round in 0..20_000 {
        let (id, _) = connect(&mut model, at(round), 200);
        let mut frame = vec![0, 0, 0, 1, 0, 0, 0, types[random(15) as usize]];
        // Zeros and ones are lengths and numbers that can be.
        let length = random(60);
        frame.extend((0..length).map(|_| [0, 0, 0, 1, 255, b'/', b'a'][random(7) as usize]));
        model.received(at(round), id, &frame);
        outputs(&mut model, id);
    }
    let (id, _) = connect(&mut model, at(20_000), 200);
    assert_eq!(
        ask(
            &mut model,
            at(20_000),
            id,
            &EnsembleRequest::Sync("/".into())
        )
        .len(),
        1
    );
}
