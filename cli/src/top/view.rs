//! Draws the screen of `redlatch top`, in as many columns as there are.

use super::screen::{Order, Screen};
use super::search::Row;
use crate::duration;
use crate::inspect::{age, is_of_ensemble, shown, state_text, waiters_text, wanted};
use crate::table::cell;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Row as Cells, Table};
use redlatch::{LockState, QueuedWaiter};

/// The widths of a number, and of a span of time such as "59 min 59 s".
const NUMBER: u16 = 8;
const TIME: u16 = 11;

/// The least widths of the name and of the state.
const NAME_MIN: u16 = 10;
const STATE_MIN: u16 = 16;

const LOCK_KEYS: &str =
    "q quit  ↑↓ move  ⏎ waiters  sort by: l wait  n name  a held  w waiters  t left";
const WAITER_KEYS: &str = "Esc back  ↑↓ move  q quit";

/// More characters of a text are never shown: a name may have 60,000.
const CHARACTERS_MAX: usize = 2_000;

/// The columns of the list of locks, in their order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Lock,
    Waiters,
    Wait,
    Held,
    Left,
    State,
}

impl Column {
    fn heading(self) -> (&'static str, Option<Order>) {
        match self {
            Self::Lock => ("LOCK", Some(Order::Name)),
            Self::Waiters => ("WAITERS", Some(Order::Waiters)),
            Self::Wait => ("WAIT", Some(Order::Wait)),
            Self::Held => ("HELD", Some(Order::Held)),
            Self::Left => ("LEFT", Some(Order::Left)),
            Self::State => ("STATE", None),
        }
    }

    fn text(self, row: &Row) -> String {
        match self {
            Self::Lock => shown(row.lock.as_ref()),
            Self::Waiters => row.seen.waiter_count.to_string(),
            Self::Wait => cell(row.longest_wait().map(duration::show)),
            Self::Held => cell(row.age.map(duration::show)),
            Self::Left => cell(row.remaining().map(duration::show)),
            Self::State => state_text(&row.seen),
        }
    }
}

/// Those for which there is room in this width, with their own.
fn columns(width: u16, longest_name: u16) -> Vec<(Column, u16)> {
    // In the order in which they are worth it; the least width of each.
    let wanted = [
        (Column::Waiters, NUMBER),
        (Column::Wait, TIME),
        (Column::State, STATE_MIN),
        (Column::Left, TIME),
        (Column::Held, TIME),
    ];
    let mut rest = width.saturating_sub(NAME_MIN);
    let mut chosen = vec![(Column::Lock, NAME_MIN)];
    for (column, least) in wanted {
        let Some(left) = rest.checked_sub(least + 1) else {
            break;
        };
        rest = left;
        chosen.push((column, least));
    }
    chosen.sort_by_key(|(column, _)| *column as u8);
    let has_state = chosen.iter().any(|(column, _)| *column == Column::State);
    // What is left goes to the name, as far as it takes it, and to the state.
    let to_name = match has_state {
        true => longest_name.saturating_sub(NAME_MIN).min(rest / 2),
        false => rest,
    };
    for (column, least) in &mut chosen {
        match column {
            Column::Lock if width < NAME_MIN => *least = width,
            Column::Lock => *least += to_name,
            Column::State => *least += rest - to_name,
            _ => {}
        }
    }
    chosen
}

/// Whether there are colours, and what is bold or dim. Otherwise only the selection differs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    pub(super) has_colours: bool,
}

