//! Tables of text: columns as wide as their widest cell.

use super::output;
use unicode_width::UnicodeWidthStr;

/// A longer cell moves the rest of its own line to the right, and widens no other line.
const WIDTH_MAX: usize = 64;

/// Between two columns.
const GAP: usize = 2;

/// So much room is left for words in the last column, or they begin on the next line.
const WORDS_MIN: usize = 24;

const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// How far what continues a line is indented.
const INDENT: usize = 4;

/// A table with a line of headings, which are bold on a terminal. The last column is not padded. On
/// a terminal that is too narrow, the columns that find no room follow on further lines, and the
/// last one breaks between words.
pub(crate) fn render(headings: &[&str], rows: &[Vec<String>]) -> String {
    let columns = output::stdout_width().unwrap_or(usize::MAX);
    let (head, body) = fitted(headings, rows, columns);
    let bold = |line| format!("{BOLD}{line}{PLAIN}\n");
    let head: String = match output::stdout_has_colours() {
        true => head.lines().map(bold).collect(),
        false => head,
    };
    head + &body
}

/// The text on lines that a terminal does not break within words, each but the first one indented.
pub(crate) fn wrap(text: &str, indent: usize) -> String {
    let room = output::stdout_width().map_or(usize::MAX, |width| width.saturating_sub(indent));
    words(text, room.max(1)).join(&format!("\n{}", " ".repeat(indent)))
}

/// How many columns of a terminal a line of a table takes.
pub(crate) fn width(line: &str) -> usize {
    line.replace(BOLD, "").replace(PLAIN, "").width()
}

/// The headings and the rows, in this many columns of a terminal.
fn fitted(headings: &[&str], rows: &[Vec<String>], columns: usize) -> (String, String) {
    let headings: Vec<String> = headings.iter().map(ToString::to_string).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&headings).chain(rows).collect();
    let widest = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells
            .map(|cell| cell.width())
            .filter(|width| *width <= WIDTH_MAX)
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(widest).collect();
    let parts = parts(&widths, columns);
    let shown = |line: &Vec<String>| -> String {
        parts
            .iter()
            .map(|(from, to)| part(line, &widths, (*from, *to), columns))
            .collect()
    };
    (shown(&headings), rows.iter().map(shown).collect())
}

/// Which columns of the table stand on a line together: from the first, up to before the second.
fn parts(widths: &[usize], columns: usize) -> Vec<(usize, usize)> {
    let mut parts = vec![(0, 0)];
    let mut used = 0;
    for (column, width) in widths.iter().enumerate() {
        let is_last = column + 1 == widths.len();
        // The last one breaks between its words.
        let needed = if is_last {
            (*width).min(WORDS_MIN)
        } else {
            *width
        };
        let part = parts.last_mut().expect("there is one");
        if column > part.0 && used + needed > columns {
            parts.push((column, column + 1));
            used = INDENT;
        } else {
            part.1 = column + 1;
        }
        used += width + GAP;
    }
    parts
}

/// These cells of a line of the table, padded, on a line or more.
fn part(cells: &[String], widths: &[usize], (from, to): (usize, usize), columns: usize) -> String {
    let mut shown = " ".repeat(if from == 0 { 0 } else { INDENT });
    for column in from..to.min(cells.len()) {
        let cell = &cells[column];
        if column + 1 == widths.len() {
            let indent = shown.width();
            // Where a cell before it is too wide for any terminal, nothing is in its place.
            let room = columns
                .checked_sub(indent)
                .filter(|room| *room > 0)
                .unwrap_or(usize::MAX);
            shown += &words(cell, room).join(&format!("\n{}", " ".repeat(indent)));
        } else {
            let padding = widths[column].saturating_sub(cell.width()) + GAP;
            shown += &format!("{cell}{}", " ".repeat(padding));
        }
    }
    shown.trim_end().to_owned() + "\n"
}

/// The text in lines of this many columns, each with whole words: but for a word that is wider.
fn words(text: &str, room: usize) -> Vec<String> {
    if text.width() <= room {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.width() + 1 + word.width() <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// The cell of something that there is not.
pub(crate) fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(headings: &[&str], rows: &[Vec<String>], columns: usize) -> String {
        let (head, body) = fitted(headings, rows, columns);
        head + &body
    }

    #[test]
    fn columns_that_find_no_room_follow_on_the_next_line_and_words_are_whole() {
        let cells = |texts: [&str; 4]| texts.map(str::to_owned).to_vec();
        let why = "no connection: Connection refused (os error 111)";
        let rows = [
            cells(["redis://a:6379/0", "yes", "same", "-"]),
            cells(["b", "no", "-", why]),
        ];
        let headings = ["NODE", "UP", "CLOCK", "LAST ERROR"];
        let heads = "NODE              UP   CLOCK  LAST ERROR\n";
        let first = "redis://a:6379/0  yes  same   -\n";
        let wide = format!("{heads}{first}b                 no   -      {why}\n");
        assert_eq!(plain(&headings, &rows, usize::MAX), wide);
        assert_eq!(plain(&headings, &rows, 78), wide);
        let narrower = "NODE              UP   CLOCK  LAST ERROR\n\
                        redis://a:6379/0  yes  same   -\n\
                        b                 no   -      no connection: Connection\n\
                        \x20                             refused (os error 111)\n";
        assert_eq!(plain(&headings, &rows, 60), narrower);
        let narrow = "NODE              UP   CLOCK\n    LAST ERROR\n\
                      redis://a:6379/0  yes  same\n    -\n\
                      b                 no   -\n    no connection: Connection\n\
                      \x20   refused (os error 111)\n";
        assert_eq!(plain(&headings, &rows, 35), narrow);
        for columns in 35..100 {
            let text = plain(&headings, &rows, columns);
            assert!(
                text.lines().all(|line| line.width() <= columns),
                "{columns}: {text}"
            );
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            vec!["a".to_owned(), "µs".to_owned()],
            vec!["long".to_owned(), cell(None::<u8>)],
        ];
        assert_eq!(
            plain(&["X", "Y"], &rows, usize::MAX),
            "X     Y\na     µs\nlong  -\n"
        );
    }

    #[test]
    fn a_wide_character_takes_two_columns() {
        let rows = [
            vec!["日本".to_owned(), "1".to_owned()],
            vec!["e\u{301}".to_owned(), cell(Some(2))],
        ];
        assert_eq!(
            plain(&["X", "Y"], &rows, usize::MAX),
            "X     Y\n日本  1\ne\u{301}     2\n"
        );
        assert_eq!(width("\x1b[1mX  日\x1b[0m"), 5);
    }

    #[test]
    fn a_very_long_cell_does_not_widen_the_lines_of_others() {
        let long = "n".repeat(60_000);
        let rows = [
            vec![long.clone(), "1".to_owned()],
            vec!["name".to_owned(), "2".to_owned()],
        ];
        let expected = format!("X     Y\n{long}  1\nname  2\n");
        assert_eq!(plain(&["X", "Y"], &rows, usize::MAX), expected);
    }
}
