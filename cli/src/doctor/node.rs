//! What a node says about itself.

use super::finding::{Finding, Level};
use crate::duration;
use crate::ensemble;
use crate::status::{clock_text, reign_words};
use redlatch::status::{CrashLoss, NoVote, RegisterMembership, Role};
use redlatch::{NodeError, NodeStatus, NodeWarning};
use std::time::Duration;

/// How long an answer takes at most where nothing is in its way: longer than on a local network,
/// and a fifth of the default of `node-timeout`.
const PROMPT: Duration = Duration::from_millis(10);

/// What there is to say about a node. `node_timeout`: if it is not the default. `is_group`: do the
/// nodes keep registers?
pub(super) fn of(
    node: &NodeStatus,
    node_timeout: Option<Duration>,
    is_group: bool,
) -> Vec<Finding> {
    let report = |level, check, text: String| Finding::of(&node.url, level, check, &text);
    if !node.is_connected {
        let why = node
            .last_error
            .as_ref()
            .map_or("no connection".to_owned(), ToString::to_string);
        let text = format!(
            "down: {why}{}",
            node.last_error.as_ref().map_or("", advice_if_down)
        );
        return vec![report(Level::Error, "connection", text)];
    }
    let mut findings = vec![report(Level::Ok, "connection", server(node))];
    if let Some(error) = &node.last_error {
        let level = if error.is_permanent() {
            Level::Error
        } else {
            Level::Warning
        };
        let text = format!("{error}{}", advice(error));
        findings.push(report(level, "connection", text));
    }
    findings.extend(node.round_trip.map(|took| {
        let shown = format!("an answer took {}", duration::show(took));
        if took <= node_timeout.map_or(PROMPT, |timeout| timeout / 5) {
            return report(Level::Ok, "round_trip", shown);
        }
        let hint = "; look at the load of the server and at the network between, or raise \
                    --node-timeout, by which a majority must have answered";
        report(Level::Warning, "round_trip", shown + hint)
    }));
    findings.extend(
        node.warnings()
            .iter()
            .map(|warning| report(Level::Warning, warning.as_str(), warning.to_string())),
    );
    if let Some(group) = &node.group {
        findings.push(report(Level::Ok, "group", reign_words(group)));
    }
    if let Some(left) = node.quarantine {
        let text = format!(
            "its grants do not count for another {}, since {}",
            duration::show(left),
            why_in_quarantine(node)
        );
        findings.push(report(Level::Warning, "quarantine", text));
    }
    if !ensemble::is_member(&node.url) {
        findings.extend(of_redis(node, is_group));
    }
    findings
}

fn why_in_quarantine(node: &NodeStatus) -> &'static str {
    match &node.group {
        Some(group) if group.former.is_some() => {
            "its master was replaced or restarted lately, and locks may be forgotten; wait; \
             fail groups over one by one, max-ttl and failover_bound apart"
        }
        Some(_) => {
            "its master was replaced or restarted lately, or the group is new here, and locks \
             may be forgotten; wait, or if it is new, run redlatch adopt; fail groups over one \
             by one, max-ttl and failover_bound apart"
        }
        None => {
            "it was started lately and may have forgotten locks; wait, and restart nodes one \
             by one, max-ttl apart"
        }
    }
}

/// Such as "redis 7.0.15, a master, up for 3 d 2 h".
fn server(node: &NodeStatus) -> String {
    let known = [&node.server, &node.version].into_iter().flatten();
    let mut text = known.map(String::as_str).collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        text = "up".to_owned();
    }
    let role = match node.role {
        Some(Role::Master { .. }) => ", a master",
        Some(Role::Replica) => ", a replica",
        Some(Role::Standalone) => ", standalone",
        Some(Role::Leader) => ", the leader",
        Some(Role::Follower) => ", a follower",
        Some(Role::Observer) => ", an observer",
        _ => "",
    };
    text += role;
    if let Some(uptime) = node.uptime {
        text += &format!(", up for {}", duration::show(uptime));
    }
    text
}

/// What to do about a node without a connection.
fn advice_if_down(error: &NodeError) -> &'static str {
    match error {
        NodeError::WrongServer(_) | NodeError::LookupRefused(_) => "; mend its URL or its servers",
        NodeError::SlotMoving(_) | NodeError::ClusterDown(_) => "; see CLUSTER INFO",
        _ => "; see whether the server runs, and may be reached",
    }
}