impl Theme {
    fn coloured(self, colour: Color) -> Style {
        if self.has_colours {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    fn weighted(self, weight: Modifier) -> Style {
        if self.has_colours {
            Style::new().add_modifier(weight)
        } else {
            Style::new()
        }
    }

    fn of(self, row: &Row) -> Style {
        match row.seen.state {
            LockState::Held(_) | LockState::Free if row.seen.waiter_count == 0 => Style::new(),
            LockState::NotALock(_) | LockState::Undecided => self.coloured(Color::Red),
            LockState::Shared(_) if row.seen.waiter_count == 0 => self.coloured(Color::Cyan),
            _ => self.coloured(Color::Yellow),
        }
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, screen: &mut Screen, theme: Theme) {
    let parts = [
        Constraint::Length(if screen.open.is_some() { 3 } else { 1 }),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    let [head, body, foot] = Layout::vertical(parts).areas(frame.area());
    let keys = match screen.open {
        Some(_) => {
            draw_waiters(frame, screen, theme, head, body);
            WAITER_KEYS
        }
        None => {
            draw_locks(frame, screen, theme, head, body);
            LOCK_KEYS
        }
    };
    let foot_line = match &screen.failure {
        Some(text) => {
            let style = theme
                .coloured(Color::Red)
                .patch(theme.weighted(Modifier::BOLD));
            Span::styled(cut(&shown(text.as_bytes()), foot.width), style)
        }
        None => Span::styled(cut(keys, foot.width), theme.weighted(Modifier::DIM)),
    };
    frame.render_widget(Line::from(foot_line), foot);
}

fn draw_locks(frame: &mut Frame<'_>, screen: &mut Screen, theme: Theme, head: Rect, body: Rect) {
    let waiting: usize = screen.rows().iter().map(|row| row.seen.waiter_count).sum();
    let text = match screen.rows().len() {
        _ if !screen.is_listed => "looking at the locks".to_owned(),
        1 => format!("1 lock, {waiting} waiting"),
        count => format!("{count} locks, {waiting} waiting"),
    };
    let bold = theme.weighted(Modifier::BOLD);
    frame.render_widget(Line::from(cut(&text, head.width)).style(bold), head);
    let window = screen.window(usize::from(body.height.saturating_sub(1)));
    let selected = screen.index();
    let rows = &screen.rows()[window.clone()];
    let longest = rows
        .iter()
        .map(|row| width(&shown(row.lock.as_ref())))
        .max()
        .unwrap_or(0);
    let columns = columns(body.width, longest);
    let heading = |(column, size): &(Column, u16)| {
        let (name, order) = column.heading();
        let mark = if order == Some(screen.order) {
            "↓"
        } else {
            ""
        };
        Cell::from(cut(&format!("{name}{mark}"), *size))
    };
    let line = |(index, row): (usize, &Row)| {
        let cells = columns
            .iter()
            .map(|(column, size)| Cell::from(cut(&column.text(row), *size)));
        let style = theme.of(row);
        let is_selected = window.start + index == selected;
        let style = if is_selected {
            style.add_modifier(Modifier::REVERSED)
        } else {
            style
        };
        Cells::new(cells.collect::<Vec<_>>()).style(style)
    };
    let lines: Vec<Cells<'_>> = rows.iter().enumerate().map(line).collect();
    let header = Cells::new(columns.iter().map(heading)).style(bold);
    let widths = columns.iter().map(|(_, size)| Constraint::Length(*size));
    frame.render_widget(Table::new(lines, widths).header(header), body);
}

/// The waiters of the lock that is open.
fn draw_waiters(frame: &mut Frame<'_>, screen: &mut Screen, theme: Theme, head: Rect, body: Rect) {
    let window = screen.window(usize::from(body.height.saturating_sub(1)));
    let name = screen
        .open
        .as_ref()
        .map_or(String::new(), |lock| shown(lock.as_ref()));
    let (state, count, waiters) = match screen.open_row() {
        Some(row) => (
            state_text(&row.seen),
            row.seen.waiter_count,
            &row.seen.waiters[..],
        ),
        None => ("free".to_owned(), 0, &[][..]),
    };
    let shown_of = match waiters.len() {
        listed if listed < count => {
            format!(
                "{}, of whom the first {listed} are shown",
                waiters_text(count)
            )
        }
        _ => waiters_text(count),
    };
    let lines = [name, state, shown_of].map(|text| Line::from(cut(&text, head.width)));
    let [name, state, count] = lines;
    frame.render_widget(
        ratatui::text::Text::from(vec![
            name.style(theme.weighted(Modifier::BOLD)),
            state,
            count,
        ]),
        head,
    );
    let is_ensemble = screen
        .open_row()
        .is_some_and(|row| is_of_ensemble(&row.seen));
    // On an ensemble, it is not known for what, and there is one answer.
    let mut fixed = vec![("WAITED", TIME), ("FOR", NUMBER), ("NODES", 5)];
    if is_ensemble {
        fixed.truncate(1);
    }
    let mut rest = body.width.saturating_sub(5 + 1 + 8);
    let fits =
        |(_, size): &(&str, u16)| rest.checked_sub(size + 1).map(|left| rest = left).is_some();
    let fixed: Vec<_> = fixed.into_iter().take_while(fits).collect();
    let mut sizes = vec![("PLACE", 5), ("OWNER", rest + 8)];
    sizes.extend(fixed);
    let lines = window.map(|index| {
        let texts = waiter_texts(index, &waiters[index]);
        let cells = sizes.iter().zip(texts);
        Cells::new(cells.map(|((_, size), text)| cut(&text, *size)))
    });
    let header = Cells::new(sizes.iter().map(|(name, size)| cut(name, *size)));
    let widths = sizes.iter().map(|(_, size)| Constraint::Length(*size));
    let table = Table::new(lines, widths);
    frame.render_widget(
        table.header(header.style(theme.weighted(Modifier::BOLD))),
        body,
    );
}

/// Place, owner, since when, for what, and on how many nodes.
fn waiter_texts(index: usize, waiter: &QueuedWaiter) -> [String; 5] {
    [
        (index + 1).to_string(),
        cell(waiter.owner()),
        duration::show(age(waiter.since)),
        wanted(waiter).to_owned(),
        waiter.nodes.to_string(),
    ]
}

fn width(text: &str) -> u16 {
    let head: String = text.chars().take(CHARACTERS_MAX).collect();
    u16::try_from(Span::raw(head).width()).unwrap_or(u16::MAX)
}

/// The beginning of a text that fits, with a sign that there is more.
fn cut(text: &str, size: u16) -> String {
    let size = usize::from(size);
    let mut shown = String::new();
    let mut used = 0;
    for character in text.chars() {
        let next = Span::raw(character.to_string()).width();
        if used + next > size {
            while used >= size.max(1) {
                used -= shown
                    .pop()
                    .map_or(used, |last| Span::raw(last.to_string()).width());
            }
            if size > 0 {
                shown.push('…');
            }
            break;
        }
        shown.push(character);
        used += next;
    }
    shown
}

#[cfg(test)]
mod tests;
