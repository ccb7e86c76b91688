//! The cost of decoding: linear time, and constant stack.
//!
//! The tests do not measure time. Bytes that the decoder has scanned are overwritten while it waits
//! for more, so a decoder that reads them again fails.

use redlatch_protocol::resp::{Decoder, LINE_MAX, ProtocolError, Reply, decode};

/// A decoder that reads a body again would find it changed. So the work is linear.
#[test]
fn scanned_bytes_are_not_read_again() {
    let part = format!("$51200\r\n{}\r\n", "x".repeat(51_200));
    let whole = format!("*4\r\n{}", part.repeat(4)).into_bytes();
    let mut arrived = whole.clone();
    let mut decoder = Decoder::new();
    for length in 0..whole.len() {
        // The header of the reply is read once more at the end; no line is longer than this.
        let line = 12;
        if length > 2 * line {
            arrived[length - line] = b'@';
        }
        assert!(
            matches!(decoder.decode(&arrived[..length]), Ok(None)),
            "{length}"
        );
    }
    assert!(matches!(decoder.decode(&arrived), Ok(Some((_, used))) if used == whole.len()));
}

/// Within a line, only a carriage return at its end may be read again: it may be the first half of
/// the CRLF. All other bytes are replaced by line breaks after the decoder has read them.
#[test]
fn a_line_is_searched_for_its_end_once() {
    let line = format!("+{}\r\n", "x".repeat(LINE_MAX)).into_bytes();
    let mut arrived = line.clone();
    let mut decoder = Decoder::new();
    for length in 0..line.len() {
        assert_eq!(decoder.decode(&arrived[..length]), Ok(None), "{length}");
        // The type byte is read again with its line.
        if length > 1 {
            arrived[length - 1] = b"\r\n"[length % 2];
        }
    }
    let Ok(Some((reply, used))) = decoder.decode(&line) else {
        panic!("the line is complete")
    };
    assert_eq!(
        (reply, used),
        (Reply::Simple(&line[1..=LINE_MAX]), line.len())
    );
}

#[test]
fn nested_aggregates_use_no_more_stack() {
    let small = std::thread::Builder::new().stack_size(64 * 1024);
    let decoding = small.spawn(|| {
        assert_eq!(
            decode(&b"*1\r\n".repeat(1_000_000)),
            Err(ProtocolError::TooDeep)
        );
        let attributes = [&b"|0\r\n".repeat(60_000)[..], b"+OK\r\n"].concat();
        assert_eq!(
            decode(&attributes),
            Ok(Some((Reply::Simple(b"OK"), attributes.len())))
        );
        let deep = [&b"*1\r\n".repeat(8)[..], b"+OK\r\n"].concat();
        let mut reply = decode(&deep).unwrap().unwrap().0;
        while let Reply::Array(elements) = reply {
            reply = elements.iter().next().unwrap();
        }
        assert_eq!(reply, Reply::Simple(b"OK"));
    });
    decoding.unwrap().join().unwrap();
}
