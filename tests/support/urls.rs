//! The URLs of a server.

use super::redis::Server;
use super::secure_port::SecurePort;

impl Server {
    /// The arguments for a server on the same ports of another address.
    pub fn port_args(&self) -> Vec<String> {
        let secure = self.secure.as_ref().map(SecurePort::port_args);
        let plain = ["--port".to_owned(), self.port().to_string()];
        plain
            .into_iter()
            .chain(secure.into_iter().flatten())
            .collect()
    }

    /// The port in its URL.
    pub fn client_port(&self) -> u16 {
        self.secure.as_ref().map_or(self.port(), SecurePort::port)
    }

    /// The port for TLS.
    #[track_caller]
    pub fn secure_port(&self) -> u16 {
        self.secure.as_ref().expect("this program uses TLS").port()
    }

    /// `redis://127.0.0.1:PORT`, or `rediss` and the port for TLS. With the password if the server
    /// was started with `--requirepass`.
    pub fn url(&self) -> String {
        let password = self
            .password()
            .map(|password| format!(":{password}@"))
            .unwrap_or_default();
        match &self.secure {
            Some(secure) => format!("rediss://{password}127.0.0.1:{}", secure.port()),
            None => format!("redis://{password}127.0.0.1:{}", self.port()),
        }
    }

    /// The same for a user, as `name:password`.
    pub fn url_of(&self, user: &str) -> String {
        let url = self.url();
        let (scheme, rest) = url.split_once("://").expect("it is a URL");
        let host = rest.rsplit('@').next().unwrap_or(rest);
        format!("{scheme}://{user}@{host}")
    }

    pub(super) fn password(&self) -> Option<&str> {
        let at = self.args.iter().position(|arg| arg == "--requirepass")?;
        self.args.get(at + 1).map(String::as_str)
    }
}
