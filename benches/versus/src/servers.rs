//! The redis-server processes of a run.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::{Pid, Signal, kill_process};

/// A server takes milliseconds to start; a machine that builds something else at the time, longer.
const START_LIMIT: Duration = Duration::from_secs(20);

/// How often another port is tried if another process took the free one first.
const PORT_ATTEMPTS: usize = 20;

/// Servers on loopback ports, each with a directory of its own, gone when this is dropped.
pub struct Servers {
    servers: Vec<Server>,
    directory: PathBuf,
}

struct Server {
    child: Child,
    port: u16,
    /// For TLS.
    secure_port: u16,
}

/// The file of the certificate authority that signed the servers' certificates.
pub const AUTHORITY: &str = "authority.crt";

impl Servers {
    /// Starts `count` servers, in memory.
    pub fn start(count: usize) -> Result<Self, String> {
        Self::start_with(count, "", &["--appendonly", "no"])
    }

    /// Starts `count` servers that write each change to the disk before they answer.
    pub fn start_durable(count: usize) -> Result<Self, String> {
        Self::start_with(count, "-durable", &["--appendonly", "yes", "--appendfsync", "always"])
    }

    fn start_with(count: usize, suffix: &str, settings: &[&str]) -> Result<Self, String> {
        let version = Command::new("redis-server").arg("--version").output();
        if let Err(error) = version {
            return Err(format!(
                "redis-server cannot be run ({error}). It is all that this needs: on Debian and \
                 Ubuntu, `apt-get install redis-server`."
            ));
        }
        let directory =
            std::env::temp_dir().join(format!("redlatch-versus-{}{suffix}", process::id()));
        fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        certify(&directory).map_err(|error| error.to_string())?;
        let mut all = Self { servers: Vec::new(), directory };
        for index in 0..count {
            let server = start(&all.directory.join(index.to_string()), settings)?;
            all.servers.push(server);
        }
        Ok(all)
    }

    /// Where the servers are.
    pub fn urls(&self) -> Vec<String> {
        self.addresses().iter().map(|address| format!("redis://{address}")).collect()
    }

    /// The same, over TLS.
    pub fn secure_urls(&self) -> Vec<String> {
        let url = |server: &Server| format!("rediss://127.0.0.1:{}", server.secure_port);
        self.servers.iter().map(url).collect()
    }

    /// Closes all connections of clients.
    pub fn disconnect(&self) {
        for server in &self.servers {
            ask(server.port, &["CLIENT", "KILL", "TYPE", "normal"]).expect("it answers");
        }
    }

