//! Finds quotations of the password in a server's text, and decides which part of it may be shown.
//!
//! Two errors must be avoided: showing a password, or a part of it; and hiding letters of the
//! server's own words because a short password occurs in them, which makes the text unreadable and
//! reveals the password by the missing letters.
//!
//! * A password that may be an ordinary word (printable characters, letters or digits but not both)
//!   is looked for as a word of its own, and inside of words only if it is long. A text that
//!   contains it is not shown at all: stars in the place of a word say which word it is.
//! * Any other password is looked for everywhere, and there are stars in its place.
//! * The beginning of a password, as a server quotes it that cuts its quotations short, is looked
//!   for at the end of quotations and of the text. Such a text is not shown at all, as is one in
//!   which only a part of a password that is no ordinary word stands by itself.

use std::borrow::Cow;

/// The replacement of a text, or of its part after the code.
pub(super) const WITHHELD: &str = "(not shown: it may quote a secret)";

/// From here on, ordinary passwords are looked for inside of words as well: few words are longer.
const WORD_MAX: usize = 8;

/// The fewest bytes of a password that are taken for its beginning.
const CUT_MIN: usize = 3;

/// A server that does not know a command quotes its arguments behind this, and AUTH may be renamed.
const ARGUMENTS: &[u8] = b", with args beginning with";

/// Something in a text that must not be shown.
enum Quote {
    /// So many bytes, in place of which there may be stars.
    Stars(usize),
    /// Nothing of the text may be shown.
    Whole,
}

/// The first bytes of `text`, `length` of them or a few more, with stars for each `secret` in them.
/// `None` if nothing of it may be shown. A match within the first `code` bytes, which are an error
/// code of servers, is no quotation.
pub(super) fn without(text: &[u8], secret: &[u8], code: usize, length: usize) -> Option<Vec<u8>> {
    // Some servers write this in place of bytes that are no UTF-8.
    let lossy = String::from_utf8_lossy(secret);
    let forms: &[&[u8]] = match &lossy {
        _ if secret.is_empty() => &[],
        Cow::Borrowed(_) => &[secret],
        Cow::Owned(lossy) => &[secret, lossy.as_bytes()],
    };
    let (mut shown, mut at) = (Vec::new(), 0);
    while at < text.len() && shown.len() <= length {
        match forms.iter().find_map(|secret| quote_at(text, at, secret, code)) {
            Some(Quote::Whole) => return None,
            Some(Quote::Stars(quoted)) => {
                shown.extend_from_slice(b"***");
                at += quoted;
            }
            None if text[at..].starts_with(ARGUMENTS) => break,
            None => {
                shown.push(text[at]);
                at += 1;
            }
        }
    }
    Some(shown)
}

/// Does `text` quote the secret, or the beginning of it, from `at` on and beyond `code`?
fn quote_at(text: &[u8], at: usize, secret: &[u8], code: usize) -> Option<Quote> {
    let common = common_length(&text[at..], secret);
    let end = at + common;
    if common == 0 || end <= code {
        return None;
    }
    let is_beginning = at == 0 || !(is_word(text[at - 1]) && is_word(text[at]));
    let is_end = is_quotation_end(&text[end..]) || !(is_word(text[end]) && is_word(text[end - 1]));
    if common == secret.len() {
        return if is_ordinary(secret) {
            let is_quote = is_beginning && is_end || secret.len() >= WORD_MAX;
            is_quote.then_some(Quote::Whole)
        } else if secret.len() < CUT_MIN {
            Some(Quote::Whole)
        } else {
            Some(Quote::Stars(common))
        };
    }
    // The mark at the end of a quotation may be one that the secret has there, too.
    let ends = (CUT_MIN..=common).any(|length| is_quotation_end(&text[at + length..]));
    let is_no_word = common >= CUT_MIN && is_end && !is_ordinary(&secret[..common]);
    (is_beginning && (ends || is_no_word)).then_some(Quote::Whole)
}

/// Could this be an ordinary word?
fn is_ordinary(secret: &[u8]) -> bool {
    let is_printable = secret.iter().all(|byte| matches!(byte, b' '..=b'~'));
    let has_letter = secret.iter().any(u8::is_ascii_alphabetic);
    is_printable && !(has_letter && secret.iter().any(u8::is_ascii_digit))
}

/// Is this byte part of a word?
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

/// Does a quotation end before `rest`, or the text?
fn is_quotation_end(rest: &[u8]) -> bool {
    let marks: [&[u8]; 10] = [
        b"'",
        b"\"",
        b"`",
        b")",
        b"]",
        b">",
        b"\\",
        b"...",
        "\u{2026}".as_bytes(),
        b"\xe2\x80\x9d",
    ];
    let is_punctuation =
        |byte: &u8| matches!(byte, b'.' | b',' | b';' | b':' | b'!' | b' ' | b'\t');
    marks.iter().any(|mark| rest.starts_with(mark)) || rest.iter().all(is_punctuation)
}

