//! Where a lock is: its directory, from the root and the lock's name, and the znodes in it.
//!
//! ```text
//!   zk://…/apps/locks        key prefix and name: "orders:4/2"
//!   /apps/locks              /orders:4%2F2
//!   persistent znodes        a container, with a znode for each contender
//! ```
//!
//! The whole name is one element of a path. A server accepts most characters there, and what it
//! refuses is percent-encoded, so every name has a directory and every directory one name.

use std::cmp::Ordering;
use std::fmt::{self, Write};
use std::sync::Arc;

/// The znode of the servers' own settings and quotas, at the top of the tree.
const RESERVED: &str = "/zookeeper";

/// What the name of a lock's directory ends with if it has the shares. No lock's name has a tilde.
const SHARES: &str = "~shares";

/// Why there is no such path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// A root does not begin with a slash.
    NoSlash,
    /// A root has an empty element, or `.` or `..`, or ends with a slash; or a name is empty.
    BadElement,
    /// A root has a character that servers refuse.
    BadCharacter(char),
    /// It is `/zookeeper` or below, which is the servers' own.
    Reserved,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSlash => f.write_str("the path does not begin with a slash"),
            Self::BadElement => f.write_str("an element of the path is empty, '.' or '..'"),
            Self::BadCharacter(character) => {
                write!(
                    f,
                    "the path has the character U+{:04X}",
                    u32::from(*character)
                )
            }
            Self::Reserved => write!(f, "{RESERVED} belongs to the servers"),
        }
    }
}

/// The znode below which all locks of a client are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Empty for the top of the tree; otherwise with a slash at its beginning and none at its end.
    path: Arc<str>,
}

impl Root {
    /// The root with this path; `/` and nothing are the top of the tree.
    pub fn new(path: &str) -> Result<Self, PathError> {
        if path.is_empty() || path == "/" {
            return Ok(Self {
                path: Arc::from(""),
            });
        }
        let elements = path.strip_prefix('/').ok_or(PathError::NoSlash)?;
        for element in elements.split('/') {
            if matches!(element, "" | "." | "..") {
                return Err(PathError::BadElement);
            }
        }
        if let Some(character) = path.chars().find(|character| !is_accepted(*character)) {
            return Err(PathError::BadCharacter(character));
        }
        refuse_reserved(path)?;
        Ok(Self {
            path: Arc::from(path),
        })
    }

    /// Its path, for a list of the locks.
    pub fn path(&self) -> &str {
        if self.path.is_empty() {
            "/"
        } else {
            &self.path
        }
    }

    /// The path of a znode directly below it.
    pub fn child(&self, name: &str) -> Arc<str> {
        format!("{}/{name}", self.path).into()
    }

    /// The paths down to the root, from the top: persistent znodes, which must exist before a lock
    /// can. The top of the tree itself always exists.
    pub fn persistent(&self) -> impl Iterator<Item = &str> {
        let ends = self.path.match_indices('/').map(|(at, _)| at).skip(1);
        let whole = (!self.path.is_empty()).then_some(self.path.len());
        ends.chain(whole).map(|end| &self.path[..end])
    }
}

/// The directory of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    pub path: Arc<str>,
}

impl Directory {
    /// The directory of the lock with this key prefix and name.
    pub fn new(root: &Root, key_prefix: &[u8], name: &[u8]) -> Result<Self, PathError> {
        let element = encode(&[key_prefix, name].concat());
        if element.is_empty() {
            return Err(PathError::BadElement);
        }
        let path = root.child(&element);
        refuse_reserved(&path)?;
        Ok(Self { path })
    }

    /// The path of the directory beside it with the shares that were granted. No lock's name has a
    /// tilde in its element.
    pub fn shares(&self) -> Arc<str> {
        format!("{}{SHARES}", self.path).into()
    }

    /// The path of a znode in it.
    pub fn child(&self, name: &str) -> Arc<str> {
        format!("{}/{name}", self.path).into()
    }
}

