//! The chart: bars in SVG, drawn so that it can be read on a light page and on a dark one.

use crate::report::{Bars, rate};
use std::fmt::Write;

const WIDTH: usize = 776;
const NAMES: usize = 256;
const NUMBERS: usize = 90;
const BAR: usize = 18;
const GAP: usize = 6;
const TITLE: usize = 34;

/// Draws groups of bars, one under the other. Those of this library stand out.
pub fn draw(groups: &[&Bars]) -> String {
    let height: usize =
        groups.iter().map(|group| TITLE + group.bars.len() * (BAR + GAP) + GAP).sum();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<title>redlatch beside other lock \
         libraries</title>\n{STYLE}"
    );
    let mut top = 0;
    for group in groups {
        let most = group.bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
        let baseline = top + TITLE - 12;
        let title = escape(&format!("{} ({})", group.title, group.unit));
        let _ = writeln!(svg, "<text class=\"title\" x=\"0\" y=\"{baseline}\">{title}</text>");
        top += TITLE;
        for (name, value) in &group.bars {
            bar(&mut svg, top, name, *value, value / most);
            top += BAR + GAP;
        }
        top += GAP;
    }
    svg + "</svg>\n"
}

/// The colours follow the reader's setting, and are of a middle brightness where that is not known.
const STYLE: &str = "<style>
text { font: 13px system-ui, sans-serif; fill: #57606a; }
.title { font-weight: 600; }
.own { fill: #1f883d; }
.other { fill: #8c959f; }
@media (prefers-color-scheme: dark) {
  text { fill: #adbac7; }
  .own { fill: #57ab5a; }
  .other { fill: #768390; }
}
</style>
";

fn bar(svg: &mut String, top: usize, name: &str, value: f64, share: f64) {
    let class = if name.starts_with("redlatch") { "own" } else { "other" };
    let width = (share * (WIDTH - NAMES - NUMBERS) as f64).max(1.0);
    let (baseline, right) = (top + BAR - 4, NAMES - 8);
    let (end, number) = (
        NAMES as f64 + width + 6.0,
        if value < 10.0 { format!("{value:.2}") } else { rate(value) },
    );
    let name = escape(name);
    let _ = writeln!(
        svg,
        "<text x=\"{right}\" y=\"{baseline}\" text-anchor=\"end\">{name}</text>\
         <rect class=\"{class}\" x=\"{NAMES}\" y=\"{top}\" width=\"{width:.1}\" height=\"{BAR}\" \
         rx=\"2\"/><text x=\"{end:.1}\" y=\"{baseline}\">{number}</text>"
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
