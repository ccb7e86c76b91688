//! Draws what a client sees of real servers, in terminals of every width.

use super::*;
use crate::top::search::{self, Ages};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::thread;
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, take};
use support::servers::Servers;

const WAITERS: usize = 130;

/// With a crowd of waiters for the second of them.
const NAMES: [&[u8]; 5] = [
    b"ctl\x01\n\t\x1b[2J\xff",
    b"job",
    "日本語のロック".as_bytes(),
    &[b'n'; 3_000],
    b"\xcc\x81",
];

/// The rows of such locks, and of one that readers share.
fn rows() -> Vec<Row> {
    let servers = Servers::start(1);
    let client = all_nodes_client(servers.urls());
    let held: Vec<_> = NAMES.iter().map(|name| take(&client, name, LONG)).collect();
    let share = client
        .request("readers")
        .owner("host-7")
        .ttl(LONG)
        .shared()
        .lock();
    thread::scope(|scope| {
        for number in 0..WAITERS {
            // With an owner each, since readers of one client who have the same wait as one.
            let request = client
                .request("job")
                .owner(number.to_string())
                .ttl(LONG)
                .shared();
            scope.spawn(move || request.lock());
        }
        let count = || client.inspect("job").map_or(0, |seen| seen.waiter_count);
        assert!(eventually(LIMIT, || count() == WAITERS), "{}", count());
        let mut rows = search::listed(&client, b"*").expect("the server answers");
        Ages::default().fill(&mut rows);
        drop((held, share));
        rows
    })
}

fn drawn(screen: &mut Screen, width: u16, height: u16, has_colours: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("no terminal");
    let theme = Theme { has_colours };
    terminal
        .draw(|frame| draw(frame, screen, theme))
        .expect("it draws to memory");
    terminal.backend().buffer().clone()
}

/// The lines, without blanks at their ends. A wide character is followed by a blank cell.
fn lines(buffer: &Buffer) -> Vec<String> {
    let line = |y: u16| {
        let mut line = String::new();
        let mut x = 0;
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            line += symbol;
            x += u16::try_from(Span::raw(symbol).width().max(1)).expect("one or two");
        }
        line.trim_end().to_owned()
    };
    (0..buffer.area.height).map(line).collect()
}

fn press(screen: &mut Screen, code: KeyCode) {
    screen.press(KeyEvent::new(code, KeyModifiers::NONE));
}

