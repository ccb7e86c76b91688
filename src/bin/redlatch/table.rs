//! Tables of text: columns as wide as their widest cell.

/// A table with a line of headings. The last column is not padded.
pub(crate) fn render(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut lines: Vec<Vec<String>> = vec![headings.iter().map(ToString::to_string).collect()];
    lines.extend(rows.iter().cloned());
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
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
}