/// How many bytes at the beginning of both are the same. A blank equals a line break of the secret,
/// because servers replace line breaks to keep a reply on one line.
fn common_length(text: &[u8], secret: &[u8]) -> usize {
    let is_same = |(seen, secret): &(&u8, &u8)| {
        seen == secret || **seen == b' ' && matches!(secret, b'\r' | b'\n')
    };
    text.iter().zip(secret).take_while(is_same).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERMISSIONS: &str = "NOPERM this user has no permissions to run the 'get' command";

    fn shown(text: &str, secret: &str) -> Option<String> {
        let shown = without(text.as_bytes(), secret.as_bytes(), 0, 1_000);
        shown.map(|shown| String::from_utf8(shown).unwrap())
    }

    #[test]
    fn a_short_password_takes_no_letters_out_of_words() {
        for secret in ["p", "s", "per", "mission", "us", "o", "1"] {
            assert_eq!(shown(PERMISSIONS, secret).as_deref(), Some(PERMISSIONS), "{secret}");
        }
        let port = "MOVED 7000 10.0.0.12:6379";
        for secret in ["7", "00", "37", "70"] {
            assert_eq!(shown(port, secret).as_deref(), Some(port), "{secret}");
        }
    }

    #[test]
    fn a_text_with_a_word_that_is_the_password_is_not_shown() {
        for secret in
            ["no", "user", "permissions", "permission", "get", "'get'", "'", "no permissions"]
        {
            assert_eq!(shown(PERMISSIONS, secret), None, "{secret}");
        }
        for secret in ["6379", "7000", "12:6379", "10.0"] {
            assert_eq!(shown("MOVED 7000 10.0.0.12:6379", secret), None, "{secret}");
        }
        for secret in ["p", "pass", "correct horse", "letters-only"] {
            for text in
                [format!("ERR {secret}"), format!("{secret} is odd"), format!("a='{secret}'")]
            {
                assert_eq!(shown(&text, secret), None, "{text}");
            }
        }
        assert_eq!(shown("ERR xcorrecthorsex", "correcthorse"), None, "too long to be chance");
    }

    #[test]
    fn a_password_that_is_no_word_is_starred_wherever_it_stands() {
        for secret in ["s3c", "hunter2", "p\u{e9}p\u{e9}", "a\tb"] {
            for (before, behind) in [("ERR '", "' is odd"), ("ERR x", "x is odd"), ("", "")] {
                let text = format!("{before}{secret}{behind}");
                assert_eq!(shown(&text, secret), Some(format!("{before}***{behind}")));
            }
        }
        assert_eq!(shown("ERR a4b", "4b"), None, "stars for so little say what it is");
    }

    #[test]
    fn the_beginning_of_a_password_is_not_shown_where_a_quotation_ends() {
        for secret in ["s3cr:et-w0rd", "secretwords", "12345678901", "se cret\"words"] {
            for length in CUT_MIN..secret.len() {
                let cut = &secret[..length];
                for text in [
                    format!("ERR unknown command 'AUTH' '{cut}"),
                    format!("ERR bad password \"{cut}\" here"),
                    format!("ERR bad password `{cut}`, `x`"),
                    format!("ERR bad password {cut}... here"),
                    format!("ERR bad password ({cut}\u{2026})"),
                    format!("ERR bad password: {cut}."),
                    format!("ERR bad {cut}"),
                    format!("ERR bad '{cut}\\x"),
                ] {
                    assert_eq!(shown(&text, secret), None, "{text}");
                }
            }
        }
        // No ordinary word, so it was the password also where no quotation ends.
        assert_eq!(shown("ERR AUTH s3cr is wrong", "s3cr:et"), None);
        // Ordinary words, and beginnings that are too short.
        for text in ["ERR the password is wrong", "ERR passwords are wrong", "ERR bad 'pa'"] {
            assert_eq!(shown(text, "password-of-mine").as_deref(), Some(text));
        }
    }

    #[test]
    fn a_code_is_no_quotation() {
        let text = b"WRONGPASS invalid username-password pair or user is disabled.";
        for secret in ["WRONGPASS", "WRONG", "WRO", "WRONGPASS-of-mine"] {
            let shown = without(text, secret.as_bytes(), "WRONGPASS".len(), 1_000);
            assert_eq!(shown.as_deref(), Some(&text[..]), "{secret}");
        }
        assert_eq!(without(text, b"WRONGPASS invalid", 9, 1_000), None);
    }

    #[test]
    fn arguments_are_left_out_unless_the_password_says_so_itself() {
        let text = "ERR unknown command 'LOGIN', with args beginning with: 'words'";
        assert_eq!(shown(text, "words").as_deref(), Some("ERR unknown command 'LOGIN'"));
        let secret = "4, with args beginning with b";
        assert_eq!(shown(&format!("ERR {secret} no"), secret).as_deref(), Some("ERR *** no"));
    }
}
