//! An operator of the ensemble: looks at the znodes and the sessions of clients, and removes them.

use redlatch_zookeeper::jute::frame;
use redlatch_zookeeper::message::{
    AUTH_XID, Acl, ConnectReply, ConnectRequest, Create, CreateKind, EnsembleError, EnsembleReply,
    EnsembleRequest, Incoming, PASSWORD_LENGTH, ReplyHeader, Secret, Stat,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use support::eventually;

use crate::LIMIT;

/// A session of its own, at one server.
pub(crate) struct Operator {
    port: u16,
    stream: TcpStream,
    xid: i32,
    input: Vec<u8>,
}

impl Operator {
    /// At the server with this port.
    #[track_caller]
    pub(crate) fn new(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a server accepts");
        stream
            .set_read_timeout(Some(LIMIT))
            .expect("a limit above zero");
        let mut operator = Self {
            port,
            stream,
            xid: 0,
            input: Vec::new(),
        };
        let mut bytes = Vec::new();
        ConnectRequest::new(10_000, 0).encode(&mut bytes);
        operator.stream.write_all(&bytes).expect("a server reads");
        let reply = operator.frame().expect("a server answers");
        let reply = ConnectReply::decode(&reply).expect("a connect reply");
        assert!(reply.timeout_ms > 0, "a session begins");
        operator
    }

    /// The next frame; `None` at the end of the connection.
    fn frame(&mut self) -> Option<Vec<u8>> {
        let mut chunk = [0; 16 * 1024];
        loop {
            if let Some((body, length)) = frame(&self.input).expect("a server's frame") {
                let body = body.to_vec();
                self.input.drain(..length);
                return Some(body);
            }
            match self.stream.read(&mut chunk) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.input.extend(&chunk[..count]),
            }
        }
    }

    /// Sends a request, and gives what it is answered to `read`.
    #[track_caller]
    fn ask<T>(
        &mut self,
        request: &EnsembleRequest,
        read: impl FnOnce(ReplyHeader, EnsembleReply<'_>) -> T,
    ) -> Result<T, EnsembleError> {
        self.xid += 1;
        let xid = if matches!(request, EnsembleRequest::Auth(_)) {
            AUTH_XID
        } else {
            self.xid
        };
        let mut bytes = Vec::new();
        request.encode(xid, &mut bytes).expect("a short request");
        self.stream.write_all(&bytes).expect("a server reads");
        let body = self.frame().expect("a server answers");
        let Ok(Incoming::Reply { header, body }) = Incoming::decode(&body) else {
            panic!("nothing is watched");
        };
        assert_eq!(header.xid, xid);
        match header.error {
            Some(error) => Err(error),
            None => Ok(read(
                header,
                EnsembleReply::decode(request.form().kind, body).expect("a reply"),
            )),
        }
    }

    /// Proves that it has these credentials, user and password.
    pub(crate) fn authenticate(&mut self, credentials: &str) {
        let request = EnsembleRequest::Auth(Secret(credentials.as_bytes().into()));
        self.ask(&request, |_, _| ())
            .expect("credentials of this form are accepted");
    }

    /// Creates a persistent znode.
    pub(crate) fn create(&mut self, path: &str, acl: Acl) {
        self.create_as(path, acl, CreateKind::Persistent);
    }

    /// Creates a persistent znode with this data.
    pub(crate) fn create_with(&mut self, path: &str, data: &str) {
        let kind = CreateKind::Persistent;
        let create = Create {
            path: path.into(),
            data: data.as_bytes().into(),
            acl: Acl::Anyone,
            kind,
        };
        self.ask(&EnsembleRequest::Create(create), |_, _| ())
            .expect("it can be created");
    }

    /// Creates a znode, whose number is appended if it is a sequential one. Returns its path.
    pub(crate) fn create_as(&mut self, path: &str, acl: Acl, kind: CreateKind) -> String {
        let create = Create {
            path: path.into(),
            data: Arc::default(),
            acl,
            kind,
        };
        let created = self.ask(&EnsembleRequest::Create(create), |_, reply| match reply {
            EnsembleReply::Created { path, .. } => path.to_owned(),
            other => panic!("{other:?}"),
        });
        created.expect("it can be created")
    }

    /// Removes a znode, whoever has it.
    #[track_caller]
    pub(crate) fn delete(&mut self, path: &str) {
        self.ask(&EnsembleRequest::Delete(path.into()), |_, _| ())
            .expect("it is there");
    }

    /// Removes the child with this place.
    #[track_caller]
    pub(crate) fn delete_in(&mut self, directory: &str, place: usize) {
        let path = self.paths(directory).swap_remove(place);
        self.delete(&path);
    }

    /// The children of a znode, by their numbers; none if it is not there. The server has all that
    /// its leader has.
    pub(crate) fn list(&mut self, path: &str) -> Vec<String> {
        self.ask(&EnsembleRequest::Sync("/".into()), |_, _| ())
            .expect("a majority is there");
        let request = EnsembleRequest::GetChildren {
            path: path.into(),
            watch: false,
        };
        let names = self.ask(&request, |_, reply| match reply {
            EnsembleReply::Children { names, .. } => names
                .iter()
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect(),
            other => panic!("{other:?}"),
        });
        let mut names: Vec<String> = match names {
            Err(EnsembleError::NoNode) => Vec::new(),
            names => names.expect("a list"),
        };
        let number = |name: &String| name.rsplit('-').next().map(str::to_owned);
        names.sort_by_key(number);
        names
    }

    /// The paths of its children, by their numbers.
    pub(crate) fn paths(&mut self, path: &str) -> Vec<String> {
        self.list(path)
            .iter()
            .map(|name| format!("{path}/{name}"))
            .collect()
    }

    /// Waits until it has this many children.
    #[track_caller]
    pub(crate) fn await_count(&mut self, path: &str, count: usize) {
        let mut last = Vec::new();
        let is_reached = || {
            last = self.list(path);
            last.len() == count
        };
        assert!(
            eventually(LIMIT, is_reached),
            "{path} has {last:?} and not {count}"
        );
    }

    pub(crate) fn stat(&mut self, path: &str) -> Option<Stat> {
        let request = EnsembleRequest::Exists {
            path: path.into(),
            watch: false,
        };
        let stat = self.ask(&request, |_, reply| match reply {
            EnsembleReply::Found(stat) => stat,
            other => panic!("{other:?}"),
        });
        stat.ok()
    }

    /// The ensemble's last transaction.
    pub(crate) fn last_transaction(&mut self) -> i64 {
        self.ask(&EnsembleRequest::Sync("/".into()), |_, _| ())
            .expect("a majority is there");
        let request = EnsembleRequest::Exists {
            path: "/".into(),
            watch: false,
        };
        self.ask(&request, |header, _| header.zxid)
            .expect("there is a root")
    }

    /// Opens a second connection of the session that has this ephemeral znode, with these requests
    /// in one flight: the server closes the first one. When that one connects again it closes
    /// this, so there need not be an answer.
    #[track_caller]
    pub(crate) fn take_over_session(&mut self, path: &str, request: Option<&EnsembleRequest>) {
        let session = self.stat(path).expect("it is there").owner;
        assert_ne!(session, 0, "{path} is not ephemeral");
        let mut connect = ConnectRequest::new(10_000, 0);
        (connect.session, connect.password) = (session, password_of(session));
        let mut bytes = Vec::new();
        connect.encode(&mut bytes);
        if let Some(request) = request {
            request.encode(1, &mut bytes).expect("a short request");
        }
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a server accepts");
        stream.write_all(&bytes).expect("a server reads");
        let mut reply = [0];
        stream
            .set_read_timeout(Some(LIMIT))
            .expect("a limit above zero");
        // An error if it is closed already.
        let _ = stream.read(&mut reply);
    }

    /// Ends the session that has the child with this place.
    #[track_caller]
    pub(crate) fn expire_in(&mut self, directory: &str, place: usize) {
        let path = self.paths(directory).swap_remove(place);
        let has_ended = || {
            if self.stat(&path).is_some() {
                self.take_over_session(&path, Some(&EnsembleRequest::CloseSession));
            }
            self.stat(&path).is_none()
        };
        assert!(
            eventually(LIMIT, has_ended),
            "the session of {path} does not end"
        );
    }
}

/// The password that a server gives to a session: numbers of `java.util.Random` with a seed that
/// its source names. Only with it does a server accept another connection of the session.
fn password_of(session: i64) -> Secret<[u8; PASSWORD_LENGTH]> {
    const SECRET: u64 = 0xB341_5C00;
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = (u64::from_ne_bytes(session.to_ne_bytes()) ^ SECRET ^ MULTIPLIER) & MASK;
    let mut password = [0; PASSWORD_LENGTH];
    for word in password.chunks_exact_mut(4) {
        state = (state.wrapping_mul(MULTIPLIER) + 0xB) & MASK;
        let number = u32::try_from(state >> 16).expect("32 of 48 bits");
        word.copy_from_slice(&number.to_le_bytes());
    }
    Secret(password)
}

/// For a wait of a thread of a test.
pub(crate) const MOMENT: Duration = Duration::from_millis(200);
