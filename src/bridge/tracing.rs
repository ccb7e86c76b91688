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
    use ::tracing::field::{Field, Visit};
    use ::tracing::span::{Attributes, Id, Record};
    use ::tracing::subscriber::{NoSubscriber, with_default};
    use ::tracing::{Metadata, Subscriber};
    use std::fmt;
    use std::sync::{Arc, Mutex, PoisonError};

    /// The tests take turns. Who first reaches a place that logs decides by its own subscriber
    /// whether that place is of interest, as long as only one subscriber exists: a thread without
    /// one would silence the thread that has it.
    static TURN: Mutex<()> = Mutex::new(());

    /// What a subscriber was told of one event.
    struct Line {
        level: &'static str,
        target: String,
        message: String,
        fields: Vec<&'static str>,
    }

    impl Visit for Line {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            match field.name() {
                "message" => self.message = format!("{value:?}"),
                name => self.fields.push(name),
            }
        }
    }

    /// A subscriber that keeps the lines. The library opens no spans.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<Line>>>);

    impl Subscriber for Log {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn event(&self, event: &::tracing::Event<'_>) {
            let mut line = Line {
                level: event.metadata().level().as_str(),
                target: event.metadata().target().to_owned(),
                message: String::new(),
                fields: Vec::new(),
            };
            event.record(&mut line);
            self.0.lock().expect("no test panics with it").push(line);
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            unreachable!("the library opens no spans")
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    /// The lines of all samples, one for each.
    fn lines() -> Vec<(&'static str, Line)> {
        let log = Log::default();
        let mut lines = Vec::new();
        with_default(log.clone(), || {
            test_events::each(|event| {
                trace(event);
                let mut written = log.0.lock().expect("no test panics with it");
                let line = written.pop().expect("each event is a line");
                assert!(written.is_empty(), "each event is one line");
                lines.push((event.name(), line));
            });
        });
        lines
    }

    /// The row of the guide's table that fits this line: level, target, message, fields.
    fn row(event: &str, line: &Line) -> String {
        let Line {
            level,
            target,
            message,
            fields,
        } = line;
        let level = level.to_lowercase();
        // The first is what the event is about.
        let fields: Vec<_> = fields.iter().map(|name| format!("`{name}`")).collect();
        format!(
            "| `{event}` | `{level}` | `{target}` | {message} | {} |",
            fields.join(" ")
        )
    }

    #[test]
    fn every_field_of_an_event_is_one_of_its_line() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = lines().into_iter();
        test_events::each(|event| {
            let (_, line) = lines.next().expect("a line for each");
            assert_eq!(line.level, format!("{:?}", event.level()).to_uppercase());
            event.visit(|field, _| {
                assert!(
                    line.fields.contains(&field),
                    "no {field}: {:?}",
                    line.fields
                );
            });
        });
    }

    #[test]
    fn the_guide_lists_every_event_with_its_level_target_and_fields() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let guide = include_str!("../guide/monitoring.md");
        let rows: Vec<_> = lines()
            .iter()
            .map(|(event, line)| row(event, line))
            .collect();
        let written = guide.lines().filter(|line| line.contains("| `redlatch::"));
        let written: Vec<_> = written.map(str::to_owned).collect();
        assert_eq!(
            written,
            rows,
            "in the order of the samples:\n{}",
            rows.join("\n")
        );
    }

    #[test]
    fn no_subscriber_is_no_problem() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        test_events::each(trace);
        with_default(NoSubscriber::default(), || test_events::each(trace));
    }
}
