use downburst_model::Micros;

/// The mode in which an upstream sends products to a downstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Sends each product without an offer: the upstream that is expected to be first.
    Primary,
    /// Offers each product first, so that duplicates are not sent; costs one round trip per product.
    Alternate,
}

/// Selects the primary among several upstreams of the same class: the one that is first more often.
#[derive(Clone, Debug)]
pub struct AutoShift {
    sources: Vec<Source>,
    since: Micros,
}

#[derive(Clone, Debug)]
struct Source {
    mode: Mode,
    accepted: u64,
    rejected: u64,
}

impl AutoShift {
    /// The first of `sources` upstreams begins as primary.
    pub fn new(sources: usize, now: Micros) -> Self {
        let mode = |at| if at == 0 { Mode::Primary } else { Mode::Alternate };
        let source = |at| Source { mode: mode(at), accepted: 0, rejected: 0 };
        Self { sources: (0..sources).map(source).collect(), since: now }
    }

    /// The mode to request from an upstream.
    pub fn mode(&self, source: usize) -> Mode {
        self.sources.get(source).map_or(Mode::Alternate, |source| source.mode)
    }

    /// Counts a product that an upstream sent or offered: `accepted` unless another upstream had already sent it.
    pub fn count(&mut self, source: usize, accepted: bool) {
        if let Some(source) = self.sources.get_mut(source) {
            let counter = if accepted { &mut source.accepted } else { &mut source.rejected };
            *counter = counter.saturating_add(1);
        }
    }

    /// Time of the next comparison.
    pub fn deadline(&self) -> Micros {
        self.since.plus(PERIOD)
    }

    /// Returns the requests to repeat, with their new modes. An upstream without products in the period keeps its
    /// mode.
    pub fn turn(&mut self, now: Micros) -> Vec<(usize, Mode)> {
        let others = u64::try_from(self.sources.len()).unwrap_or(u64::MAX).saturating_sub(1);
        if now < self.deadline() && others > 0 {
            return Vec::new();
        }
        self.since = now;
        let turned = self.sources.iter_mut().enumerate().filter_map(|(at, source)| {
            let next = source.judge(others);
            (source.accepted, source.rejected) = (0, 0);
            (std::mem::replace(&mut source.mode, next) != next).then_some((at, next))
        });
        turned.collect()
    }
}

impl Source {
    fn judge(&self, others: u64) -> Mode {
        if others == 0 {
            return Mode::Primary;
        }
        let accepted = self.accepted.saturating_mul(others);
        match self.mode {
            _ if self.accepted == 0 && self.rejected == 0 => self.mode,
            Mode::Primary if accepted <= self.rejected => Mode::Alternate,
            Mode::Alternate if accepted >= self.rejected => Mode::Primary,
            mode => mode,
        }
    }
}

/// Period between comparisons, as in LDM.
const PERIOD: Micros = Micros::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Micros = Micros::from_secs(60);

    fn counted(shift: &mut AutoShift, source: usize, accepted: usize, rejected: usize) {
        (0..accepted).for_each(|_| shift.count(source, true));
        (0..rejected).for_each(|_| shift.count(source, false));
    }

    #[test]
    fn the_upstream_that_is_first_more_often_becomes_primary() {
        let mut shift = AutoShift::new(2, Micros(0));
        counted(&mut shift, 0, 10, 90);
        counted(&mut shift, 1, 90, 10);
        assert_eq!(shift.turn(Micros(1)), [], "not before a minute");
        assert_eq!(shift.turn(MINUTE), [(0, Mode::Alternate), (1, Mode::Primary)]);
        assert_eq!((shift.mode(0), shift.mode(1)), (Mode::Alternate, Mode::Primary));
        assert_eq!(shift.turn(MINUTE.plus(MINUTE)), [], "counting begins anew, and idle feeds don't flap");
    }

    #[test]
    fn what_is_rejected_is_shared_among_the_others() {
        let mut shift = AutoShift::new(3, Micros(0));
        counted(&mut shift, 0, 40, 70);
        assert_eq!(shift.turn(MINUTE), [], "40 against 70 / 2");
        counted(&mut shift, 0, 40, 80);
        assert_eq!(shift.turn(MINUTE.plus(MINUTE)), [(0, Mode::Alternate)]);
    }

    #[test]
    fn an_only_upstream_is_primary_at_once() {
        let mut shift = AutoShift::new(1, Micros(0));
        assert_eq!(shift.mode(0), Mode::Primary);
        shift.sources[0].mode = Mode::Alternate;
        assert_eq!(shift.turn(Micros(1)), [(0, Mode::Primary)]);
    }
}
