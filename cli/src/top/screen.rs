//! What the screen of `redlatch top` shows: the locks in an order, and the waiters of one of them.
//! Keys and what was seen change it.

use super::search::Row;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use redlatch::FoundLock;
use std::cmp::Reverse;
use std::ops::Range;

/// What the locks are sorted by. What is longest or most comes first; names go up, and of the time
/// left the least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Wait,
    Name,
    Held,
    Waiters,
    Left,
}

/// What a key asks for besides a change of the screen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    Nothing,
    Quit,
    Interrupt,
    Suspend,
}

#[derive(Debug)]
pub(super) struct Screen {
    rows: Vec<Row>,
    pub(super) order: Order,
    /// The selected lock, and where it was: when it is gone, what is there now is selected.
    selected: Option<FoundLock>,
    index: usize,
    /// The lock whose waiters are shown.
    pub(super) open: Option<FoundLock>,
    /// The first row that is shown, of the locks or of the waiters.
    offset: usize,
    /// How many rows there was room for.
    page: usize,
    /// Have the locks been listed at all?
    pub(super) is_listed: bool,
    /// Why they could not be listed the last time.
    pub(super) failure: Option<String>,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self {
            rows: Vec::new(),
            order: Order::Wait,
            selected: None,
            index: 0,
            open: None,
            offset: 0,
            page: 1,
            is_listed: false,
            failure: None,
        }
    }

    /// Takes what was seen, or why nothing was: then the locks stay as they were.
    pub(super) fn take(&mut self, seen: Result<Vec<Row>, String>) {
        match seen {
            Ok(rows) => {
                self.rows = rows;
                self.is_listed = true;
                self.failure = None;
                self.sort();
            }
            Err(text) => self.failure = Some(text),
        }
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The row of the selected lock.
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// The lock whose waiters are shown, if somebody still holds or awaits it.
    pub(super) fn open_row(&self) -> Option<&Row> {
        let open = self.open.as_ref()?;
        self.rows.iter().find(|row| row.lock == *open)
    }

    /// Which rows are shown where there is room for this many.
    pub(super) fn window(&mut self, room: usize) -> Range<usize> {
        self.page = room.max(1);
        let count = self.count();
        if self.open.is_none() {
            // The selected one is among them.
            self.offset = self.offset.min(self.index);
            self.offset = self.offset.max((self.index + 1).saturating_sub(self.page));
        }
        self.offset = self.offset.min(count.saturating_sub(self.page));
        self.offset..count.min(self.offset + room)
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Request {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Request::Interrupt,
                KeyCode::Char('z') => Request::Suspend,
                _ => Request::Nothing,
            };
        }
        match key.code {
            KeyCode::Char('q') => return Request::Quit,
            KeyCode::Up | KeyCode::Char('k') => self.move_by(-1),
            KeyCode::Down | KeyCode::Char('j') => self.move_by(1),
            KeyCode::PageUp => self.move_by(-self.page_step()),
            KeyCode::PageDown => self.move_by(self.page_step()),
            KeyCode::Home => self.move_by(isize::MIN),
            KeyCode::End => self.move_by(isize::MAX),
            KeyCode::Enter if self.open.is_none() => {
                self.open.clone_from(&self.selected);
                self.offset = 0;
            }
            KeyCode::Esc if self.open.is_some() => {
                self.open = None;
                self.offset = 0;
            }
            KeyCode::Char(letter) => self.sort_by(letter),
            _ => {}
        }
        Request::Nothing
    }

    /// How many rows there are to show.
    fn count(&self) -> usize {
        match self.open {
            Some(_) => self.open_row().map_or(0, |row| row.seen.waiters.len()),
            None => self.rows.len(),
        }
    }

    fn page_step(&self) -> isize {
        isize::try_from(self.page).unwrap_or(isize::MAX)
    }

    fn move_by(&mut self, step: isize) {
        let last = self.count().saturating_sub(1);
        let place = if self.open.is_some() {
            &mut self.offset
        } else {
            &mut self.index
        };
        *place = place.saturating_add_signed(step).min(last);
        if self.open.is_none() {
            self.select();
        }
    }

    fn select(&mut self) {
        self.selected = self.rows.get(self.index).map(|row| row.lock.clone());
    }

    fn sort_by(&mut self, letter: char) {
        self.order = match letter {
            'l' => Order::Wait,
            'n' => Order::Name,
            'a' => Order::Held,
            'w' => Order::Waiters,
            't' => Order::Left,
            _ => return,
        };
        self.sort();
    }

    fn sort(&mut self) {
        match self.order {
            Order::Wait => self.rows.sort_by_cached_key(|row| {
                let key = (Reverse(row.longest_wait()), Reverse(row.seen.waiter_count));
                (key, row.lock.clone())
            }),
            Order::Name => self.rows.sort_by(|one, other| one.lock.cmp(&other.lock)),
            Order::Held => {
                self.rows
                    .sort_by_cached_key(|row| (Reverse(row.age), row.lock.clone()));
            }
            Order::Waiters => self
                .rows
                .sort_by_cached_key(|row| (Reverse(row.seen.waiter_count), row.lock.clone())),
            Order::Left => self.rows.sort_by_cached_key(|row| {
                let left = row.remaining();
                (left.is_none(), left, row.lock.clone())
            }),
        }
        let selected = self.selected.as_ref();
        let place = selected.and_then(|lock| self.rows.iter().position(|row| row.lock == *lock));
        let last = self.rows.len().saturating_sub(1);
        self.index = place.unwrap_or(self.index).min(last);
        self.select();
    }
}
