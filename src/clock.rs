//! The clock: points in time that also count the time a machine spends suspended.
//!
//! This is the only file that reads a clock.
//!
//! The nodes' clocks continue while this machine is suspended. With a clock that does not, a laptop
//! that resumes after an hour would take its ten-second lock for valid. Wall clocks continue, but
//! jump. So each platform has its own clock: [the table of platforms](crate#platforms) names it and
//! says whether it counts suspended time. On Windows it is [`Instant`] (`QueryPerformanceCounter`).
//! Linux and Apple's platforms do not use [`Instant`] because it stops there during suspension.

pub(crate) use redlatch_protocol::time::Time;
use std::time::{Duration, Instant, SystemTime};

/// What the clock showed when it began to count: ten years, so that what began long before that,
/// such as a server, has a time of its own.
const FIRST: Time = Time::from_millis(10 * 365 * 24 * 3600 * 1000);

/// The time now. Never goes back within one boot of the machine.
#[cfg(unix)]
pub(crate) fn now() -> Time {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

    let spec = rustix::time::clock_gettime(CLOCK);
    // Both clocks count from the boot, so neither field is negative.
    let seconds = u64::try_from(spec.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(spec.tv_nsec).unwrap_or(0);
    let since_boot = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    FIRST.after(Duration::from_nanos(since_boot))
}

/// The time now. Never goes back within one process.
#[cfg(not(unix))]
pub(crate) fn now() -> Time {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    FIRST.after(START.get_or_init(Instant::now).elapsed())
}

/// A time of day, which users see in an inspection.
pub(crate) type WallTime = SystemTime;

/// The time of day this many microseconds after 1970; 1970 if this system cannot represent it.
pub(crate) fn wall_time(micros: u64) -> WallTime {
    let since = Duration::from_micros(micros);
    SystemTime::UNIX_EPOCH
        .checked_add(since)
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Microseconds since 1970 by the wall clock, which may jump. Used only for the first value of a
/// fencing counter, for the first ballot of a register, and to show users since when a waiter
/// waits.
pub(crate) fn wall_micros() -> u64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Converts an instant; now if it has passed.
pub(crate) fn at(instant: Instant) -> Time {
    now().after(instant.saturating_duration_since(Instant::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_moves_forward() {
        let start = now();
        assert!(
            start >= FIRST,
            "it cannot go back to zero by what tests subtract"
        );
        while now() == start {}
        assert!(now() > start);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_clock_is_the_one_that_counts_suspended_time() {
        // /proc/uptime is read from the boot-time clock, in hundredths of a second.
        let before = now();
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        let after = now();
        let uptime: f64 = text.split(' ').next().unwrap().parse().unwrap();
        assert!(uptime >= before.since(FIRST).as_secs_f64() - 0.02);
        assert!(uptime <= after.since(FIRST).as_secs_f64() + 0.02);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_clock_counts_the_time_of_suspension() {
        // In a time namespace whose boot-time clock is a day ahead, a process sees what it would
        // see on a machine that was suspended for a day. The test above runs again in such a
        // namespace.
        let in_namespace = |program: &std::path::Path, arguments: &[&str]| {
            std::process::Command::new("unshare")
                .args([
                    "--user",
                    "--map-root-user",
                    "--time",
                    "--boottime",
                    "86400",
                    "--fork",
                ])
                .arg(program)
                .args(arguments)
                .output()
        };
        if in_namespace("true".as_ref(), &[]).is_ok_and(|output| output.status.success()) {
            let above = "clock::tests::the_clock_is_the_one_that_counts_suspended_time";
            let output =
                in_namespace(&std::env::current_exe().unwrap(), &[above, "--exact"]).unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && text.contains("1 passed"),
                "{text}"
            );
        } else {
            // Without such namespaces, only the source can be checked.
            let code = include_str!("clock.rs")
                .split("#[cfg(test)]")
                .next()
                .unwrap();
            let on_linux = code.split("target_os = \"android\"))]").nth(1).unwrap();
            assert!(
                on_linux
                    .lines()
                    .nth(1)
                    .unwrap()
                    .ends_with("ClockId::Boottime;"),
                "{code}"
            );
        }
    }
}
