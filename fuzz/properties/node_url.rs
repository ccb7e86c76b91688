//! Node URLs: any text is parsed or refused, and no password is shown in either case.

use redlatch::internal::node_url::NodeUrl;

/// A word that no URL contains by chance and that encoding does not change.
const SECRET: &str = "Zq7xSecretZq7x";

/// Panics unless `data`, if it is text, is treated as a URL should be.
pub(crate) fn check(data: &[u8]) {
    let Ok(url) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(url) = NodeUrl::parse(url) {
        check_shown(&url);
    }
    check_secret(url);
}

/// The shown form is a URL of the same node, without secrets.
fn check_shown(url: &NodeUrl) {
    assert!(url.same_server(url));
    let shown = url.to_string();
    let again = NodeUrl::parse(&shown).expect("the shown URL can be parsed");
    assert!(again.same_server(url) && url.same_server(&again), "{shown}");
    assert_eq!(again.address(), url.address());
    assert_eq!(again.database(), url.database());
    assert_eq!(again.user(), url.user());
    // Stars instead of the password, if there is a user with a password.
    let stars = url.user().and(url.password()).map(|_| &b"***"[..]);
    assert_eq!(again.password(), stars, "{shown}");
    assert_eq!(again.to_string(), shown, "the shown form is stable");
}

/// Puts a secret before the last `@`, where passwords end, and where it would be an option.
fn check_secret(url: &str) {
    if url.contains(SECRET) {
        // A fuzzer that traces comparisons finds the word, and puts it where it is no secret.
        return;
    }
    if let Some((before, after)) = url.rsplit_once('@') {
        check_hidden(&format!("{before}{SECRET}@{after}"));
        check_hidden(&format!("{before}:{SECRET}@{after}"));
    }
    check_hidden(&format!("{url}?password={SECRET}"));
    if url.contains('?') {
        check_hidden(&format!("{url}&password={SECRET}"));
    }
    check_hidden(&format!("redis://:{SECRET}{url}@host"));
}

fn check_hidden(url: &str) {
    let shown = match NodeUrl::parse(url) {
        Ok(url) => {
            check_shown(&url);
            let holds = |part: Option<&[u8]>| {
                part.is_some_and(|part| {
                    part.windows(SECRET.len()).any(|at| at == SECRET.as_bytes())
                })
            };
            if !holds(url.password()) {
                // It is part of the user or of the path, which are not secrets.
                return;
            }
            format!("{url} {url:?}")
        }
        Err(error) => format!("{error} {error:?}"),
    };
    assert!(!shown.contains(SECRET), "{shown}");
}
