//! What a ZooKeeper server sends: any bytes are frames and replies or refused, in any pieces, and
//! decoding allocates nothing.

use allocation_counter::measure;
use redlatch_zookeeper::jute::{FRAME_MAX, JuteError, frame};
use redlatch_zookeeper::message::{ConnectReply, EnsembleReply, Incoming, RequestKind};

/// The prefixes of a body that are tried are about this many.
const PLACES: usize = 64;

/// The bytes of an error's message that do not quote the input.
const MESSAGE_MAX: usize = 100;

const KINDS: [RequestKind; 9] = [
    RequestKind::Create,
    RequestKind::Exists,
    RequestKind::GetData,
    RequestKind::GetChildren,
    RequestKind::Sync,
    RequestKind::Multi(0),
    RequestKind::Multi(1),
    RequestKind::Multi(3),
    RequestKind::Bodiless,
];

/// Panics unless the frames in `data` are decoded as they should be.
pub(crate) fn check(data: &[u8]) {
    let (frames, end) = frames(data, [data.len()]);
    assert_eq!(
        (&frames, &end),
        (&self::frames(data, 0..=data.len()).0, &end),
        "byte by byte"
    );
    let used: usize = frames.iter().map(|frame| 4 + frame.len()).sum();
    assert!(used <= data.len() && frames.iter().all(|frame| frame.len() <= FRAME_MAX));
    for frame in frames {
        let mut connected = Err(JuteError::Truncated);
        assert_allocates_nothing(|| connected = ConnectReply::decode(frame));
        check_error(connected.as_ref().err());
        let mut incoming = Err(JuteError::Truncated);
        assert_allocates_nothing(|| incoming = Incoming::decode(frame));
        check_error(incoming.as_ref().err());
        if let Ok(Incoming::Reply { body, .. }) = incoming {
            KINDS.into_iter().for_each(|kind| check_body(kind, body));
        }
    }
}

/// The frames of a stream of which `arrived` bytes are there, then more, and the error behind them.
fn frames(
    data: &[u8],
    arrived: impl IntoIterator<Item = usize>,
) -> (Vec<&[u8]>, Option<JuteError>) {
    let mut frames = Vec::new();
    let mut used = 0;
    for arrived in arrived {
        loop {
            match frame(&data[used..arrived.max(used)]) {
                Ok(None) => break,
                Ok(Some((body, taken))) => {
                    assert_eq!(taken, 4 + body.len());
                    frames.push(body);
                    used += taken;
                }
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

fn check_body(kind: RequestKind, body: &[u8]) {
    let mut decoded = Err(JuteError::Truncated);
    let mut items = 0;
    assert_allocates_nothing(|| {
        decoded = EnsembleReply::decode(kind, body);
        items = decoded.as_ref().map_or(0, read_again);
    });
    check_error(decoded.as_ref().err());
    match &decoded {
        Ok(EnsembleReply::Children { names, .. }) => {
            assert_eq!(items, names.count);
            assert!(
                4 * items <= body.len(),
                "{items} names in {} bytes",
                body.len()
            );
        }
        Ok(EnsembleReply::Results(_)) => assert_eq!(kind, RequestKind::Multi(items)),
        Ok(_) | Err(_) => {}
    }
    let step = (body.len() / PLACES).max(1);
    for length in (0..body.len()).step_by(step).filter(|_| decoded.is_ok()) {
        // A reply has one length.
        assert_eq!(
            EnsembleReply::decode(kind, &body[..length]),
            Err(JuteError::Truncated),
            "{length}"
        );
    }
}

/// Reads the lists that are read again each time. Returns the number of their items.
fn read_again(reply: &EnsembleReply<'_>) -> usize {
    match reply {
        EnsembleReply::Children { names, .. } => names.iter().count(),
        EnsembleReply::Results(results) => {
            let _error = results.error();
            results.iter().count()
        }
        _ => 0,
    }
}

fn assert_allocates_nothing(run: impl FnOnce()) {
    assert_eq!(measure(run).count_total, 0, "decoding allocates nothing");
}

fn check_error(error: Option<&JuteError>) {
    let length = error.map_or(0, |error| error.to_string().len());
    assert!(length < MESSAGE_MAX, "the error does not quote its input");
}
