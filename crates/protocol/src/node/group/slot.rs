//! The slots of a cluster.

/// The tag that puts a key into this slot of a cluster: the first of three letters and digits that
/// does, or of four.
pub fn tag_of(slot: u16) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    for length in [3, 4] {
        for number in 0..36_usize.pow(length) {
            let digits = (0..length)
                .rev()
                .map(|place| number / 36_usize.pow(place) % 36);
            let word: String = digits.map(|digit| char::from(DIGITS[digit])).collect();
            if slot_of(word.as_bytes()) == slot {
                return format!("{{{word}}}");
            }
        }
    }
    // Each slot has such a word.
    "{}".to_owned()
}

/// The slot of a cluster that this key is in: CRC-16/XMODEM modulo 16,384.
fn slot_of(key: &[u8]) -> u16 {
    let crc = key.iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                crc << 1 ^ 0x1021
            }
        })
    });
    crc % 16_384
}