fn refuse_reserved(path: &str) -> Result<(), PathError> {
    match path.strip_prefix(RESERVED) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Err(PathError::Reserved),
        _ => Ok(()),
    }
}

/// Do all servers accept it in a path? They refuse control characters, surrogates, private use and
/// specials. Beyond U+D7FF their rules and their encodings differ, so none of these is used.
fn is_accepted(character: char) -> bool {
    matches!(character, ' '..='~' | '\u{a0}'..='\u{d7ff}')
}

/// Does it stand for itself in the element of a name? The slash ends an element, the percent sign
/// begins an encoded byte, and the tilde is kept for directories that belong to a lock.
fn is_plain(character: char) -> bool {
    is_accepted(character) && !matches!(character, '/' | '%' | '~')
}

/// The element of a path for this name.
fn encode(name: &[u8]) -> String {
    let mut element = String::with_capacity(name.len());
    if matches!(name, b"." | b"..") {
        escape(&mut element, name);
        return element;
    }
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_plain(character) {
                element.push(character);
            } else {
                escape(&mut element, character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        escape(&mut element, chunk.invalid());
    }
    element
}

fn escape(element: &mut String, bytes: &[u8]) {
    for byte in bytes {
        *element += &format!("%{byte:02X}");
    }
}

/// The key prefix and name of the lock whose directory has this name, `None` if it is not a lock's:
/// for a list of the locks.
pub fn decode(element: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(element.len());
    let mut rest = element;
    while let [first, after @ ..] = rest {
        if *first != b'%' {
            name.push(*first);
            rest = after;
            continue;
        }
        let (digits, after) = after.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        name.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    // Only the form in which it would have been written: no two directories are one lock.
    (!name.is_empty() && encode(&name).as_bytes() == element).then_some(name)
}

/// The key prefix and name of the lock to which the directory with this name belongs: that of its
/// queue, or that of its shares. `None` if it is not a lock's.
pub fn lock_of(element: &[u8]) -> Option<Vec<u8>> {
    decode(element.strip_suffix(SHARES.as_bytes()).unwrap_or(element))
}

// The names of contenders: who they belong to, and their order.
//
// ```text
//   _c_00010203-0405-4607-8809-0a0b0c0d0e0f-lock-0000000007      Layout::Curator
//   000102030405460788090a0b0c0d0e0f__lock__0000000007           Layout::Kazoo
//      └── id of one create request ───────┘      └ number ┘
// ```
//
// The server appends the number, which counts the changes of the directory's children. It is an
// `i32` of at least ten characters, and its order is that of the contenders until it reaches its
// end: see [`Number::is_past_end`].
//
// Sources: Curator's `LockInternals` and `ProtectedUtils`, kazoo's `recipe/lock.py`, ZooKeeper's
// `PrepRequestProcessor.pRequest2TxnCreate`.

/// The family of programs whose names are used, so that theirs and this library's locks exclude
/// each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Those of Curator, go-zookeeper and Rust's zookeeper-client.
    #[default]
    Curator,
    /// Those of kazoo.
    Kazoo,
}

impl Layout {
    /// What stands before the number, at the end of what the client chooses.
    fn delimiter(self) -> &'static str {
        match self {
            Self::Curator => "lock-",
            Self::Kazoo => "__lock__",
        }
    }

    /// What a contender's name begins with: all of it but the number.
    pub fn prefix(self, id: ContenderId) -> String {
        match self {
            Self::Curator => format!("_c_{id}-lock-"),
            Self::Kazoo => format!("{}__lock__", id.hexadecimal()),
        }
    }

    /// The name of the contender with this id and number.
    pub fn name(self, id: ContenderId, number: Number) -> String {
        format!("{}{:010}", self.prefix(id), number.0)
    }

    /// The number of the contender with this name, `None` if it is none of this family: others are
    /// no contenders.
    pub fn number(self, name: &[u8]) -> Option<Number> {
        let name = std::str::from_utf8(name).ok()?;
        let (_, digits) = name.rsplit_once(self.delimiter())?;
        let number = digits.parse().ok()?;
        // Only as a server writes it.
        (format!("{number:010}") == digits).then_some(Number(number))
    }
}

