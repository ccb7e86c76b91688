//! Events for `tracing`.

use super::field;
use crate::event::{Event, FieldValue, Level};
use ::tracing::event;
use ::tracing::field::display;
use std::time::Duration;

pub(crate) fn trace(event: &Event<'_>) {
    let row = event.row();
    let number = |name| match field(event, name)? {
        FieldValue::Number(number) => Some(number),
        _ => None,
    };
    let seconds = |name| match field(event, name)? {
        FieldValue::Time(time) => Some(Duration::as_secs_f64(&time)),
        _ => None,
    };
    let flag = |name| match field(event, name)? {
        FieldValue::Flag(flag) => Some(flag),
        _ => None,
    };
    let word = |name| match field(event, name)? {
        FieldValue::Word(word) | FieldValue::Reason(word, _) => Some(word),
        _ => None,
    };
    let text = |name| field(event, name).map(display);

    // For subscribers, a target, a level and names of fields are static. So each place that reports
    // names all fields that any event has, in their order; those that this one has not stay empty.
    macro_rules! report {
        ($target:literal, $level:ident, $about:ident = $subject:expr) => {
            event!(
                target: $target,
                ::tracing::Level::$level,
                $about = $subject,
                number = number("number"),
                ahead = number("ahead"),
                attempts = number("attempts"),
                rounds = number("rounds"),
                waited = seconds("waited"),
                held = seconds("held"),
                outcome = word("outcome"),
                took = seconds("took"),
                validity = seconds("validity"),
                age = seconds("age"),
                left = seconds("left"),
                silent = seconds("silent"),
                remaining = seconds("remaining"),
                support = word("support"),
                reason = word("reason"),
                reports = text("reports"),
                automatic = flag("automatic"),
                error = text("error"),
                "{}",
                row.message
            )
        };
    }
    macro_rules! report_at_level {
        ($target:literal, $about:ident = $subject:expr) => {
            match row.level {
                Level::Trace => report!($target, TRACE, $about = $subject),
                Level::Debug => report!($target, DEBUG, $about = $subject),
                Level::Info => report!($target, INFO, $about = $subject),
                Level::Warn => report!($target, WARN, $about = $subject),
            }
        };
    }
    match event.about() {
        FieldValue::Url(url) => report_at_level!("redlatch::node", node = url),
        name if row.name.starts_with("register_") => {
            report_at_level!("redlatch::register", register = display(name));
        }
        name => report_at_level!("redlatch::lock", resource = display(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_events;
    use super::*;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex, PoisonError};

    /// The tests take turns. Who first reaches a place that logs decides by its own subscriber
    /// whether that place is of interest, as long as only one subscriber exists: a thread without
    /// one would silence the thread that has it.
    static TURN: Mutex<()> = Mutex::new(());

    /// What a subscriber writes.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no test panics with it").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines of all samples, as the usual subscriber writes them.
    fn lines() -> Vec<(&'static str, String)> {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(::tracing::Level::TRACE)
            .without_time()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let mut lines = Vec::new();
        ::tracing::subscriber::with_default(subscriber, || {
            test_events::each(|event| {
                trace(event);
                let text = std::mem::take(&mut *log.0.lock().expect("no test panics with it"));
                lines.push((event.name(), String::from_utf8(text).expect("it is text")));
            });
        });
        lines
    }

    /// The row of the guide's table that fits this line: level, target, message, fields.
    fn row(event: &str, line: &str) -> String {
        let (level, rest) = line.trim().split_once(' ').expect("the level is first");
        let (target, rest) = rest.trim().split_once(": ").expect("the target is next");
        let first = rest.find('=').map_or(rest.len(), |equals| {
            rest[..equals].rfind(' ').expect("the message is before it")
        });
        let (message, fields) = rest.split_at(first);
        let fields: Vec<_> = fields
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        let level = level.to_lowercase();
        format!("| `{event}` | `{level}` | `{target}` | {message} | {} |", fields.join(" "))
    }

    #[test]
    fn every_field_of_an_event_is_one_of_its_line() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = lines().into_iter();
        test_events::each(|event| {
            let (_, line) = lines.next().expect("a line for each");
            assert!(
                line.trim().starts_with(&format!("{:?}", event.level()).to_uppercase()),
                "{line}"
            );
            event.visit(|field, _| {
                assert!(line.contains(&format!(" {field}=")), "no {field}: {line}");
            });
        });
    }

    #[test]
    fn the_guide_lists_every_event_with_its_level_target_and_fields() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let guide = include_str!("../guide/monitoring.md");
        let rows: Vec<_> = lines().iter().map(|(event, line)| row(event, line)).collect();
        let written = guide.lines().filter(|line| line.contains("| `redlatch::"));
        let written: Vec<_> = written.map(str::to_owned).collect();
        assert_eq!(written, rows, "in the order of the samples:\n{}", rows.join("\n"));
    }

    #[test]
    fn no_subscriber_and_no_level_is_no_problem() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        test_events::each(trace);
        let none =
            tracing_subscriber::fmt().with_max_level(::tracing::level_filters::LevelFilter::OFF);
        ::tracing::subscriber::with_default(none.finish(), || test_events::each(trace));
    }
}
