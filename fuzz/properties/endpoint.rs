//! Node URLs: any text is parsed or refused, and no password is shown either way.

use redlatch::internal::endpoint::Endpoint;

/// Nothing that a URL contains by chance, and nothing that encoding would change.
const SECRET: &str = "Zq7xSecretZq7x";

/// Panics unless `data`, if it is text, is treated as a URL should be.
pub(crate) fn check(data: &[u8]) {
    let Ok(url) = std::str::from_utf8(data) else { return };
    if let Ok(endpoint) = Endpoint::parse(url) {
        check_shown(&endpoint);
    }
    check_secret(url);
}

/// What is shown of an endpoint is a URL of the same place, and holds nothing else.
fn check_shown(endpoint: &Endpoint) {
    assert!(endpoint.same_server(endpoint));
    let shown = endpoint.to_string();
    let again = Endpoint::parse(&shown).expect("what is shown can be parsed");
    assert!(again.same_server(endpoint) && endpoint.same_server(&again), "{shown}");
    assert_eq!(again.address(), endpoint.address());
    assert_eq!(again.database(), endpoint.database());
    assert_eq!(again.user(), endpoint.user());
    // Stars, where there is a user who has one.
    let stars = endpoint.user().and(endpoint.password()).map(|_| &b"***"[..]);
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
    let shown = match Endpoint::parse(url) {
        Ok(endpoint) => {
            check_shown(&endpoint);
            let holds = |part: Option<&[u8]>| {
                part.is_some_and(|part| {
                    part.windows(SECRET.len()).any(|at| at == SECRET.as_bytes())
                })
            };
            if !holds(endpoint.password()) {
                // It became part of the user or of the path, which are no secrets.
                return;
            }
            format!("{endpoint} {endpoint:?}")
        }
        Err(error) => format!("{error} {error:?}"),
    };
    assert!(!shown.contains(SECRET), "{shown}");
}
