use crate::envelope::{Envelope, PPB};

/// The offsets that both envelopes allow at one time.
pub(crate) struct Band<'a> {
    outward: &'a Envelope,
    back: &'a Envelope,
    at: i64,
    newest: i64,
}

/// A range of slopes, both ends included, in parts per 10⁹.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slopes {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

impl<'a> Band<'a> {
    pub(crate) fn new(outward: &'a Envelope, back: &'a Envelope, at: i64, newest: i64) -> Self {
        Self { outward, back, at, newest }
    }

    /// The slopes up to `most`, in either direction, at which a line fits between the envelopes. The width is
    /// concave in the slope: the slopes are a range around the one with the widest band.
    pub(crate) fn slopes(&self, most: i64) -> Option<Slopes> {
        let widest = self.widest(most);
        if self.width(widest) < 0 {
            return None;
        }
        let from = first(-most, widest, |slope| self.width(slope) >= 0);
        let beyond = first(widest, most, |slope| self.width(slope + 1) < 0);
        Some(Slopes { from, to: beyond })
    }

    /// The width of the band at its widest, in whole microseconds.
    pub(crate) fn width_us(&self, most: i64) -> i128 {
        self.width(self.widest(most)) / PPB
    }

    /// The middle of the offsets with likely slopes, and the distance to the farthest offset with a possible one.
    pub(crate) fn middle(&self, likely: Slopes, possible: Slopes) -> (i64, u64) {
        let (bottom, top) = self.extent(likely);
        let middle = (bottom + top + PPB).div_euclid(2 * PPB);
        let offset = clamped(middle);
        let (bottom, top) = self.extent(possible);
        let own = i128::from(offset) * PPB;
        let farthest = (top - own).max(own - bottom).max(0);
        (offset, u64::try_from((farthest + PPB - 1) / PPB).unwrap_or(u64::MAX))
    }

    /// The lowest and the highest offset with one of the slopes, in 10⁻⁹ µs.
    fn extent(&self, slopes: Slopes) -> (i128, i128) {
        let mirrored = Slopes { from: -slopes.to, to: -slopes.from };
        let bottom = least(slopes, |slope| self.outward.lowest(slope, self.at, self.newest));
        let top = least(mirrored, |slope| self.back.lowest(slope, self.at, self.newest));
        (bottom, -top)
    }

    fn widest(&self, most: i64) -> i64 {
        first(-most, most, |slope| self.width(slope + 1) <= self.width(slope))
    }

    fn width(&self, slope: i64) -> i128 {
        -self.back.lowest(-slope, self.at, self.newest) - self.outward.lowest(slope, self.at, self.newest)
    }
}

impl Slopes {
    /// Those up to `most` in either direction, if any.
    pub(crate) fn within(self, most: i64) -> Option<Self> {
        let (from, to) = (self.from.max(-most), self.to.min(most));
        (from <= to).then_some(Self { from, to })
    }

    /// The middle of these slopes, and the distance to the farthest possible one.
    pub(crate) fn middle(self, possible: Self) -> (i64, u64) {
        let middle = self.from + (self.to - self.from) / 2;
        (middle, (possible.to - middle).max(middle - possible.from).unsigned_abs())
    }
}

/// The least value of a convex function.
fn least(slopes: Slopes, value: impl Fn(i64) -> i128) -> i128 {
    value(first(slopes.from, slopes.to, |slope| value(slope + 1) >= value(slope)))
}

/// The first slope from which the condition holds; `to` if it holds for none before.
fn first(mut from: i64, mut to: i64, holds: impl Fn(i64) -> bool) -> i64 {
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}

fn clamped(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}
