//! Parts of the recorded frames, and frames read as what they are not.

use super::super::*;
use super::{answer, frames, header_and_body, recorded, requests};
use crate::jute::{JuteError, frame};

/// All kinds of requests, for bodies that may be of any kind.
const KINDS: [RequestKind; 7] = [
    RequestKind::Create,
    RequestKind::Exists,
    RequestKind::GetData,
    RequestKind::GetChildren,
    RequestKind::Sync,
    RequestKind::Multi(3),
    RequestKind::Bodiless,
];

#[test]
fn every_prefix_of_a_reply_is_refused_and_so_is_more_than_a_reply() {
    for (name, _, request) in requests() {
        let frame = answer(name);
        let (header, body) = header_and_body(&frame);
        if header.error.is_some() {
            continue;
        }
        for length in 0..body.len() {
            let reply = EnsembleReply::decode(request.form().kind, &body[..length]);
            assert_eq!(reply, Err(JuteError::Truncated), "{length} bytes of {name}");
        }
        let longer = [body, &[0]].concat();
        let reply = EnsembleReply::decode(request.form().kind, &longer);
        assert_eq!(reply, Err(JuteError::TrailingBytes(1)), "{name}");
    }
    for name in ["event_deleted", "get_data_no_node"] {
        let frame = answer(name);
        for length in 0..frame.len() {
            assert_eq!(
                Incoming::decode(&frame[..length]),
                Err(JuteError::Truncated),
                "{name}"
            );
        }
    }
}

#[test]
fn a_reply_read_as_another_kind_is_refused_or_is_a_reply() {
    for name in frames('<').map(|name| name.trim_end_matches(" <")) {
        let frame = recorded(&format!("{name} <"));
        for kind in KINDS {
            for body in (0..frame.len()).map(|start| &frame[start..]) {
                // It returns, whatever it says.
                let _ = EnsembleReply::decode(kind, body);
            }
        }
    }
}

#[test]
fn a_recorded_stream_is_the_same_frames_however_it_is_cut() {
    let names: Vec<&str> = frames('<')
        .filter(|name| *name != "connect_behind <")
        .collect();
    let expected: Vec<Vec<u8>> = names.iter().map(|name| recorded(name)).collect();
    let stream = expected.concat();
    for cut in 0..=stream.len() {
        let mut found = Vec::new();
        let mut used = 0;
        for arrived in [cut, stream.len()] {
            while let Some((_, taken)) = frame(&stream[used..arrived]).unwrap() {
                found.push(stream[used..used + taken].to_vec());
                used += taken;
            }
        }
        assert_eq!((&found, used), (&expected, stream.len()), "cut at {cut}");
    }
}
