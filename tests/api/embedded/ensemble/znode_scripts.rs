//! Scripts about znodes: how they are read, created, changed and deleted, also in transactions.

use super::request::*;
use super::script::Step;

pub(super) fn asks(requests: Vec<Request>) -> Vec<Step> {
    let open = [Step::Open(0)].into_iter();
    open.chain(requests.into_iter().map(|request| Step::Ask(0, request)))
        .collect()
}

pub(super) fn sync(path: &str) -> Request {
    Request::Sync(path.to_owned())
}

pub(super) fn reads() -> Vec<Step> {
    let mut requests = vec![create(CREATE2, "/reads", 0), create(CREATE, "/reads/a", 0)];
    for path in [
        "/",
        "",
        "/zookeeper",
        "/zookeeper/quota",
        "/reads",
        "/reads/a",
        "/none",
        "no",
    ] {
        for opcode in [EXISTS, GET_DATA, GET_CHILDREN, GET_CHILDREN2] {
            requests.push(read(opcode, path, false));
        }
    }
    requests.extend([sync("/reads"), sync("/none"), sync("/"), Request::Ping]);
    asks(requests)
}

pub(super) fn creates() -> Vec<Step> {
    let null = Request::Create {
        opcode: CREATE2,
        path: "/creates/null".into(),
        data: None,
        acl: ANYONE,
        flags: 0,
    };
    let mut requests = vec![
        create(CREATE2, "/creates", 0),
        create(CREATE2, "/creates", 0),
        create(CREATE, "/creates", 0),
        create(CREATE2, "/none/a", 0),
        create(CREATE2, "/", 0),
        null,
        read(GET_DATA, "/creates/null", false),
        create(CREATE_CONTAINER, "/creates/box", 4),
        create(CREATE_CONTAINER, "/creates/box", 4),
        read(EXISTS, "/creates/box", false),
        create(CREATE2, "/creates/box/a-", 3),
        create(CREATE, "/creates/box/a-", 3),
        create(CREATE2, "/creates/box/b-", 2),
        create(CREATE2, "/creates/box/", 3),
        create(CREATE2, "/creates/box/", 0),
        delete("/creates/box/a-0000000000", -1),
        create(CREATE2, "/creates/box/a-", 3),
        create(CREATE2, "/creates/e", 1),
        create(CREATE2, "/creates/e/child", 0),
        create(CREATE2, "/creates/e/child", 1),
        read(GET_CHILDREN2, "/creates", false),
        read(GET_CHILDREN2, "/creates/box", false),
    ];
    for flags in [5, 6, 7, -1, 100] {
        requests.push(create(CREATE2, "/creates/odd", flags));
    }
    requests.push(create(CREATE_TTL, "/creates/ttl", 5));
    asks(requests)
}

pub(super) fn deletes() -> Vec<Step> {
    let mut requests = vec![
        create(CREATE2, "/deletes", 0),
        create(CREATE2, "/deletes/a", 0),
        create(CREATE2, "/deletes/a/b", 0),
        delete("/deletes/a", -1),
        delete("/deletes/a/b", 1),
        delete("/deletes/a/b", 0),
        delete("/deletes/a/b", -1),
        delete("/none/a", -1),
        delete("/deletes/a", 0),
        read(EXISTS, "/deletes", false),
    ];
    for path in [
        "/",
        "/zookeeper",
        "/zookeeper/quota",
        "/zookeeper/config",
        "a",
        "",
        "/deletes/",
    ] {
        requests.push(delete(path, -1));
    }
    asks(requests)
}

pub(super) fn data() -> Vec<Step> {
    let null = Request::SetData {
        path: "/data".into(),
        data: None,
        version: -1,
    };
    asks(vec![
        create(CREATE2, "/data", 0),
        set_data("/data", b"one", 0),
        set_data("/data", b"two", 0),
        set_data("/data", b"three", -1),
        read(GET_DATA, "/data", false),
        null,
        read(GET_DATA, "/data", false),
        set_data("/data", b"", 3),
        set_data("/none", b"", -1),
        set_data("/data/", b"", -1),
        set_data("", b"", -1),
        delete("/data", 0),
        delete("/data", 4),
    ])
}

pub(super) fn paths() -> Vec<Step> {
    let mut requests = vec![create(CREATE2, "/paths", 0)];
    for name in [
        "a",
        "",
        "a/",
        "/a",
        ".",
        "..",
        "./a",
        "a/..",
        "...",
        "a b",
        "ä",
        "\0",
        "a\0b",
        "\n",
        "\u{7f}",
        "\u{85}",
        "\u{a0}",
        "\u{d7ff}",
        "\u{e000}",
        "\u{f8ff}",
        "\u{f900}",
        "\u{fff0}",
        "\u{1f512}",
        "%2F",
    ] {
        let path = format!("/paths/{name}");
        requests.push(create(CREATE2, &path, 0));
        requests.push(create(CREATE2, &path, 2));
        requests.push(set_data(&path, b"", -1));
        requests.push(read(EXISTS, &path, false));
        requests.push(read(GET_DATA, &path, true));
        requests.push(read(GET_CHILDREN2, &path, true));
        requests.push(delete(&path, -1));
    }
    for path in ["paths", "", "//", "/paths//a"] {
        requests.push(create(CREATE2, path, 0));
    }
    asks(requests)
}

pub(super) fn transactions() -> Vec<Step> {
    let multi = |operations: &[Request]| Request::Multi(operations.to_vec());
    asks(vec![
        multi(&[]),
        create(CREATE2, "/multi", 0),
        multi(&[
            create(CREATE, "/multi/a", 0),
            create(CREATE2, "/multi/b", 1),
            create(CREATE2, "/multi/s-", 3),
            create(CREATE_CONTAINER, "/multi/box", 4),
            create(CREATE2, "/multi/c", 4),
            check("/multi/a", 0),
            set_data("/multi/a", b"set", 0),
            set_data("/multi/a", b"again", 1),
            delete("/multi/b", 0),
            create(CREATE2, "/multi/s-", 3),
            create(CREATE2, "/multi/a/below", 0),
        ]),
        read(GET_CHILDREN2, "/multi", false),
        read(GET_DATA, "/multi/a", false),
        multi(&[
            create(CREATE2, "/multi/d", 0),
            set_data("/multi/a", b"never", -1),
            delete("/multi/box", -1),
            check("/none", -1),
            create(CREATE2, "/multi/e", 0),
        ]),
        read(GET_CHILDREN2, "/multi", false),
        read(GET_DATA, "/multi/a", false),
        read(EXISTS, "/multi/box", false),
        multi(&[delete("/multi/a", -1), create(CREATE2, "/multi/d", 0)]),
        multi(&[delete("/multi/a/below", -1), delete("/multi/a", -1)]),
        multi(&[
            create(CREATE2, "/multi/s-", 3),
            create(CREATE2, "/multi", 0),
        ]),
        create(CREATE2, "/multi/s-", 3),
        multi(&[create(CREATE2, "/multi/x", 1), delete("/multi/x", -1)]),
        multi(&[check("/multi", -1)]),
        multi(&[check("/multi", 7)]),
        multi(&[check("/multi/", -1)]),
        multi(&[create(CREATE2, "/multi/odd", 7)]),
        multi(&[create(CREATE2, "/multi/odd", 5)]),
        read(GET_CHILDREN2, "/multi", false),
        Request::Bytes(14, vec![0; 9]),
        Request::Bytes(14, vec![0, 0, 0, 3, 0, 255, 255, 255, 255]),
        sync("/multi"),
    ])
}
