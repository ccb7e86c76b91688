//! The source of a script: its files without the indents of their lines, and without empty lines.
//!
//! A server hashes every byte of a script that comes by its source, and every release does.

/// The source, and its length. It is cut off after `LENGTH` bytes: none measure the length.
pub const fn unindented<const LENGTH: usize>(files: &str) -> ([u8; LENGTH], usize) {
    let text = files.as_bytes();
    let (mut source, mut length, mut is_start, mut index) = ([0; LENGTH], 0, true, 0);
    while index < text.len() {
        let byte = text[index];
        let is_blank = is_start && (byte == b' ' || byte == b'\n');
        if !is_blank {
            if length < LENGTH {
                source[length] = byte;
            }
            length += 1;
        }
        is_start = is_blank || byte == b'\n';
        index += 1;
    }
    (source, length)
}

#[cfg(test)]
mod tests {
    use super::unindented;

    #[test]
    fn indents_and_empty_lines_go_and_spaces_within_lines_stay() {
        let files = "\n  if a  then\n\n    b = ' c'\n  end\n";
        let expected = "if a  then\nb = ' c'\nend\n";
        assert_eq!(unindented::<0>(files), ([], expected.len()));
        assert_eq!(unindented::<24>(files).0, expected.as_bytes());
    }
}