/// Identifies one create request: a random UUID (version 4), used once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContenderId([u8; 16]);

impl ContenderId {
    /// The id made of these random bytes.
    pub fn from_random(mut bytes: [u8; 16]) -> Self {
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(bytes)
    }

    fn hexadecimal(self) -> String {
        self.to_string().replace('-', "")
    }
}

/// The usual form, with hyphens.
impl fmt::Display for ContenderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_char('-')?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ContenderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContenderId({self})")
    }
}

/// The number that the server gave a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number(pub i32);

/// From this number on, a release removes the directory too, so that the numbers begin again.
const RENEWED_FROM: i32 = 1 << 30;

impl Number {
    /// The order of two contenders of one directory, unless one of them
    /// [`is_past_end`](Self::is_past_end). It goes around the end of the numbers, so it is an order
    /// of contenders that are less than 2^31 apart and not one of all numbers.
    pub fn order(self, other: Self) -> Ordering {
        self.0.wrapping_sub(other.0).cmp(&0)
    }

    /// Do numbers mean nothing any more? At 2147483647 the directory's counter stands still: later
    /// contenders get that number too, and those that are created at the same time negative ones.
    /// Then the order is that of the transactions that created them.
    pub fn is_past_end(self) -> bool {
        self.0 == i32::MAX || self.0 < 0
    }

