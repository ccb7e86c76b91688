//! The histograms as an SVG.

use super::histogram::Histogram;
use crate::duration;
use std::fmt::Write;

const WIDTH: usize = 720;
const ROW: usize = 20;
const LABEL: usize = 110;
const BAR_MAX: usize = 520;

pub(super) fn svg(histograms: &[Histogram]) -> String {
    let mut body = String::new();
    let mut y = 10;
    for histogram in histograms {
        y += 24;
        let text = format!(
            "{} ({} times): {}",
            histogram.name,
            histogram.len(),
            histogram.summary()
        );
        let _ = writeln!(
            body,
            "<text x=\"16\" y=\"{y}\" class=\"title\">{text}</text>"
        );
        let bars = histogram.bars();
        let most = bars.iter().map(|bar| bar.count).max().unwrap_or(1).max(1);
        for bar in bars {
            let top = y + 8;
            let length = (bar.count * BAR_MAX).div_ceil(most);
            y += ROW;
            let bound = duration::show(bar.bound);
            let count = bar.count;
            let behind = LABEL + length + 6;
            let _ = writeln!(
                body,
                "<text x=\"{}\" y=\"{y}\" text-anchor=\"end\">≤ {bound}</text>\
                 <rect x=\"{LABEL}\" y=\"{top}\" width=\"{length}\" height=\"14\"/>\
                 <text x=\"{behind}\" y=\"{y}\">{count}</text>",
                LABEL - 8
            );
        }
        y += 12;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {0}\" width=\"{WIDTH}\" \
         height=\"{0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <style>text {{ fill: #333 }} .title {{ font-weight: bold }} rect {{ fill: #4878a8 }}\
         </style>\n<rect width=\"100%\" height=\"100%\" style=\"fill: #fff\"/>\n{body}</svg>\n",
        y + 10
    )
}
