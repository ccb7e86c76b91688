//! Shorter ways to the same end, for any kind of step.

/// Leaves out steps as long as what remains still leads there: `repeat` takes the steps that are
/// possible, and returns them if it does.
pub fn ways<S: Clone>(trace: &[S], mut repeat: impl FnMut(&[S]) -> Option<Vec<S>>) -> Vec<S> {
    let mut best = repeat(trace).unwrap_or_else(|| trace.to_vec());
    let mut length = usize::MAX;
    while best.len() < length {
        length = best.len();
        for size in [16, 8, 4, 2, 1] {
            let mut last = best.len();
            while last >= size {
                let mut shorter = best.clone();
                shorter.drain(last - size..last);
                if let Some(found) = repeat(&shorter) {
                    best = found;
                }
                last = (last - 1).min(best.len());
            }
        }
    }
    best
}
