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
//!   which only a part of a password that is not an ordinary word stands by itself.
//! * Upper and lower case are the same. A text that quotes a password in escapes (`\x73`, `%73`) is
//!   not shown at all.

use super::escapes::Unescaped;
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
    /// This many bytes, in place of which there may be stars.
    Stars(usize),
    /// Nothing of the text may be shown.
    Whole,
}

/// A text that may quote the password.
struct Quoting<'a> {
    text: &'a [u8],
    /// A match before this is not a quotation: it is an error code of servers.
    code: usize,
    /// From here on there is nothing but punctuation.
    punctuation: usize,
}

/// The first bytes of `text`, `length` of them or a few more, with stars for each `secret` in them.
/// `None` if nothing of it may be shown. A match within the first `code` bytes, which are an error
/// code of servers, is not a quotation.
///
/// It looks at no more than a few hundred places in the text, however long that is.
pub(super) fn without(text: &[u8], secret: &[u8], code: usize, length: usize) -> Option<Vec<u8>> {
    // Some servers write this in place of bytes that are not UTF-8.
    let lossy = String::from_utf8_lossy(secret);
    let forms: &[&[u8]] = match &lossy {
        _ if secret.is_empty() => &[],
        Cow::Borrowed(_) => &[secret],
        Cow::Owned(lossy) => &[secret, lossy.as_bytes()],
    };
    let quoting = Quoting::new(text, code);
    let mut shown = Vec::new();
    let mut at = 0;
    while at < text.len() && shown.len() <= length {
        match forms.iter().find_map(|secret| quoting.quote_at(at, secret)) {
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
    let is_hidden = !forms.is_empty() && quotes_escaped(text, at, forms, code);
    (!is_hidden).then_some(shown)
}

/// Is the secret quoted before `end` by a server that escapes all or some of its characters?
fn quotes_escaped(text: &[u8], end: usize, forms: &[&[u8]], code: usize) -> bool {
    let unescaped = Unescaped::of(text);
    if unescaped.bytes.len() == text.len() {
        return false;
    }
    let quoting = Quoting::new(&unescaped.bytes, code);
    let shown = unescaped.starts.partition_point(|start| *start < end);
    (0..shown).any(|at| {
        forms
            .iter()
            .any(|secret| quoting.quote_at(at, secret).is_some())
    })
}

impl<'a> Quoting<'a> {
    fn new(text: &'a [u8], code: usize) -> Self {
        let is_punctuation =
            |byte: &u8| matches!(byte, b'.' | b',' | b';' | b':' | b'!' | b' ' | b'\t');
        let last = text.iter().rposition(|byte| !is_punctuation(byte));
        Self {
            text,
            code,
            punctuation: last.map_or(0, |last| last + 1),
        }
    }

    /// Does the text quote the secret, or the beginning of it, from `at` on and beyond the code?
    fn quote_at(&self, at: usize, secret: &[u8]) -> Option<Quote> {
        let text = self.text;
        let common = common_length(&text[at..], secret);
        let end = at + common;
        if common == 0 || end <= self.code {
            return None;
        }
        let is_beginning = at == 0 || !(is_word(text[at - 1]) && is_word(text[at]));
        let is_end = self.is_quotation_end(end) || !(is_word(text[end]) && is_word(text[end - 1]));
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
        let ends = (CUT_MIN..=common).any(|length| self.is_quotation_end(at + length));
        let is_no_word = common >= CUT_MIN && is_end && !is_ordinary(&secret[..common]);
        (is_beginning && (ends || is_no_word)).then_some(Quote::Whole)
    }

    /// Does a quotation end here, or the text?
    fn is_quotation_end(&self, at: usize) -> bool {
        at >= self.punctuation
            || b"'\"`)]>\\".contains(&self.text[at])
            || ["...", "\u{2026}", "\u{201d}"]
                .iter()
                .any(|mark| self.text[at..].starts_with(mark.as_bytes()))
    }
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

/// How many bytes at the beginning of both are the same, whatever the case of letters: a server may
/// quote what it got in its own case. A blank equals a line break of the secret, because servers
/// replace line breaks to keep a reply on one line, and a plus sign equals a blank, as in URLs.
fn common_length(text: &[u8], secret: &[u8]) -> usize {
    text.iter()
        .zip(secret)
        .take_while(|(seen, secret)| {
            seen.eq_ignore_ascii_case(secret)
                || **seen == b' ' && matches!(secret, b'\r' | b'\n')
                || **seen == b'+' && **secret == b' '
        })
        .count()
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
            assert_eq!(
                shown(PERMISSIONS, secret).as_deref(),
                Some(PERMISSIONS),
                "{secret}"
            );
        }
        let port = "MOVED 7000 10.0.0.12:6379";
        for secret in ["7", "00", "37", "70"] {
            assert_eq!(shown(port, secret).as_deref(), Some(port), "{secret}");
        }
    }

    #[test]
    fn a_text_with_a_word_that_is_the_password_is_not_shown() {
        for secret in [
            "no",
            "user",
            "permissions",
            "permission",
            "get",
            "'get'",
            "'",
            "no permissions",
        ] {
            assert_eq!(shown(PERMISSIONS, secret), None, "{secret}");
        }
        for secret in ["6379", "7000", "12:6379", "10.0"] {
            assert_eq!(shown("MOVED 7000 10.0.0.12:6379", secret), None, "{secret}");
        }
        for secret in ["p", "pass", "correct horse", "letters-only"] {
            for text in [
                format!("ERR {secret}"),
                format!("{secret} is odd"),
                format!("a='{secret}'"),
            ] {
                assert_eq!(shown(&text, secret), None, "{text}");
            }
        }
        assert_eq!(
            shown("ERR xcorrecthorsex", "correcthorse"),
            None,
            "too long to be chance"
        );
    }

    #[test]
    fn a_password_that_is_no_word_is_starred_wherever_it_stands() {
        for secret in ["s3c", "hunter2", "p\u{e9}p\u{e9}", "a\tb"] {
            for (before, behind) in [("ERR '", "' is odd"), ("ERR x", "x is odd"), ("", "")] {
                let text = format!("{before}{secret}{behind}");
                assert_eq!(shown(&text, secret), Some(format!("{before}***{behind}")));
            }
        }
        assert_eq!(
            shown("ERR a4b", "4b"),
            None,
            "stars for so little say what it is"
        );
    }

    #[test]
    fn the_beginning_of_a_password_is_not_shown_where_a_quotation_ends() {
        for secret in [
            "s3cr:et-w0rd",
            "secretwords",
            "12345678901",
            "se cret\"words",
        ] {
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
        for text in [
            "ERR the password is wrong",
            "ERR passwords are wrong",
            "ERR bad 'pa'",
        ] {
            assert_eq!(shown(text, "password-of-mine").as_deref(), Some(text));
        }
    }

    #[test]
    fn a_password_in_another_case_is_not_shown() {
        assert_eq!(
            shown("ERR no HUNTER2 here", "hunter2").as_deref(),
            Some("ERR no *** here")
        );
        assert_eq!(
            shown("ERR no hunter2 here", "HuNtEr2").as_deref(),
            Some("ERR no *** here")
        );
        for text in [
            "ERR bad 'CORRECT HORSE'",
            "ERR correct+horse",
            "ERR bad 'Correct H",
        ] {
            assert_eq!(shown(text, "correct horse"), None, "{text}");
        }
        assert_eq!(
            shown("ERR unknown command 'AUTH' 'S3CR", "s3cr:et-w0rd"),
            None
        );
    }

    #[test]
    fn a_password_in_escapes_is_not_shown() {
        let secret = "s3cr:et-w0rd";
        let each = |write: fn(u8) -> String| secret.bytes().map(write).collect::<String>();
        for quoted in [
            each(|byte| format!("\\x{byte:02x}")),
            each(|byte| format!("\\x{byte:02X}")),
            each(|byte| format!("%{byte:02X}")),
            each(|byte| format!("\\u{byte:04x}")),
            each(|byte| format!("\\u{{{byte:x}}}")),
            each(|byte| format!("\\{byte:03o}")),
            "s3cr%3Aet-w0rd".to_owned(),
            "S3CR\\x3aET\\x2dW0RD".to_owned(),
        ] {
            for text in [
                format!("ERR bad {quoted}"),
                format!("ERR '{quoted}' is odd"),
                format!("x{quoted}x and more"),
                // Cut between two escapes: the end of the quotation or of the text.
                format!("ERR bad {}", &quoted[..quoted.len() / 12 * 6]),
            ] {
                assert_eq!(shown(&text, secret), None, "{text}");
            }
        }
        // The password itself may have escapes in it.
        assert_eq!(
            shown("ERR no a%41b9 here", "a%41b9").as_deref(),
            Some("ERR no *** here")
        );
        assert_eq!(shown("ERR 'a\\\"b9' here", "a\"b9"), None);
        // Escapes of other things are shown as they are.
        let other = "ERR 100%25 of \\x00 and %41";
        assert_eq!(shown(other, "hunter2").as_deref(), Some(other));
    }

    #[test]
    fn a_long_text_takes_no_longer_for_a_long_password() {
        let start = std::time::Instant::now();
        for unit in [".", " ", "a", "'", "\\x61"] {
            let text = unit.repeat(64 * 1024);
            let secret = format!("{}b", unit.repeat(500));
            let _ = without(text.as_bytes(), secret.as_bytes(), 0, 300);
        }
        assert!(
            start.elapsed() < std::time::Duration::from_secs(20),
            "{:?}",
            start.elapsed()
        );
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
        assert_eq!(
            shown(text, "words").as_deref(),
            Some("ERR unknown command 'LOGIN'")
        );
        let secret = "4, with args beginning with b";
        assert_eq!(
            shown(&format!("ERR {secret} no"), secret).as_deref(),
            Some("ERR *** no")
        );
    }
}