    /// Should the directory be removed with this contender, if no other is there?
    pub fn renews_directory(self) -> bool {
        self.0 >= RENEWED_FROM || self.0 < 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(root: &str, name: &[u8]) -> Result<String, PathError> {
        let root = Root::new(root).unwrap();
        Directory::new(&root, b"", name).map(|directory| directory.path.to_string())
    }

    #[test]
    fn a_name_is_one_element_below_the_root() {
        for (name, element) in [
            (&b"orders:42"[..], "orders:42"),
            (b"a/b%c~d", "a%2Fb%25c%7Ed"),
            (b".", "%2E"),
            (b"..", "%2E%2E"),
            (b"...", "..."),
            (b" a b ", " a b "),
            (b"\0\n\x7f", "%00%0A%7F"),
            ("schlüssel 鍵".as_bytes(), "schlüssel 鍵"),
            (
                "\u{80}\u{9f}\u{a0}\u{d7ff}".as_bytes(),
                "%C2%80%C2%9F\u{a0}\u{d7ff}",
            ),
            (
                "\u{e000}\u{ffff}😀".as_bytes(),
                "%EE%80%80%EF%BF%BF%F0%9F%98%80",
            ),
            (b"a\xffb\xc3", "a%FFb%C3"),
        ] {
            assert_eq!(directory("/locks", name), Ok(format!("/locks/{element}")));
            assert_eq!(decode(element.as_bytes()), Some(name.to_vec()), "{element}");
        }
    }

    #[test]
    fn every_byte_and_every_character_comes_back() {
        for byte in 0..=u8::MAX {
            for name in [vec![byte], vec![b'a', byte, byte]] {
                assert_eq!(decode(encode(&name).as_bytes()), Some(name));
            }
        }
        for character in (0..=0x11_0000).step_by(7).filter_map(char::from_u32) {
            let name = character.to_string().into_bytes();
            assert_eq!(decode(encode(&name).as_bytes()), Some(name));
        }
    }

    #[test]
    fn what_no_name_is_encoded_as_is_no_lock() {
        for element in [
            "", "%", "%2", "%2f", "%61", "a~shares", ".", "..", "%+1", "a/b", "%2E.",
        ] {
            assert_eq!(decode(element.as_bytes()), None, "{element}");
        }
        assert_eq!(decode(b"\xff"), None);
    }

    #[test]
    fn both_directories_of_a_lock_belong_to_it() {
        assert_eq!(lock_of(b"a%2Fb"), Some(b"a/b".to_vec()));
        assert_eq!(lock_of(b"a%2Fb~shares"), Some(b"a/b".to_vec()));
        for element in [
            &b"~shares"[..],
            b"a~shares~shares",
            b"a~others",
            b"a~",
            b"%2f~shares",
        ] {
            assert_eq!(lock_of(element), None, "{}", element.escape_ascii());
        }
        assert_eq!(
            lock_of(b"a%7Eshares"),
            Some(b"a~shares".to_vec()),
            "a lock of this name"
        );
    }

    #[test]
    fn the_key_prefix_and_the_name_are_one_name() {
        let root = Root::new("/").unwrap();
        let path = |prefix: &[u8], name: &[u8]| {
            Directory::new(&root, prefix, name).map(|directory| directory.path.to_string())
        };
        assert_eq!(path(b"app:", b"x"), Ok("/app:x".to_owned()));
        assert_eq!(path(b"\xc3", b"\xbc"), Ok("/ü".to_owned()));
        assert_eq!(path(b"", b""), Err(PathError::BadElement));
    }

    #[test]
    fn the_servers_own_directory_is_refused_at_the_top_alone() {
        assert_eq!(directory("", b"zookeeper"), Err(PathError::Reserved));
        assert_eq!(directory("", b"zookeeper2"), Ok("/zookeeper2".to_owned()));
        assert_eq!(
            directory("/locks", b"zookeeper"),
            Ok("/locks/zookeeper".to_owned())
        );
        assert_eq!(Root::new("/zookeeper"), Err(PathError::Reserved));
        assert_eq!(Root::new("/zookeeper/quota"), Err(PathError::Reserved));
        assert!(Root::new("/zookeepers/quota").is_ok());
    }

    #[test]
    fn a_root_is_a_path_that_servers_accept() {
        for bad in ["/a//b", "/a/", "//", "/.", "/a/../b"] {
            assert_eq!(Root::new(bad), Err(PathError::BadElement), "{bad}");
        }
        assert_eq!(Root::new("a"), Err(PathError::NoSlash));
        for bad in ['\n', '\0', '\u{7f}', '\u{e000}', '😀'] {
            assert_eq!(
                Root::new(&format!("/a{bad}")),
                Err(PathError::BadCharacter(bad))
            );
        }
        assert_eq!(
            PathError::BadCharacter('\n').to_string(),
            "the path has the character U+000A"
        );
        assert!(Root::new("/a/b~c/ü%").is_ok());
    }

    #[test]
    fn the_znodes_down_to_the_root_are_listed_from_the_top() {
        let persistent = |root: &str| {
            let root = Root::new(root).unwrap();
            root.persistent().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(persistent(""), [""; 0]);
        assert_eq!(persistent("/locks"), ["/locks"]);
        assert_eq!(persistent("/a/b/c"), ["/a", "/a/b", "/a/b/c"]);
        assert_eq!(
            (
                Root::new("").unwrap().path(),
                Root::new("/a").unwrap().path()
            ),
            ("/", "/a")
        );
    }

    #[test]
    fn a_contender_is_in_the_directory() {
        let directory = Directory::new(&Root::new("/a").unwrap(), b"", b"b").unwrap();
        assert_eq!(&*directory.child("c"), "/a/b/c");
        assert_eq!(&*directory.shares(), "/a/b~shares");
    }

    mod name {
        use super::super::*;

        const ID: ContenderId =
            ContenderId([0, 1, 2, 3, 4, 5, 70, 7, 136, 9, 10, 11, 12, 13, 14, 15]);

        #[test]
        fn names_are_those_of_the_other_programs() {
            assert_eq!(Layout::default(), Layout::Curator);
            assert_eq!(
                Layout::Curator.prefix(ID),
                "_c_00010203-0405-4607-8809-0a0b0c0d0e0f-lock-"
            );
            assert_eq!(
                Layout::Kazoo.prefix(ID),
                "000102030405460788090a0b0c0d0e0f__lock__"
            );
        }

        #[test]
        fn an_id_is_a_random_uuid() {
            for byte in 0..=u8::MAX {
                let text = ContenderId::from_random([byte; 16]).to_string();
                assert_eq!(text.len(), 36);
                assert_eq!(&text[14..15], "4", "the version");
                assert!("89ab".contains(&text[19..20]), "the variant");
            }
            assert_eq!(format!("{ID:?}"), format!("ContenderId({ID})"));
        }

        #[test]
        fn the_number_follows_the_last_delimiter() {
            let number = |name: &str| Layout::Curator.number(name.as_bytes());
            for (name, expected) in [
                ("_c_00010203-0405-4607-8809-0a0b0c0d0e0f-lock-0000000007", 7),
                ("_c_000102030405460788090a0b0c0d0e0f-lock-0000000007", 7),
                ("000102030405460788090a0b0c0d0e0f-lock-0000000007", 7),
                ("lock-lock-0000000001", 1),
                ("lock-0000000001", 1),
                ("x-lock-2147483647", i32::MAX),
                ("x-lock--2147483648", i32::MIN),
                ("x-lock--000000001", -1),
            ] {
                assert_eq!(number(name), Some(Number(expected)), "{name}");
            }
            let kazoo = |name: &str| Layout::Kazoo.number(name.as_bytes());
            assert_eq!(kazoo("00__lock__0000000012"), Some(Number(12)));
            assert_eq!(kazoo("00__lock__-2147483648"), Some(Number(i32::MIN)));
            assert_eq!(kazoo("00-lock-0000000012"), None);
        }

        #[test]
        fn other_names_are_no_contenders() {
            for name in [
                "",
                "lock-",
                "lock-1",
                "lock-00000000001",
                "lock-+000000001",
                "lock-000000000x",
                "lock-2147483648",
                "lock--2147483649",
                "lock--0000000001",
                "lock-0000000001 ",
                "lock_0000000001",
                "00__lock__0000000012",
                "__READ__0000000001",
                "r0001",
            ] {
                assert_eq!(Layout::Curator.number(name.as_bytes()), None, "{name}");
            }
            assert_eq!(
                Layout::Curator.number(b"\xfflock-0000000001"),
                None,
                "no text"
            );
        }

        #[test]
        fn what_a_server_appends_is_read_again() {
            for number in [0, 1, 9_999_999, 1_000_000_000, i32::MAX, -1, -10, i32::MIN] {
                for layout in [Layout::Curator, Layout::Kazoo] {
                    let name = format!("{}{number:010}", layout.prefix(ID));
                    assert_eq!(layout.name(ID, Number(number)), name);
                    assert_eq!(
                        layout.number(name.as_bytes()),
                        Some(Number(number)),
                        "{name}"
                    );
                }
            }
        }

        #[test]
        fn the_order_is_that_of_the_numbers_and_goes_around() {
            let before = |first, second| {
                assert_eq!(
                    Number(first).order(Number(second)),
                    Ordering::Less,
                    "{first} {second}"
                );
                assert_eq!(Number(second).order(Number(first)), Ordering::Greater);
            };
            before(0, 1);
            // As text, they would be the other way.
            before(9, 10);
            before(999_999_999, 1_000_000_000);
            before(0, i32::MAX);
            before(i32::MAX - 1, i32::MAX);
            before(i32::MAX, i32::MIN);
            before(-1, 0);
            assert_eq!(Number(7).order(Number(7)), Ordering::Equal);
        }

        #[test]
        fn numbers_end_and_directories_are_renewed_long_before() {
            for (number, is_past_end, renews) in [
                (0, false, false),
                ((1 << 30) - 1, false, false),
                (1 << 30, false, true),
                (i32::MAX - 1, false, true),
                (i32::MAX, true, true),
                (i32::MIN, true, true),
                (-1, true, true),
            ] {
                let number = Number(number);
                assert_eq!(
                    (number.is_past_end(), number.renews_directory()),
                    (is_past_end, renews)
                );
            }
        }
    }
}
