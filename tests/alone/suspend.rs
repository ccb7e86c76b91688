//! A machine is suspended while a lock is held: when it resumes, the lock has expired, although no
//! time has passed on the clocks that most programs read.
//!
//! The test cannot suspend its machine, but Linux can move the one clock that counts suspension:
//! for a process that enters a time namespace with an offset of an hour, an hour passes at that
//! moment. Only a process with a single thread may enter one, so this program has a main function
//! instead of the usual harness, and starts itself again as the client. Without the right to time
//! namespaces it says so and ends. The simulator (`tests/sim`) suspends clients on every system.

#[cfg(target_os = "linux")]
mod linux {
    use std::env;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use redlatch::{Error, LossReason};
    use rustix::process::geteuid;
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

    use support::eventually;
    use support::locks::{LIMIT, LONG, gone, take, with_long_timeout};
    use support::loss::{loss, loss_in};
    use support::program::end_with_parent;
    use support::servers::Servers;

    const URLS: &str = "REDLATCH_TEST_SUSPEND_URLS";
    const HOUR: Duration = Duration::from_secs(3_600);

    pub(crate) fn main() {
        if let Ok(urls) = env::var(URLS) {
            end_with_parent();
            as_a_client_that_is_suspended(&urls);
            return;
        }
        if !has_time_namespaces() {
            eprintln!("suspend: not run, because this system allows no time namespaces");
            return;
        }
        let servers = Servers::start(3);
        let itself = env::current_exe().expect("a running program has a path");
        let mut client = privileged(itself.to_str().expect("paths are text"));
        let status = client.env(URLS, servers.urls().join(" ")).status();
        let status = status.expect("this program can be started again");
        assert!(status.success(), "{status}");
        assert!(gone(&servers, "suspended") && gone(&servers, "after"));
        eprintln!("suspend: a lock has expired when the machine resumes ... ok");
    }

    /// A command that may create time namespaces: as root of the system or of a user namespace.
    fn privileged(program: &str) -> Command {
        if geteuid().is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", program]);
        command
    }

    fn has_time_namespaces() -> bool {
        let mut probe = privileged("unshare");
        probe.args(["--time", "--boottime", "3600", "true"]);
        probe.stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    }

    /// A process in a time namespace that is an hour ahead, and the namespace.
    fn hour_ahead() -> (Child, File) {
        let offset = HOUR.as_secs().to_string();
        let mut command = Command::new("unshare");
        command
            .args(["--time", "--boottime", &offset, "cat"])
            .stdin(Stdio::piped());
        let child = command.spawn().expect("unshare was there a moment ago");
        let path = format!("/proc/{}/ns/time", child.id());
        let own = std::fs::read_link("/proc/self/ns/time").expect("Linux has it");
        let moved = || std::fs::read_link(&path).is_ok_and(|theirs| theirs != own);
        assert!(eventually(LIMIT, moved), "it is in another time");
        (child, File::open(path).expect("our own child's"))
    }

    fn as_a_client_that_is_suspended(urls: &str) {
        let client = with_long_timeout(urls.split(' '))
            .build()
            .expect("the settings are good");
        let mut guard = take(&client, "suspended", LONG);
        let (mut child, namespace) = hour_ahead();
        assert!(guard.ensure_held().is_ok());
        let start = Instant::now();
        let time = Some(LinkNameSpaceType::Time);
        move_into_link_name_space(namespace.as_fd(), time).expect("there is but one thread");

        assert_eq!(
            loss(&guard),
            Some(LossReason::Expired),
            "before anything else"
        );
        assert_eq!(guard.remaining(), Duration::ZERO);
        assert_eq!(loss_in(guard.extend(LONG)), Some(LossReason::Expired));
        assert!(
            start.elapsed() < HOUR,
            "other clocks do not count the suspension"
        );
        assert!(matches!(guard.release(), Err(Error::Lost(_))));
        // The connections were silent for an hour: they are still good or are replaced.
        for _ in 0..5 {
            let after = client.lock("after", LONG).expect("all nodes are up");
            assert!(after.remaining() > LONG - LIMIT && after.remaining() <= LONG);
            assert_eq!(after.release(), Ok(()));
        }
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}
