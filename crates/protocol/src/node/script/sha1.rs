//! SHA-1 while the crate is compiled, for the digests of the scripts (RFC 3174).

/// The digest of these bytes in lower-case hexadecimal.
pub const fn hex(text: &[u8]) -> [u8; 40] {
    let mut state = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    // A one bit and the length in bits follow the text.
    let blocks = (text.len() + 9).div_ceil(64);
    let mut block = 0;
    while block < blocks {
        state = mixed(state, &schedule(text, block, blocks));
        block += 1;
    }
    let mut digits = [0; 40];
    let mut index = 0;
    while index < 40 {
        let digit = state[index / 8] >> (28 - index % 8 * 4) & 15;
        digits[index] = b"0123456789abcdef"[digit as usize];
        index += 1;
    }
    digits
}

/// The eighty words that are mixed in for a block.
const fn schedule(text: &[u8], block: usize, blocks: usize) -> [u32; 80] {
    let mut words = [0_u32; 80];
    let mut index = 0;
    while index < 64 {
        let place = block * 64 + index;
        let byte = if place < text.len() {
            text[place]
        } else if place == text.len() {
            0x80
        } else {
            0
        };
        words[index / 4] = words[index / 4] << 8 | byte as u32;
        index += 1;
    }
    if block + 1 == blocks {
        // Shorter than 512 MiB, which no source is not.
        words[15] = text.len() as u32 * 8;
    }
    let mut index = 16;
    while index < 80 {
        let word = words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16];
        words[index] = word.rotate_left(1);
        index += 1;
    }
    words
}

const fn mixed(state: [u32; 5], words: &[u32; 80]) -> [u32; 5] {
    let [mut a, mut b, mut c, mut d, mut e] = state;
    let mut index = 0;
    while index < 80 {
        let (choice, constant) = match index {
            0..20 => (b & c | !b & d, 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => (b & c | b & d | c & d, 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(choice)
            .wrapping_add(e)
            .wrapping_add(words[index])
            .wrapping_add(constant);
        e = d;
        d = c;
        c = b.rotate_left(30);
        b = a;
        a = next;
        index += 1;
    }
    let [v, w, x, y, z] = state;
    [
        v.wrapping_add(a),
        w.wrapping_add(b),
        x.wrapping_add(c),
        y.wrapping_add(d),
        z.wrapping_add(e),
    ]
}

// The source of a script: its files without comments, indents and empty lines.
//
// A server hashes every byte of a script that comes by its source.

/// The source, and its length. It is cut off after `LENGTH` bytes: none measure the length.
pub const fn stripped<const LENGTH: usize>(files: &str) -> ([u8; LENGTH], usize) {
    let text = files.as_bytes();
    let mut source = [0; LENGTH];
    let mut length = 0;
    let mut is_start = true;
    let mut index = 0;
    while index < text.len() {
        let byte = text[index];
        if is_start && byte == b'-' && text[index + 1] == b'-' {
            // A comment is a line of its own.
            while text[index] != b'\n' {
                index += 1;
            }
        } else if !is_start || byte != b' ' && byte != b'\n' {
            if length < LENGTH {
                source[length] = byte;
            }
            length += 1;
            is_start = byte == b'\n';
        }
        index += 1;
    }
    (source, length)
}

#[cfg(test)]
mod tests {
    use super::stripped;

    #[test]
    fn comments_indents_and_empty_lines_go_and_spaces_within_lines_stay() {
        let files =
            "-- What a does.\n--\n\n  if a  then\n\n    -- b\n    b = ' c' - d -- e\n  end\n";
        let expected = "if a  then\nb = ' c' - d -- e\nend\n";
        assert_eq!(stripped::<0>(files), ([], expected.len()));
        assert_eq!(stripped::<33>(files).0, expected.as_bytes());
    }
}
