//! Tables of text: columns as wide as their widest cell.

use super::output;
use unicode_width::UnicodeWidthStr;

/// A longer cell moves the rest of its own line to the right, and widens no other line.
const WIDTH_MAX: usize = 64;

const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// A table with a line of headings, which are bold on a terminal. The last column is not padded.
pub(crate) fn render(headings: &[&str], rows: &[Vec<String>]) -> String {
    let text = plain(headings, rows);
    match text.split_once('\n') {
        Some((first, rest)) if output::stdout_has_colours() => {
            format!("{BOLD}{first}{PLAIN}\n{rest}")
        }
        _ => text,
    }
}

/// How many columns of a terminal a line of a table takes.
pub(crate) fn width(line: &str) -> usize {
    line.replace(BOLD, "").replace(PLAIN, "").width()
}

fn plain(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut lines: Vec<Vec<String>> = vec![headings.iter().map(ToString::to_string).collect()];
    lines.extend(rows.iter().cloned());
    let widest = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.width()).filter(|width| *width <= WIDTH_MAX).max()
    };
    let widths: Vec<usize> =
        (0..headings.len()).map(|column| widest(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in &lines {
        let mut shown = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            let padding = " ".repeat(width.saturating_sub(cell.width()) + 2);
            shown = shown + cell + &padding;
        }
        text += shown.trim_end();
        text.push('\n');
    }
    text
}

/// The cell of something that there is not.
pub(crate) fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows =
            [vec!["a".to_owned(), "µs".to_owned()], vec!["long".to_owned(), cell(None::<u8>)]];
        assert_eq!(plain(&["X", "Y"], &rows), "X     Y\na     µs\nlong  -\n");
    }

    #[test]
    fn a_wide_character_takes_two_columns() {
        let rows =
            [vec!["日本".to_owned(), "1".to_owned()], vec!["e\u{301}".to_owned(), cell(Some(2))]];
        assert_eq!(plain(&["X", "Y"], &rows), "X     Y\n日本  1\ne\u{301}     2\n");
        assert_eq!(width("\x1b[1mX  日\x1b[0m"), 5);
    }

    #[test]
    fn a_very_long_cell_does_not_widen_the_lines_of_others() {
        let long = "n".repeat(60_000);
        let rows = [vec![long.clone(), "1".to_owned()], vec!["name".to_owned(), "2".to_owned()]];
        let expected = format!("X     Y\n{long}  1\nname  2\n");
        assert_eq!(plain(&["X", "Y"], &rows), expected);
    }
}
