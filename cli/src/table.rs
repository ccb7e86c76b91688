//! Tables of text: columns as wide as their widest cell.

/// A longer cell moves the rest of its own line to the right, and widens no other line.
const WIDTH_MAX: usize = 64;

/// A table with a line of headings. The last column is not padded.
pub(crate) fn render(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut lines: Vec<Vec<String>> = vec![headings.iter().map(ToString::to_string).collect()];
    lines.extend(rows.iter().cloned());
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).filter(|width| *width <= WIDTH_MAX).max()
    };
    let widths: Vec<usize> = (0..headings.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in &lines {
        let mut shown = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            shown += &format!("{cell:<width$}  ");
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
        assert_eq!(render(&["X", "Y"], &rows), "X     Y\na     µs\nlong  -\n");
    }

    #[test]
    fn a_very_long_cell_does_not_widen_the_lines_of_others() {
        let long = "n".repeat(60_000);
        let rows = [vec![long.clone(), "1".to_owned()], vec!["name".to_owned(), "2".to_owned()]];
        let expected = format!("X     Y\n{long}  1\nname  2\n");
        assert_eq!(render(&["X", "Y"], &rows), expected);
    }
}
