//! Requests, paths and names in few words.

use super::*;

/// The count and the names of a list.
pub(super) fn list_of(names: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FrameWriter::begin(&mut bytes);
    writer.int(i32::try_from(names.len()).unwrap());
    for name in names {
        writer.text(&long(name));
    }
    writer.finish().unwrap();
    frame(&bytes).unwrap().unwrap().0.to_vec()
}

/// `c1-0000000007` in full, also behind a directory; `r1` and `p3-1` too.
pub(super) fn long(name: &str) -> String {
    if let Some((directory, name)) = name.rsplit_once('/') {
        return format!("{directory}/{}", long(name));
    }
    let id = |attempt: &str| Some(ContenderId::from_random([attempt.parse().ok()?; 16]));
    if let Some(id) = name.strip_prefix('r').and_then(id) {
        return format!("r{id}");
    }
    if let Some((slot, attempt)) = name.strip_prefix('p').and_then(|rest| rest.split_once('-')) {
        return format!("p{slot}-{}", id(attempt).unwrap());
    }
    let Some((attempt, number)) = name.strip_prefix('c').and_then(|rest| rest.split_once('-'))
    else {
        return name.to_owned();
    };
    let id = ContenderId::from_random([attempt.parse().unwrap(); 16]);
    format!("_c_{id}-lock-{number}")
}

/// The last element of a path, in short if it is a contender's.
pub(super) fn short(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    if path.contains("~shares/") {
        let end = name
            .find('-')
            .filter(|_| name.starts_with('p'))
            .map_or(1, |at| at + 1);
        let attempt = u8::from_str_radix(&name[end..end + 2], 16).unwrap();
        return format!("{}{attempt}", &name[..end]);
    }
    let Some(rest) = name.strip_prefix("_c_") else {
        return name.to_owned();
    };
    let attempt = &rest[..2];
    let number = rest.rsplit_once("lock-").map_or("", |(_, n)| n);
    let attempt = u8::from_str_radix(attempt, 16).unwrap();
    if number.is_empty() {
        format!("c{attempt}")
    } else {
        format!("c{attempt}-{number}")
    }
}

/// Of a directory: which lock it is, unless it is that of most tests.
fn lock_of(path: &str) -> String {
    let name = path
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .trim_end_matches("~shares");
    if name == "a" {
        String::new()
    } else {
        format!(" {name}")
    }
}

pub(super) fn asked(request: &EnsembleRequest) -> String {
    match request {
        EnsembleRequest::Create(create) => match create.kind {
            CreateKind::EphemeralSequential => format!("create {}", short(&create.path)),
            kind => format!("{kind:?} {}", create.path),
        },
        EnsembleRequest::GetChildren { path, watch } if path.ends_with("~shares") => {
            let lock = lock_of(path);
            if *watch {
                format!("watch shares{lock}")
            } else {
                format!("shares{lock}")
            }
        }
        EnsembleRequest::GetChildren { path, watch: false } => format!("list{}", lock_of(path)),
        EnsembleRequest::Sync(_) => "sync".to_owned(),
        EnsembleRequest::Exists { path, watch: false } => format!("stat {}", short(path)),
        EnsembleRequest::GetData { path, watch: true } => format!("watch {}", short(path)),
        EnsembleRequest::Multi(operations) => {
            let texts = operations.iter().map(|operation| match operation {
                MultiOperation::Delete(path) => format!("delete {}", short(path)),
                MultiOperation::Create(create) => format!("create {}", short(&create.path)),
                other => panic!("{other:?}"),
            });
            texts.collect::<Vec<_>>().join(" + ")
        }
        other => panic!("{other:?}"),
    }
}
