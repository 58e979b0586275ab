/// The upper convex hull of points (time, offset): what a line has to lie above.
#[derive(Clone, Debug, Default)]
pub(crate) struct Envelope {
    hull: Vec<(i64, i128)>,
}

impl FromIterator<(i64, i128)> for Envelope {
    /// Andrew's monotone chain. The points come in the order of time, from ten minutes at most.
    fn from_iter<T: IntoIterator<Item = (i64, i128)>>(points: T) -> Self {
        let mut hull: Vec<(i64, i128)> = Vec::new();
        for point in points {
            while let [.., before, last] = hull.as_slice()
                && !is_above(*last, *before, point)
            {
                hull.pop();
            }
            hull.push(point);
        }
        Self { hull }
    }
}

impl Envelope {
    /// The lowest offset at time `at` of a line with this slope that is above all points, in 10⁻⁹ µs. The line may
    /// have changed its slope by [`WANDER_PPB`] since each point. `newest` is the end of the points' time.
    pub(crate) fn lowest(&self, slope_ppb: i64, at: i64, newest: i64) -> i128 {
        let end = i128::from(at.max(newest));
        let later = end - i128::from(at);
        let through = |&(time, offset): &(i64, i128)| {
            let since = i128::from(at) - i128::from(time);
            let wander = WANDER_PPB * (end - i128::from(time) + later);
            (offset - SLACK_US) * PPB + i128::from(slope_ppb) * since - wander
        };
        self.hull.iter().map(through).max().unwrap_or(i128::MIN / 4)
    }
}

/// `point` is above the line from `before` to `after`, or two of them have the same time.
fn is_above(point: (i64, i128), before: (i64, i128), after: (i64, i128)) -> bool {
    let run = |to: (i64, i128)| i128::from(to.0) - i128::from(before.0);
    let rise = |to: (i64, i128)| to.1 - before.1;
    run(point) == 0 || run(after) == run(point) || rise(point) * run(after) > rise(after) * run(point)
}

/// Parts per 10⁹: slopes are in these parts, so that offsets at a slope are whole numbers of 10⁻⁹ µs.
pub(crate) const PPB: i128 = 1_000_000_000;

/// Stamps are cut off at the microsecond, and slopes rounded to 10⁻⁹: at most 1 µs each within ten minutes.
const SLACK_US: i128 = 2;

/// By how much the drift may change within ten minutes: a crystal's temperature, or a daemon that corrects its clock
/// slowly. More is a change of course.
const WANDER_PPB: i128 = 1_000;
