//! A circuit between two sites, watched from its near one: the hub knows it by reports alone.
use downburst_model::{Micros, SiteName};
use downburst_session::CircuitFault;

use super::ends::{CircuitEnds, EndChange, SILENCE};
use super::faults::{not_connected, not_reported};

/// Whether such a circuit carries packets.
#[derive(Clone, Debug, Default)]
pub struct PairWatch {
    /// The near site's report on the far end; `None` before the first one.
    heard: Option<Result<(), CircuitFault>>,
    /// As told to operators.
    carries: bool,
    /// The time since which a site or its report is missing.
    lacking_since: Option<Micros>,
}

/// A look at the two sites of a circuit.
#[derive(Clone, Copy, Debug)]
pub struct PairLook<'a> {
    /// The sites, the near one first, each with true if it is connected.
    pub sites: [(&'a SiteName, bool); 2],
    /// Their reports on their own ends.
    pub ends: &'a CircuitEnds,
}

/// The reason why a circuit is taken for dead.
struct Lack {
    site: SiteName,
    fault: CircuitFault,
    /// True if it may be over soon: a session that moves to another way is away for a moment.
    may_pass: bool,
}

impl PairWatch {
    /// The near site is offered its end again: its earlier report counts no more.
    pub fn offered(&mut self) {
        self.heard = None;
    }

    /// Handles the near site's report on the far end.
    pub fn heard(&mut self, said: Result<(), CircuitFault>) {
        self.heard = Some(said);
    }

    /// The change since the last look, with the site that it concerns.
    pub fn look(&mut self, now: Micros, look: PairLook<'_>) -> Option<(SiteName, EndChange)> {
        let [_, (far, _)] = look.sites;
        let Some(Lack { site, fault, may_pass }) = self.lack(look) else {
            self.lacking_since = None;
            let is_news = !std::mem::replace(&mut self.carries, true);
            return is_news.then(|| (far.clone(), EndChange::Up));
        };
        let since = *self.lacking_since.get_or_insert(now);
        if may_pass && now.since(since) < SILENCE {
            return None;
        }
        let is_news = std::mem::replace(&mut self.carries, false);
        is_news.then_some((site, EndChange::Down(fault)))
    }

    fn lack(&self, PairLook { sites, ends }: PairLook<'_>) -> Option<Lack> {
        let passing = |site: &SiteName, fault| Lack { site: site.clone(), fault, may_pass: true };
        let lasting = |site: &SiteName, fault| Lack { site: site.clone(), fault, may_pass: false };
        for (site, is_connected) in sites {
            match ends.report(site) {
                _ if !is_connected => return Some(passing(site, not_connected(site))),
                Some(Err(fault)) => return Some(lasting(site, fault.clone())),
                Some(Ok(())) => {}
                None => return Some(passing(site, not_reported(site))),
            }
        }
        let [(near, _), (far, _)] = sites;
        match &self.heard {
            None => Some(passing(near, not_reported(near))),
            Some(Err(fault)) => Some(lasting(far, fault.clone())),
            Some(Ok(())) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A circuit between east and west, of which both have reported, and its watch.
    struct Bench {
        watch: PairWatch,
        ends: CircuitEnds,
        connected: [bool; 2],
    }

    fn sites() -> [SiteName; 2] {
        ["east", "west"].map(|name| SiteName::parse(name).unwrap())
    }

    fn silence() -> CircuitFault {
        CircuitFault::silent("dbc17", None)
    }

    impl Bench {
        fn standing() -> Self {
            let mut ends = CircuitEnds::default();
            for site in sites() {
                ends.offered(&site);
                ends.said(&site, Ok(()));
            }
            Self { watch: PairWatch::default(), ends, connected: [true; 2] }
        }

        fn carrying() -> Self {
            let mut bench = Self::standing();
            bench.watch.heard(Ok(()));
            assert_eq!(bench.look(0), Some(("west".to_owned(), None)));
            bench
        }

        /// The site of a change, with the sentence of a fault.
        fn look(&mut self, now_ms: u64) -> Option<(String, Option<String>)> {
            let [east, west] = &sites();
            let [is_east, is_west] = self.connected;
            let look = PairLook { sites: [(east, is_east), (west, is_west)], ends: &self.ends };
            let (site, change) = self.watch.look(Micros::from_millis(now_ms), look)?;
            let sentence = match change {
                EndChange::Up => None,
                EndChange::Down(fault) => Some(fault.sentence),
            };
            Some((site.as_str().to_owned(), sentence))
        }
    }

    #[test]
    fn it_carries_once_the_near_site_has_heard_the_far_end() {
        let mut bench = Bench::standing();
        assert_eq!(bench.look(0), None);
        assert_eq!(bench.look(60_000), None, "it never carried, so nothing was lost");
        bench.watch.heard(Ok(()));
        assert_eq!(bench.look(60_200), Some(("west".to_owned(), None)));
        assert_eq!(bench.look(60_400), None);
    }

    #[test]
    fn a_silence_and_a_fault_at_either_end_count_immediately() {
        let mut bench = Bench::carrying();
        bench.watch.heard(Err(silence()));
        assert_eq!(bench.look(200), Some(("west".to_owned(), Some(silence().sentence))));
        assert_eq!(bench.look(400), None);
        bench.watch.heard(Ok(()));
        assert_eq!(bench.look(600), Some(("west".to_owned(), None)));
        for site in sites() {
            let mut bench = Bench::carrying();
            bench.ends.said(&site, Err(silence()));
            assert_eq!(bench.look(200), Some((site.as_str().to_owned(), Some(silence().sentence))));
        }
    }

    #[test]
    fn a_site_without_a_session_for_a_second_is_named() {
        for (index, site) in sites().iter().enumerate() {
            let mut bench = Bench::carrying();
            bench.connected[index] = false;
            assert_eq!(bench.look(1_000), None);
            assert_eq!(bench.look(1_900), None);
            let sentence = format!("{site} is not connected");
            assert_eq!(bench.look(2_000), Some((site.as_str().to_owned(), Some(sentence))));
        }
    }

    #[test]
    fn a_session_that_moves_changes_nothing_and_one_that_stays_mute_does() {
        let [east, _] = sites();
        let mut bench = Bench::carrying();
        bench.ends.offered(&east);
        bench.watch.offered();
        assert_eq!(bench.look(1_000), None);
        bench.ends.said(&east, Ok(()));
        assert_eq!(bench.look(1_400), None);
        bench.watch.heard(Ok(()));
        assert_eq!(bench.look(1_600), None);
        bench.watch.offered();
        assert_eq!(bench.look(1_800), None);
        let (site, sentence) = bench.look(2_800).unwrap();
        assert!(site == "east" && sentence.unwrap().starts_with("east does not say"));
    }
}
