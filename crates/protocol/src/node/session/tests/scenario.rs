//! Plays the conversations in `../scenarios`, and writes down what each of their lines leads to.
//!
//! A scenario is a sentence that says what must hold, and below it, indented, what happens, line by
//! line. Behind `->` stands what that leads to: what the caller is told, what is sent, and how many
//! releases are pending, if their number changes. `REDLATCH_WRITE=1` writes that anew. Words that
//! are not among these examples are in `happen`, `answer` and `request`.
//!
//! ```text
//! lock 1, lock 2 keys 2      requests, in one write, of callers 1 and 2: to lock, and to lock two
//!                            keys. The token of a caller's lock is made of the caller's number
//! lock 5 after 4             a handoff
//! undo 1                     a removal whose answer no caller waits for
//! wait 1                     enters waiter 1 into the queue
//! credentials me pw 3 name   a user, a password, a database, and the name of the connection
//! connected run b up 4       a connection is made, and this run of a server, which has been up for
//!                            4 s, answers the greeting
//! 20 ms pass                 and deadlines are looked at, unless they `pass unseen`
//! connection?                a question: what stands behind the arrow answers it
//! server says +OK / :1\r…    the server's bytes: replies, the last of which is cut off at `…`
//! server says *2 :1 $word    in a list, `$word` has its length with it; `channel` is that of the
//!                            session, and `@2` the name of waiter 2
//! lock 1 | turn 1            alternatives. Where several lines of a scenario have some, the first
//!     | lock 1 share 4       ones belong together, and so on. Their outcomes are separated in the
//!                            same way, unless neighbours lead to the same
//! ```
//!
//! `EVAL release 1 #3` is a script, by its name, about a lock whose token is made of ones. It is
//! the third command; a reply repeats that number: `:3` for yes.

mod requests;
mod shown;

use crate::engine::{QueueWait, Token};
use crate::node::fixture::{
    ScriptedSession, greeting, info, numbered_greeting, queue_wait, ticket,
};
use crate::node::{
    Answer, Credentials, Hint, NodeError, Phase, Session, SessionEvent, SessionOptions,
};
use requests::request;
use shown::{arguments_of, command_of, name_of};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// A line has at most this many columns.
const WIDTH: usize = 100;

const CHANNEL: &str = "redlatch:0000000000000007";

/// Plays all scenarios of a file, and fails if something else happens than the file says.
pub(super) fn play_file(name: &str) {
    let file = format!("src/node/session/scenarios/{name}.txt");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&file);
    let text = std::fs::read_to_string(&path).unwrap();
    let written: Vec<&str> = text.trim_end().split("\n\n").collect();
    let played: Vec<String> = written.iter().map(|scenario| played(scenario)).collect();
    if std::env::var_os("REDLATCH_WRITE").is_some() {
        return std::fs::write(path, played.join("\n\n") + "\n").unwrap();
    }
    let differ = written
        .iter()
        .zip(&played)
        .filter(|(written, played)| *written != played);
    let differ: Vec<String> = differ
        .map(|(written, played)| marked(written, played))
        .collect();
    assert!(
        differ.is_empty(),
        "{file} says otherwise:\n\n{}",
        differ.join("\n\n")
    );
}

/// The scenario as it was played, with a mark at each line that is written otherwise.
fn marked(written: &str, played: &str) -> String {
    let mark = |line| {
        if written.lines().any(|it| it == line) {
            "  "
        } else {
            "! "
        }
    };
    played
        .lines()
        .map(|line| format!("{}{line}\n", mark(line)))
        .collect()
}

