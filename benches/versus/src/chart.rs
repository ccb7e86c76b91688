//! The chart: bars in SVG, once for light pages and once for dark ones.
//!
//! Each group of bars is one row of the table on the page about performance. Lengths are ratios to
//! redlatch's bar, which is equally long in every group. A bar that would be more than twice as
//! long is cut off, and a gap near its end says so; its ratio is written behind it.

use crate::figures::{self, Group};
use crate::report::rate;
use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

/// The folder of the charts, relative to this program's. They are not in this program's folder,
/// because the README shows them and Cargo leaves this folder out of the package.
const FOLDER: &str = "../../docs";

/// The figures of the chart, in this program's folder.
pub const FIGURES: &str = "figures.jsonl";

const WIDTH: usize = 776;
const NAMES: usize = 152;
/// The length of redlatch's bar.
const UNIT: f64 = 240.0;
/// No bar is longer than this many times redlatch's.
const RATIO_MAX: f64 = 2.0;
const BAR: usize = 18;
const GAP: usize = 5;
const TITLE: usize = 30;
const SPACE: usize = 16;

/// The colours of one chart.
struct Theme {
    file: &'static str,
    text: &'static str,
    faint: &'static str,
    own: &'static str,
    other: &'static str,
    page: &'static str,
}

const THEMES: [Theme; 2] = [
    theme(
        "chart-light.svg",
        ["#1f2328", "#59636e", "#1f883d", "#8c959f", "#ffffff"],
    ),
    theme(
        "chart-dark.svg",
        ["#e6edf3", "#9198a1", "#3fb950", "#6e7681", "#0d1117"],
    ),
];

const fn theme(file: &'static str, colours: [&'static str; 5]) -> Theme {
    let [text, faint, own, other, page] = colours;
    Theme {
        file,
        text,
        faint,
        own,
        other,
        page,
    }
}

/// Draws the charts for all themes from the figures in this program's folder.
pub fn redraw(folder: &Path) -> io::Result<()> {
    let groups = figures::from_text(&fs::read_to_string(folder.join(FIGURES))?)?;
    let write =
        |theme: &Theme| fs::write(folder.join(FOLDER).join(theme.file), draw(&groups, theme));
    THEMES.iter().try_for_each(write)
}

/// Draws groups of bars, one under the other.
fn draw(groups: &[Group], theme: &Theme) -> String {
    let height: usize = groups
        .iter()
        .map(|group| TITLE + group.bars.len() * (BAR + GAP) + SPACE)
        .sum();
    let Theme {
        text,
        faint,
        own,
        other,
        ..
    } = theme;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<title>redlatch compared with \
         other lock libraries</title>\n<style>\ntext {{ font: 13px system-ui, \
         -apple-system, \"Segoe UI\", Helvetica, Arial, sans-serif; fill: {text}; }}\n.title {{ \
         font-weight: 600; }}\n.faint {{ fill: {faint}; }}\n.own {{ fill: {own}; }}\n.other {{ \
         fill: {other}; }}\n</style>\n"
    );
    let mut top = 0;
    for group in groups {
        let baseline = top + TITLE - 10;
        let title = escape(&group.title);
        let better = group.unit.better();
        let _ = writeln!(
            svg,
            "<text class=\"title\" x=\"0\" y=\"{baseline}\">{title}</text><text class=\"faint\" \
             x=\"{WIDTH}\" y=\"{baseline}\" text-anchor=\"end\">{better}</text>"
        );
        top += TITLE;
        let own = group.bars.first().map_or(1.0, |(_, value)| *value);
        for (name, value) in &group.bars {
            bar(
                &mut svg,
                top,
                name,
                value / own,
                &group.unit.show(*value),
                theme,
            );
            top += BAR + GAP;
        }
        top += SPACE;
    }
    svg + "</svg>\n"
}

fn bar(svg: &mut String, top: usize, name: &str, ratio: f64, value: &str, theme: &Theme) {
    let class = if name.starts_with("redlatch") {
        "own"
    } else {
        "other"
    };
    let width = (ratio.min(RATIO_MAX) * UNIT).max(1.0);
    let baseline = top + BAR - 4;
    let right = NAMES - 8;
    let end = NAMES as f64 + width;
    let name = escape(name);
    let _ = write!(
        svg,
        "<text x=\"{right}\" y=\"{baseline}\" text-anchor=\"end\">{name}</text>\
         <rect class=\"{class}\" x=\"{NAMES}\" y=\"{top}\" width=\"{width:.1}\" height=\"{BAR}\" \
         rx=\"2\"/>"
    );
    if ratio > RATIO_MAX {
        let left = end - 26.0;
        let bottom = top + BAR + 1;
        let _ = write!(
            svg,
            "<path d=\"M {left:.1} {bottom} l 8 -{0} m 5 0 l -8 {0}\" stroke=\"{1}\" \
             stroke-width=\"3\" fill=\"none\"/>",
            BAR + 2,
            theme.page
        );
    }
    let behind = end + 6.0;
    let times = times(ratio);
    let _ = writeln!(
        svg,
        "<text x=\"{behind:.1}\" y=\"{baseline}\">{value} <tspan class=\"faint\">{times}</tspan>\
         </text>"
    );
}

/// The ratio to redlatch's bar, which needs none itself.
fn times(ratio: f64) -> String {
    match ratio {
        1.0 => String::new(),
        ..0.01 => format!("({ratio:.3} ×)"),
        ..10.0 => format!("({ratio:.2} ×)"),
        _ => format!("({} ×)", rate(ratio)),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_charts_are_those_of_the_figures_beside_them() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(folder.join(FIGURES)).unwrap();
        let groups = figures::from_text(&text).unwrap();
        assert_eq!(figures::to_text(&groups).unwrap(), text);
        for theme in &THEMES {
            let chart = fs::read_to_string(folder.join(FOLDER).join(theme.file)).unwrap();
            assert!(
                chart == draw(&groups, theme),
                "{} is an old one",
                theme.file
            );
        }
    }
}