    /// The same, without the scheme.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(|server| ([127, 0, 0, 1], server.port).into()).collect()
    }

    /// Where workers find files that they share.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Freezes a server (SIGSTOP): it keeps its connections, and answers nothing.
    pub fn pause(&self, index: usize) {
        self.signal(index, Signal::STOP);
        // The signal alone does not say when.
        let stat = format!("/proc/{}/stat", self.servers[index].child.id());
        let stopped = || match fs::read_to_string(&stat) {
            Ok(text) => text.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')),
            Err(_) => true,
        };
        assert!(eventually(stopped), "SIGSTOP did not stop server {index}");
    }

    /// Continues a frozen server.
    pub fn resume(&self, index: usize) {
        self.signal(index, Signal::CONT);
    }

    fn signal(&self, index: usize, signal: Signal) {
        let pid = Pid::from_child(&self.servers[index].child);
        kill_process(pid, signal).expect("a signal reaches one's own child");
    }

    /// How many connections the servers hold in all, without the one that asks.
    pub fn connections(&self) -> i64 {
        let count = |server: &Server| -> i64 {
            let info = ask(server.port, &["INFO", "clients"]).expect("a running server answers");
            field(&info, "connected_clients").expect("INFO says how many clients there are") - 1
        };
        self.servers.iter().map(count).sum()
    }

    /// The processor time that all of them have taken so far; zero where the kernel does not say.
    pub fn cpu_time(&self) -> Duration {
        let of_one = |server: &Server| -> Option<u64> {
            let path = format!("/proc/{}/schedstat", server.child.id());
            fs::read_to_string(path).ok()?.split(' ').next()?.parse().ok()
        };
        Duration::from_nanos(self.servers.iter().filter_map(of_one).sum())
    }

    /// Waits until no key with this prefix is left on the first `nodes` servers, and panics if one
    /// stays: released locks must be gone. The counters of fenced locks stay.
    pub fn expect_gone(&self, prefix: &str, nodes: usize) {
        for server in &self.servers[..nodes] {
            let words = ["EVAL", COUNT_LOCKS, "0", &format!("{prefix}*")];
            let is_empty = || matches!(ask(server.port, &words).as_deref(), Ok(":0"));
            assert!(eventually(is_empty), "released keys of {prefix} are still there");
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &mut self.servers {
            // Both fail only if it has ended already. SIGKILL ends a stopped process as well.
            let _ = server.child.kill();
            let _ = server.child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn start(directory: &Path, settings: &[&str]) -> Result<Server, String> {
    fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    let mut why = String::new();
    for _ in 0..PORT_ATTEMPTS {
        let port = free_port().map_err(|error| error.to_string())?;
        let log = directory.join("log");
        let secure_port = free_port().map_err(|error| error.to_string())?;
        let spawned = spawn([port, secure_port], directory, &log, settings);
        let mut child = spawned.map_err(|error| error.to_string())?;
        let is_ours = format!("process_id:{}\r\n", child.id());
        let is_up = eventually_until(START_LIMIT, || {
            matches!(child.try_wait(), Ok(Some(_)))
                || ask(port, &["INFO", "server"]).is_ok_and(|info| info.contains(&is_ours))
        });
        if is_up && matches!(child.try_wait(), Ok(None)) {
            return Ok(Server { child, port, secure_port });
        }
        let _ = child.kill();
        let _ = child.wait();
        why = fs::read_to_string(&log).unwrap_or_default();
    }
    Err(format!("redis-server does not start; its log:\n{why}"))
}

/// Makes a certificate authority, and the certificate that all servers have.
fn certify(directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, key)?;
    let key = KeyPair::generate()?;
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
    let certificate = params.signed_by(&key, &authority)?;
    fs::write(directory.join(AUTHORITY), authority.pem())?;
    fs::write(directory.join("server.crt"), certificate.pem())?;
    fs::write(directory.join("server.key"), key.serialize_pem())?;
    Ok(())
}

fn spawn(ports: [u16; 2], directory: &Path, log: &Path, settings: &[&str]) -> io::Result<Child> {
    let log = File::create(log)?;
    let mut command = command("redis-server");
    let [port, secure_port] = ports.map(|port| port.to_string());
    command.args(["--port", &port, "--tls-port", &secure_port, "--tls-auth-clients", "no"]);
    let files = [("cert", "server.crt"), ("key", "server.key"), ("ca-cert", AUTHORITY)];
    for (name, file) in files {
        command.arg(format!("--tls-{name}-file")).arg(directory.with_file_name(file));
    }
    command.args(["--bind", "127.0.0.1", "--daemonize", "no"]);
    command.args(["--save", "", "--dir"]).arg(directory).args(settings);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
}

/// A program that the kernel ends if this process is killed. `setpriv`, which sees to that, is part
/// of util-linux and replaces itself by the program: the process id stays.
pub fn command(program: &str) -> Command {
    let bound = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !bound {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", program]);
    command
}

pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// How many keys there are like `ARGV[1]` that are no counters.
const COUNT_LOCKS: &str = "local count = 0 \
                           for _, key in ipairs(redis.call('KEYS', ARGV[1])) do \
                             local is_counter = string.find(key, ':redlatch:fence$') \
                             count = is_counter and count or count + 1 \
                           end \
                           return count";

/// One command on a connection of its own; the answer as text, without its header if it is a
/// string.
pub fn ask(port: u16, arguments: &[&str]) -> io::Result<String> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut command = format!("*{}\r\n", arguments.len());
    for argument in arguments {
        let _ = write!(command, "${}\r\n{argument}\r\n", argument.len());
    }
    (&stream).write_all(command.as_bytes())?;
    let mut reader = BufReader::new(&stream);
    let mut header = String::new();
    reader.read_line(&mut header)?;
    let header = header.trim_end();
    match header.strip_prefix('$').map(str::parse::<usize>) {
        Some(Ok(length)) => {
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            Ok(String::from_utf8_lossy(&body).into_owned())
        }
        _ => Ok(header.to_owned()),
    }
}

/// A number from the answer of INFO.
pub fn field(info: &str, name: &str) -> Option<i64> {
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().parse().ok()
}

fn eventually(condition: impl FnMut() -> bool) -> bool {
    eventually_until(Duration::from_secs(5), condition)
}

pub fn eventually_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > limit {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
    true
}