fn advice(error: &NodeError) -> &'static str {
    match error {
        NodeError::SameServer { .. } => "; name each server once",
        NodeError::TimedOut(_) => "; see what delays the server, or raise --node-timeout",
        NodeError::Server(_) => "; see the server's settings and the rights of its user",
        _ => "",
    }
}

fn of_redis(node: &NodeStatus, is_group: bool) -> Vec<Finding> {
    let report = |level, check, text: String| Finding::of(&node.url, level, check, &text);
    let mut findings = Vec::new();
    // All of them are in the answer to INFO.
    let is_silent = node.uptime.is_none() && node.role.is_none();
    if is_silent {
        let text = "INFO is not answered, so every new connection begins a quarantine, and there \
                    are no warnings; give the user +info";
        findings.push(report(Level::Warning, "rights", text.to_owned()));
    }
    if node.clock.is_none() {
        let text = "TIME is not answered, so its clock is not known, and it grants no shares; \
                    give the user +time";
        findings.push(report(Level::Warning, "rights", text.to_owned()));
    }
    let hides_settings = node.persistence.fsync.is_none() && node.persistence.snapshots.is_none();
    if node.group.is_some() && hides_settings {
        let text = "CONFIG GET is not answered, so it is not known whether a master that is cut \
                    off stops granting locks, and for how long the group waits; give the user \
                    +config|get on all servers";
        findings.push(report(Level::Warning, "rights", text.to_owned()));
    }
    findings.extend((!is_silent).then(|| crash(node)));
    findings.extend(node.memory.used.map(|used| {
        let max = match node.memory.max {
            Some(0) => "without a limit".to_owned(),
            Some(max) => format!("of {} that it may use", bytes(max)),
            None => "of an unknown limit".to_owned(),
        };
        report(Level::Ok, "memory", format!("{} used, {max}", bytes(used)))
    }));
    findings.extend(node.clock.map(|clock| {
        let text = format!("{} (±{})", clock_text(clock), duration::show(clock.error));
        report(Level::Ok, "clock", text)
    }));
    findings.extend(node.registers.filter(|_| is_group).map(|vote| match vote {
        RegisterMembership::NoVote(why) => {
            let advice = match why {
                NoVote::RunNotTold => "give the user that right",
                NoVote::Replaced => "name that one in its place",
                _ => "run redlatch registers repair",
            };
            report(Level::Warning, "registers", format!("{vote}; {advice}"))
        }
        _ => report(Level::Ok, "registers", vote.to_string()),
    }));
    findings
}

/// Such as "1.2 MiB".
fn bytes(count: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let Some((unit, bits)) = units.into_iter().find(|(_, bits)| count >> bits > 0) else {
        return format!("{count} bytes");
    };
    let tenths = (count >> (bits - 10)) * 10 / 1024;
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// What a crash costs. If that is a warning, it is among the node's warnings.
fn crash(node: &NodeStatus) -> Finding {
    let is_warned = node
        .warnings()
        .iter()
        .any(|it| matches!(it, NodeWarning::Forgets { .. }));
    let (level, text) = match node.persistence.crash_loss() {
        None => (
            Level::Warning,
            "it is not known what a crash costs, since CONFIG GET is not answered; give the user \
             +config|get"
                .to_owned(),
        ),
        Some(CrashLoss::Nothing) => (Level::Ok, "a crash costs nothing".to_owned()),
        Some(loss) if is_warned => (Level::Ok, format!("a crash costs {loss}")),
        Some(loss) => (
            Level::Ok,
            format!("a crash costs {loss}; the restart guard keeps locks safe anyway"),
        ),
    };
    Finding::of(&node.url, level, "crash", &text)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_have_a_unit_and_a_digit_behind_the_point() {
        let texts = [0, 1_023, 1_240_320, 1 << 20, 5_368_709_119, u64::MAX].map(bytes);
        let expected = [
            "0 bytes",
            "1023 bytes",
            "1.1 MiB",
            "1.0 MiB",
            "4.9 GiB",
            "17179869183.9 GiB",
        ];
        assert_eq!(texts, expected);
    }
}