/// The scenario with what happens now.
fn played(scenario: &str) -> String {
    println!("{}", scenario.lines().next().unwrap());
    let mut steps: Vec<Vec<&str>> = Vec::new();
    for line in scenario.lines().filter(|line| !line.starts_with("      ")) {
        let line = line.split(" -> ").next().unwrap().trim_end();
        match line.strip_prefix("    |") {
            Some(_) => steps
                .last_mut()
                .expect("alternatives of something")
                .push(line),
            None => steps.push(vec![line]),
        }
    }
    let is_event = |step: &[&str]| step[0].starts_with("  ") && !step[0].starts_with("  #");
    let events: Vec<_> = steps
        .iter()
        .filter(|step| is_event(step))
        .map(|it| it.concat())
        .collect();
    let count = events
        .iter()
        .map(|event| alternatives(event).len())
        .max()
        .unwrap_or(0);
    let outcomes = |index: usize| -> Vec<String> {
        let mut player = Player::new();
        let play = |event: &String| {
            let all = alternatives(event);
            assert!(
                [1, count].contains(&all.len()),
                "{event}: {count} alternatives"
            );
            player.play(&all[index % all.len()])
        };
        events.iter().map(play).collect()
    };
    let outcomes: Vec<_> = (0..count).map(outcomes).collect();
    let mut events = (0..).peekable();
    let lines = steps.iter().map(|step| {
        let Some(event) = events.next_if(|_| is_event(step)) else {
            return step.join("\n");
        };
        let mut by_alternative: Vec<&str> = outcomes.iter().map(|it| &*it[event]).collect();
        by_alternative.dedup();
        with_outcome(&step.join("\n"), &by_alternative.join(" | "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What a line says, by its alternatives.
fn alternatives(event: &str) -> Vec<String> {
    let (head, rest) = match event.split_once("server says ") {
        Some((_, rest)) => ("server says ", rest),
        None => ("", event),
    };
    rest.split(" | ")
        .map(|one| format!("{head}{}", one.trim()))
        .collect()
}

/// The line with its outcome, behind it or below it.
fn with_outcome(event: &str, outcome: &str) -> String {
    let line = format!("{event:<36} -> {outcome}");
    if outcome.is_empty() {
        return event.to_owned();
    } else if line.lines().all(|line| line.chars().count() <= WIDTH) {
        return line;
    }
    let mut lines = vec!["      ->".to_owned()];
    for word in outcome.split(' ') {
        if lines[lines.len() - 1].len() + word.len() >= WIDTH {
            lines.push("        ".to_owned());
        }
        let last = lines.len() - 1;
        lines[last] += &format!(" {word}");
    }
    format!("{event}\n{}", lines.join("\n"))
}

/// A session in a scenario.
struct Player {
    talk: ScriptedSession,
    /// The last commands that were sent, as words.
    sent: Vec<Vec<Vec<u8>>>,
    /// The last error that a caller was told, or that ended a connection.
    problem: Option<NodeError>,
}

impl Player {
    fn new() -> Self {
        Self {
            talk: ScriptedSession::new(options()),
            sent: Vec::new(),
            problem: None,
        }
    }

    /// Does what the line says. Returns what it leads to.
    fn play(&mut self, line: &str) -> String {
        let was_down = self.talk.session.is_down();
        let pending = self.talk.session.load().1;
        let mut outcome = Vec::new();
        if let Some(text) = line.strip_prefix("server says ") {
            self.talk.hear(bytes(text));
        } else {
            for event in line.split(", ") {
                let words: Vec<&str> = event.split(' ').collect();
                match self.answer(&words) {
                    Some(answer) => outcome.push(answer),
                    None => self.happen(&words),
                }
            }
        }
        let sent = self.talk.words();
        let mut is_answered = false;
        for event in self.talk.events() {
            match event {
                SessionEvent::Answer(answer) => {
                    is_answered = true;
                    self.problem = answer.reply.problem.clone().or(self.problem.take());
                    outcome.push(answered(&answer));
                }
                // The answer itself says so.
                SessionEvent::Told(_, Hint::Answered { .. }) => {}
                SessionEvent::Told(waiter, hint) => {
                    outcome.push(format!("waiter {}: {hint:?}", waiter.as_bytes()[0]));
                }
                SessionEvent::Queue(support) => {
                    outcome.push(format!("queue is {}", support.as_str()));
                }
                SessionEvent::Greeted
                | SessionEvent::NewReign { .. }
                | SessionEvent::Down { .. } => {}
            }
        }
        if self.talk.session.is_down() && !was_down && !line.ends_with("connection lost") {
            self.problem = self.talk.session.loss().cloned();
            let why = self.problem.iter().filter(|_| !is_answered).map(name_of);
            outcome.push(why.fold("closes".to_owned(), |it, why| format!("{it} ({why})")));
        }
        if !sent.is_empty() {
            let commands: Vec<_> = sent.iter().map(|command| command_of(command)).collect();
            outcome.push(format!("sends {}", commands.join(", ")));
            self.sent = sent;
        }
        if self.talk.session.load().1 != pending {
            outcome.push(format!("{} pending", self.talk.session.load().1));
        }
        outcome.join("; ")
    }

    /// The answer to a question, if it is one.
    fn answer(&mut self, words: &[&str]) -> Option<String> {
        let session = &mut self.talk.session;
        let now = self.talk.now;
        let is = |is_so, so: &str, other: &str| {
            if is_so {
                so.to_owned()
            } else {
                other.to_owned()
            }
        };
        Some(match words {
            ["connection?"] if session.is_down() => {
                is(session.wants_connection(now), "wanted", "not wanted")
            }
            ["connection?"] => format!("{:?}", session.phase()).to_lowercase(),
            ["deadline?"] => match session.next_deadline() {
                Some(deadline) => format!("in {:?}", deadline.since(now)),
                None => "none".to_owned(),
            },
            ["unanswered?"] => session.load().0.to_string(),
            ["quarantine?"] => match session.quarantine_left(now).filter(|_| session.is_ready()) {
                Some(left) => format!("for {left:?}"),
                None => "none".to_owned(),
            },
            ["server?"] => {
                let identity = session.server.identity.clone().unwrap_or_default();
                let uptime = identity.uptime.filter(|_| session.is_ready());
                let since = now.since(session.trust.uptime.greeted_at);
                let up = uptime.map(|up| format!("{:?}", up.saturating_add(since)));
                let facts = [identity.server, identity.version, identity.run_id, up];
                let [server, version, run, up] = facts.map(|it| it.unwrap_or("-".to_owned()));
                format!("{server} {version}, run {run}, up {up}")
            }
            ["removals", "awaited?"] => is(session.has_removals(now), "yes", "no"),
            ["problem?"] => {
                let problem = self.problem.as_ref()?;
                let lasts = is(problem.is_permanent(), ", which lasts", "");
                match problem {
                    NodeError::Server(error) => format!("{problem} ({:?}{lasts})", error.kind),
                    _ => format!("{problem}{lasts}"),
                }
            }
            ["arguments?"] => arguments_of(self.sent.last()?),
            ["give", "up", caller] => is(
                session.cancel(ticket(number(caller))),
                "withdrawn",
                "too late",
            ),
            _ => return None,
        })
    }

    fn happen(&mut self, words: &[&str]) {
        let session = &mut self.talk.session;
        let now = self.talk.now;
        match words {
            ["quarantine", amount, unit] => {
                let quarantine = Some(duration(amount, unit));
                *session = Session::new(SessionOptions {
                    quarantine,
                    ..options()
                });
            }
            ["connect-timeout", amount, unit] => {
                let connect_timeout = duration(amount, unit);
                *session = Session::new(SessionOptions {
                    connect_timeout,
                    ..options()
                });
            }
            ["credentials", user, password, database, name] => {
                let [user, password, name] =
                    [user, password, name].map(|it| Some(*it).filter(|it| *it != "-"));
                let [user, password] = [user, password].map(|it| it.map(str::as_bytes));
                let credentials = Credentials::new(user, password, number(database), name);
                *session = Session::new(SessionOptions {
                    credentials,
                    ..options()
                });
            }
            ["resolving"] => session.connecting(now, Phase::Resolving),
            ["connecting"] => session.connecting(now, Phase::Connecting),
            ["connect"] => {
                session.connecting(now, Phase::Connecting);
                session.connected(now);
            }
            ["connected", greeting @ ..] => {
                self.talk.connect();
                self.talk.hear(greeting_of(greeting));
            }
            ["connection", "lost"] => self.talk.lose(),
            [amount, unit, "pass", unseen @ ..] => {
                self.talk.now = now.after(duration(amount, unit));
                if unseen.is_empty() {
                    session.tick(self.talk.now);
                }
            }
            ["waiter", waiter, watches] => {
                let wait = queue_wait(number(waiter), now);
                session.watch_key(
                    now,
                    &QueueWait {
                        watches: *watches == "watches",
                        ..wait
                    },
                );
            }
            _ => {
                let (caller, request) = request(words, now);
                session.send(
                    now,
                    Some(caller).filter(|_| request.is_answered()),
                    &request,
                );
            }
        }
    }
}

fn options() -> SessionOptions {
    SessionOptions::new("redis://node", 7)
}

fn number<T: FromStr<Err: fmt::Debug>>(text: &str) -> T {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn token(text: &str) -> Token {
    Token::new([number(text); Token::LEN])
}

fn duration(amount: &str, unit: &str) -> Duration {
    Duration::from_millis(number::<u64>(amount) * if unit == "s" { 1_000 } else { 1 })
}

/// The server's bytes.
fn bytes(text: &str) -> Vec<u8> {
    let text = text.replace("\\r", "\r").replace("\\n", "\n");
    let whole = text.strip_suffix('…');
    let mut bytes = Vec::new();
    for reply in whole.unwrap_or(&text).split(" / ") {
        let words: Vec<&str> = reply.split(' ').collect();
        let is_list = reply.starts_with(['*', '>', '%']);
        match words[0] {
            "greeting" => bytes.extend(greeting_of(&words[1..]).bytes()),
            "info" => bytes.extend(info("a", 1_000).bytes()),
            "text" => bytes.extend(element(&reply.replacen("text ", "$", 1))),
            _ if is_list => bytes.extend(words.iter().flat_map(|word| element(word))),
            _ => bytes.extend(format!("{reply}\r\n").bytes()),
        }
    }
    bytes.truncate(bytes.len() - if whole.is_some() { 2 } else { 0 });
    bytes
}

/// The bytes of a list's head or of an element.
fn element(word: &str) -> Vec<u8> {
    let Some(text) = word.strip_prefix('$') else {
        return format!("{word}\r\n").into_bytes();
    };
    let text = text.replace("channel", CHANNEL).replace('␣', " ");
    let text = match text.strip_prefix('@').map(|name| name.split_at(1)) {
        Some((waiter, rest)) => [token(waiter).as_bytes(), rest.as_bytes()].concat(),
        None => text.into_bytes(),
    };
    [format!("${}\r\n", text.len()).as_bytes(), &text, b"\r\n"].concat()
}

/// The answers to a greeting: of which run of a server, up for how many seconds, as which
/// connection, by which protocol.
fn greeting_of(words: &[&str]) -> String {
    let of: BTreeMap<_, _> = words.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    let run = of.get("run").unwrap_or(&"a").trim_matches('"');
    let up = of.get("up").map_or(1_000, |up| number(up));
    match (of.get("id"), of.get("by")) {
        (Some(id), _) => numbered_greeting(run, number(id)),
        (None, Some(_)) => format!("*2\r\n+proto\r\n:2\r\n{}", info(run, up)),
        (None, None) => greeting(run, up),
    }
}

/// What a caller is told.
fn answered(
    Answer {
        ticket,
        reply,
        was_sent,
        ..
    }: &Answer,
) -> String {
    let view = reply.view.as_deref();
    let details = [
        reply.problem.as_ref().map(name_of),
        reply
            .counter
            .filter(|counter| *counter > 0)
            .map(|counter| format!("number {counter}")),
        reply.permit.map(|permit| format!("permit {permit}")),
        view.filter(|view| view.is_reserved)
            .map(|_| "reserved".to_owned()),
        view.filter(|view| !view.is_heard)
            .map(|_| "not notified".to_owned()),
        reply.is_awaited.then(|| "awaited".to_owned()),
        (!was_sent).then(|| "not sent".to_owned()),
    ];
    let details: Vec<String> = details.into_iter().flatten().collect();
    let vote = format!("{} {:?}", ticket.serial, reply.vote).to_lowercase();
    if details.is_empty() {
        vote
    } else {
        format!("{vote} ({})", details.join(", "))
    }
}
