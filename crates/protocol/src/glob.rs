//! Patterns of names, as Redis matches them: `*`, `?`, `[a-z]`, and `\` before what stands for
//! itself.
//!
//! Source: `stringmatchlen` in Redis's `util.c`.

/// Is a key listed by this pattern? The pattern `*` means that there is none, so that it also lists
/// the empty key.
pub fn is_listed(pattern: &[u8], key: &[u8]) -> bool {
    pattern == b"*" || matches(pattern, key)
}

/// Does the text match the pattern, as Redis matches them? An empty text matches only an empty
/// pattern.
fn matches(mut pattern: &[u8], mut text: &[u8]) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    // Behind the last `*`: the pattern, and the text of which it takes one more byte each time.
    let mut last_star: Option<(&[u8], &[u8])> = None;
    loop {
        if let Some(rest) = pattern.strip_prefix(b"*") {
            last_star = Some((rest, text));
            pattern = rest;
            continue;
        }
        let step = text
            .split_first()
            .and_then(|(byte, rest)| Some((one(pattern, *byte)?, rest)));
        match step {
            Some(rests) => (pattern, text) = rests,
            None if pattern.is_empty() && text.is_empty() => return true,
            None => match last_star {
                Some((behind, [_, rest @ ..])) => {
                    pattern = behind;
                    text = rest;
                    last_star = Some((behind, rest));
                }
                _ => return false,
            },
        }
    }
}

/// What is left of a pattern whose first element, no `*`, matches this byte.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => class(rest, byte),
        [b'\\', quoted, rest @ ..] => (*quoted == byte).then_some(rest),
        [plain, rest @ ..] => (*plain == byte).then_some(rest),
        [] => None,
    }
}

/// The same for the rest of a class such as `[^a-z]`. Without a `]`, it goes on to the end.
fn class(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (is_negated, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut is_member = false;
    let end = loop {
        match rest {
            [b'\\', quoted, more @ ..] => {
                is_member |= *quoted == byte;
                rest = more;
            }
            [b']', end @ ..] => break end,
            [from, b'-', to, more @ ..] => {
                let range = *from.min(to)..=*from.max(to);
                is_member |= range.contains(&byte);
                rest = more;
            }
            [member, more @ ..] => {
                is_member |= *member == byte;
                rest = more;
            }
            [] => break rest,
        }
    };
    (is_member != is_negated).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::{is_listed, matches};

    #[test]
    fn patterns_match_as_in_redis() {
        let table: [(&str, &[&str], &[&str]); 12] = [
            ("job", &["job"], &["jobs", "jo", ""]),
            ("j*b", &["jb", "job", "jbb"], &["jobs", "b"]),
            ("*a*b", &["ab", "xaxxbxb"], &["ba", "a"]),
            ("**", &["a", "ab"], &[""]),
            ("?o?", &["job"], &["jo", "jobs"]),
            ("[a-c]x", &["ax", "cx"], &["dx", "-x", "x"]),
            ("[c-a]x", &["bx"], &["dx"]),
            ("[^ab]", &["c", "^"], &["a", "b"]),
            (r"[\]a]", &["]", "a"], &["\\"]),
            ("[ab", &["a", "b"], &["[ab", "c"]),
            (r"\*\[", &["*["], &["a["]),
            ("a\\", &["a\\"], &["a"]),
        ];
        for (pattern, matching, others) in table {
            for text in matching {
                assert!(
                    matches(pattern.as_bytes(), text.as_bytes()),
                    "{pattern} {text}"
                );
            }
            for text in others {
                assert!(
                    !matches(pattern.as_bytes(), text.as_bytes()),
                    "{pattern} {text}"
                );
            }
        }
    }

    #[test]
    fn a_star_alone_lists_all() {
        assert!(is_listed(b"*", b"") && is_listed(b"*", b"a") && is_listed(b"a*", b"a"));
        assert!(!is_listed(b"**", b"") && !is_listed(b"", b"a"));
    }
}
