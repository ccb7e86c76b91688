//! Commands to bytes.

use super::CRLF;

/// Appends a command as an array of bulk strings. Servers accept this form for arguments of any
/// bytes.
///
/// `out` keeps its capacity, so a buffer that is used again stops allocating. There is no limit on
/// the arguments here; servers take up to 512 MiB each. A command without arguments is an empty
/// array, to which servers do not reply.
pub fn encode_command(out: &mut Vec<u8>, args: &[&[u8]]) {
    encode_words(out, args.len(), args.iter().copied());
}

/// As [`encode_command`], for arguments that are in no list. `count` is how many they are.
pub fn encode_words<'a, I>(out: &mut Vec<u8>, count: usize, words: I)
where
    I: IntoIterator<Item = &'a [u8]>,
{
    header(out, b'*', count);
    let mut written = 0;
    for word in words {
        header(out, b'$', word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(CRLF);
        written += 1;
    }
    debug_assert_eq!(written, count, "the caller counts its words");
}

fn header(out: &mut Vec<u8>, type_byte: u8, mut count: usize) {
    // Written backwards, because the last digit is known first. u64::MAX has 20 digits.
    let mut line = [0; 1 + 20 + 2];
    let mut start = line.len() - CRLF.len();
    line[start..].copy_from_slice(CRLF);
    loop {
        start -= 1;
        // The remainder is below ten.
        line[start] = b'0' + (count % 10) as u8;
        count /= 10;
        if count == 0 {
            break;
        }
    }
    start -= 1;
    line[start] = type_byte;
    out.extend_from_slice(&line[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(args: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        encode_command(&mut out, args);
        out
    }

    #[test]
    fn arguments_are_counted_and_not_quoted() {
        assert_eq!(encoded(&[b"PING"]), b"*1\r\n$4\r\nPING\r\n");
        assert_eq!(
            encoded(&[b"SET", b"a\r\nb\0", b"", b"\xff"]),
            b"*4\r\n$3\r\nSET\r\n$5\r\na\r\nb\0\r\n$0\r\n\r\n$1\r\n\xff\r\n"
        );
        assert_eq!(encoded(&[]), b"*0\r\n");
    }

    #[test]
    fn numbers_of_any_width_are_written_in_full() {
        for count in [0, 9, 10, 99, 100, 65_536, usize::MAX] {
            let mut out = Vec::new();
            header(&mut out, b'$', count);
            assert_eq!(out, format!("${count}\r\n").into_bytes());
        }
    }

    #[test]
    fn commands_are_appended_and_the_buffer_keeps_its_memory() {
        let mut out = Vec::with_capacity(64);
        let memory = out.as_ptr();
        encode_command(&mut out, &[b"PING"]);
        encode_command(&mut out, &[b"PING"]);
        assert_eq!(out, b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n");
        assert_eq!(out.as_ptr(), memory);
    }
}