#[test]
fn every_size_shows_whole_columns_and_true_counts() {
    let mut screen = Screen::new();
    assert!(lines(&drawn(&mut screen, 40, 5, true))[0].starts_with("looking at the locks"));
    screen.take(Ok(rows()));
    let keys = width(LOCK_KEYS);
    for width in (1..=100).chain([200]) {
        for height in [1, 2, 3, 5, 24] {
            let shown = lines(&drawn(&mut screen, width, height, true));
            assert!(
                shown.iter().all(|line| !line.contains(char::is_control)),
                "{shown:?}"
            );
            if width < 20 || height < 5 {
                continue;
            }
            assert_eq!(shown[0], cut("6 locks, 130 waiting", width));
            let heading: Vec<&str> = shown[1].split_whitespace().collect();
            let all = ["LOCK", "WAITERS", "WAIT↓", "HELD", "LEFT", "STATE"];
            let expected = match width {
                ..31 => &all[..2],
                31..48 => &all[..3],
                48..60 => &["LOCK", "WAITERS", "WAIT↓", "STATE"],
                60..72 => &["LOCK", "WAITERS", "WAIT↓", "LEFT", "STATE"],
                _ => &all[..],
            };
            assert_eq!(heading, expected, "{width}: {shown:?}");
            let first: Vec<&str> = shown[2].split_whitespace().take(2).collect();
            assert_eq!(first, ["job", "130"], "{width}: {shown:?}");
            let last = shown.last().expect("a line of keys");
            assert!(
                last.starts_with("q quit") && (width < keys) == last.ends_with('…'),
                "{last}"
            );
        }
    }
    let shown = lines(&drawn(&mut screen, 120, 24, true)).join("\n");
    for text in [
        "ctl\\u{1}\\n\\t\\u{1b}[2J\\xff",
        "日本語のロック ",
        "\\u{301} ",
        "nnn… ",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(shown.contains("shared by host-7 for another"), "{shown}");
    press(&mut screen, KeyCode::Enter);
    for width in (1..=100).chain([200]) {
        for height in [1, 2, 3, 5, 24] {
            let shown = lines(&drawn(&mut screen, width, height, true));
            if width < 20 || height < 24 {
                continue;
            }
            assert_eq!(shown[0], "job");
            assert_eq!(
                shown[2],
                cut("130 waiters, of whom the first 100 are shown", width)
            );
            assert!(shown[3].starts_with("PLACE OWNER"), "{shown:?}");
            assert!(shown[4].starts_with("1     "), "{shown:?}");
        }
    }
    press(&mut screen, KeyCode::End);
    let shown = lines(&drawn(&mut screen, 80, 10, true));
    assert!(shown[8].starts_with("100   "), "{shown:?}");
    press(&mut screen, KeyCode::Esc);
    assert_eq!(
        lines(&drawn(&mut screen, 80, 10, true))[0],
        "6 locks, 130 waiting"
    );
}

#[test]
fn without_colours_nothing_is_lost() {
    let mut screen = Screen::new();
    screen.take(Ok(rows()));
    screen.take(Err("no quorum".to_owned()));
    let with = drawn(&mut screen, 80, 10, true);
    let without = drawn(&mut screen, 80, 10, false);
    // Times go on.
    let starts = |buffer: &Buffer| -> Vec<String> {
        lines(buffer)
            .iter()
            .filter_map(|line| line.split(' ').next())
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(starts(&with), starts(&without));
    assert_eq!(lines(&with)[9], "no quorum", "in the place of the keys");
    let colours = |buffer: &Buffer| {
        buffer
            .content
            .iter()
            .filter(|cell| cell.fg != Color::Reset)
            .count()
    };
    assert!(colours(&with) > 0);
    assert_eq!(colours(&without), 0);
    let is_reversed = |buffer: &Buffer, y| buffer[(0, y)].modifier.contains(Modifier::REVERSED);
    assert!(
        is_reversed(&without, 2) && !is_reversed(&without, 3),
        "the first is selected"
    );
}

#[test]
fn keys_sort_and_select_and_the_selection_stays_on_its_lock() {
    let mut screen = Screen::new();
    let rows = rows();
    screen.take(Ok(rows.clone()));
    let names = |screen: &Screen| {
        screen
            .rows()
            .iter()
            .map(|row| shown(row.lock.as_ref()))
            .collect::<Vec<_>>()
    };
    let by_name = {
        let mut names = rows.iter().map(|row| row.lock.clone()).collect::<Vec<_>>();
        names.sort();
        names
            .iter()
            .map(|name| shown(name.as_ref()))
            .collect::<Vec<_>>()
    };
    press(&mut screen, KeyCode::Char('n'));
    assert_eq!(names(&screen), by_name);
    assert_eq!(
        by_name[screen.index()],
        "job",
        "it was the first, and stays selected"
    );
    for key in ['w', 'l'] {
        press(&mut screen, KeyCode::Char(key));
        assert_eq!((&*names(&screen)[0], screen.index()), ("job", 0), "{key}");
    }
    press(&mut screen, KeyCode::Char('a'));
    let ages: Vec<_> = screen.rows().iter().map(|row| row.age).collect();
    assert!(ages.is_sorted_by(|one, next| one >= next), "{ages:?}");
    assert_eq!(ages.last(), Some(&None), "nobody holds it alone");
    press(&mut screen, KeyCode::Char('t'));
    let left: Vec<_> = screen.rows().iter().map(Row::remaining).collect();
    assert!(left.is_sorted() && left[0].is_some(), "{left:?}");

    press(&mut screen, KeyCode::Char('n'));
    press(&mut screen, KeyCode::End);
    let last = names(&screen).len() - 1;
    assert_eq!(screen.index(), last);
    press(&mut screen, KeyCode::Down);
    assert_eq!(screen.index(), last, "there is nothing below");
    drawn(&mut screen, 80, 5, true);
    assert_eq!(
        screen.window(3),
        last - 2..last + 1,
        "what is selected is in sight"
    );
    press(&mut screen, KeyCode::Home);
    press(&mut screen, KeyCode::Up);
    assert_eq!((screen.index(), screen.window(3)), (0, 0..3));
    press(&mut screen, KeyCode::Enter);
    screen.take(Ok(Vec::new()));
    let gone = lines(&drawn(&mut screen, 80, 10, true));
    assert_eq!((&*gone[1], &*gone[2]), ("free", "0 waiters"));
    for code in [
        KeyCode::Down,
        KeyCode::End,
        KeyCode::PageUp,
        KeyCode::Esc,
        KeyCode::Enter,
    ] {
        press(&mut screen, code);
        assert!(lines(&drawn(&mut screen, 80, 10, true)).len() == 10);
    }
    assert!(screen.open.is_none(), "there is none to open");
}
