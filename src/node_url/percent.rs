//! Percent-encoding, as in RFC 3986: `%2F` for a slash.

/// The bytes that `text` stands for; `None` if a percent sign is not followed by two hexadecimal
/// digits.
pub(super) fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            decoded.push(*first);
            continue;
        }
        let [high, low, after @ ..] = after else {
            return None;
        };
        rest = after;
        // Two digits of four bits each fit into a byte.
        decoded.push((digit(*high)? << 4) | digit(*low)?);
    }
    Some(decoded)
}

/// `bytes` as text in which only letters, digits, `-._~` and the bytes in `plain` stand for
/// themselves.
pub(super) fn percent_encode(bytes: &[u8], plain: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) || plain.contains(byte) {
            encoded.push(char::from(*byte));
        } else {
            encoded.push('%');
            encoded.push(char::from(DIGITS[usize::from(byte >> 4)]));
            encoded.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
    encoded
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
