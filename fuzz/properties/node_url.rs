//! Node URLs: any text is parsed or refused, and no password is shown either way.

use redlatch::internal::node_url::NodeUrl;

/// Nothing that a URL contains by chance, and nothing that encoding would change.
const SECRET: &str = "Zq7xSecretZq7x";

/// Panics unless `data`, if it is text, is treated as a URL should be.
pub(crate) fn check(data: &[u8]) {
    let Ok(url) = std::str::from_utf8(data) else { return };
    if let Ok(url) = NodeUrl::parse(url) {
        check_shown(&url);
    }
    check_secret(url);
}

/// What is shown of an endpoint is a URL of the same place, and holds nothing else.
fn check_shown(url: &NodeUrl) {
    assert!(url.same_server(url));
    let shown = url.to_string();
    let again = NodeUrl::parse(&shown).expect("what is shown can be parsed");
    assert!(again.same_server(url) && url.same_server(&again), "{shown}");
    assert_eq!(again.address(), url.address());
    assert_eq!(again.database(), url.database());
    assert_eq!(again.user(), url.user());
    // Stars, where there is a user who has one.
    let stars = url.user().and(url.password()).map(|_| &b"***"[..]);
    assert_eq!(again.password(), stars, "{shown}");
    assert_eq!(again.to_string(), shown, "there is one way to show it");
}

/// Puts a secret before the last `@`, where passwords end, and where one would be an option.
fn check_secret(url: &str) {
    if url.contains(SECRET) {
        // A fuzzer that watches comparisons finds the word, and puts it where it is no secret.
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
                // It became part of the user or of the path, which are no secrets.
                return;
            }
            format!("{url} {url:?}")
        }
        Err(error) => format!("{error} {error:?}"),
    };
    assert!(!shown.contains(SECRET), "{shown}");
}
