use downburst_model::Micros;

/// The time of a request and its answer, smoothed as in RFC 6298.
#[derive(Debug, Default)]
pub(super) struct RoundTrip {
    smoothed: Option<Micros>,
    variation: Micros,
}

impl RoundTrip {
    pub(super) fn sample(&mut self, sample: Micros) {
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.variation) = (Some(sample), Micros(sample.0 / 2));
            return;
        };
        let distance = smoothed.0.abs_diff(sample.0);
        self.variation = Micros((self.variation.0.saturating_mul(3).saturating_add(distance)) / 4);
        self.smoothed = Some(Micros((smoothed.0.saturating_mul(7).saturating_add(sample.0)) / 8));
    }

    /// The time after which an answer is late.
    pub(super) fn patience(&self) -> Micros {
        let Some(smoothed) = self.smoothed else { return FIRST_PATIENCE };
        let patience = smoothed.0.saturating_add(self.variation.0.saturating_mul(4));
        Micros(patience.clamp(SHORTEST_PATIENCE.0, LONGEST_PATIENCE.0))
    }
}

/// The patience before the first measurement: paths around the globe are shorter.
const FIRST_PATIENCE: Micros = Micros::from_millis(400);

/// A busy host at either end may delay a datagram by this time.
const SHORTEST_PATIENCE: Micros = Micros::from_millis(10);
const LONGEST_PATIENCE: Micros = Micros::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_the_path() {
        let mut path = RoundTrip::default();
        assert_eq!(path.patience(), FIRST_PATIENCE);
        path.sample(Micros(80_000));
        assert_eq!(path.patience(), Micros(240_000), "a first sample says little of the variation");
        (0..40).for_each(|_| path.sample(Micros(80_000)));
        assert!(path.patience() < Micros(82_000), "{:?}", path.patience());
        (0..60).for_each(|_| path.sample(Micros(300)));
        assert_eq!(path.patience(), SHORTEST_PATIENCE);
        (0..99).for_each(|_| path.sample(Micros::from_secs(60)));
        assert_eq!(path.patience(), LONGEST_PATIENCE);
    }
}
