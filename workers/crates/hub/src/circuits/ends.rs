//! The ends of a circuit at its sites: the sites' reports, and whether the ends answer.
use std::collections::BTreeMap;

use downburst_model::{Micros, SiteName};
use downburst_session::CircuitFault;

/// The ends of one circuit by site.
#[derive(Clone, Debug, Default)]
pub struct CircuitEnds(BTreeMap<SiteName, End>);

/// The end of a site.
#[derive(Clone, Debug, Default)]
struct End {
    /// The site's report on its end; `None` before the first one.
    said: Option<Result<(), CircuitFault>>,
    /// True if it answers.
    alive: bool,
}

/// The meaning of a site's report on its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReport {
    /// The site has no end of this circuit.
    OfNoEnd,
    /// Its first report, or a good one.
    Noted,
    /// An end that was reported before is down.
    Down(CircuitFault),
}

/// The result of a look at an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndLook {
    /// A change, for operators.
    pub change: Option<EndChange>,
    /// The end has to be pinged. A ping before it is up would start an address resolution that is repeated only after
    /// a second.
    pub ping: bool,
}

/// A change of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndChange {
    /// It answers.
    Up,
    /// It answers no more.
    Down(CircuitFault),
}

impl CircuitEnds {
    /// A site is offered its end, or will be once it connects: its earlier reports count no more.
    pub fn offered(&mut self, site: &SiteName) {
        self.0.insert(site.clone(), End::default());
    }

    /// The circuit has no end at this site any more.
    pub fn left(&mut self, site: &SiteName) {
        self.0.remove(site);
    }

    /// Handles a site's report on its end.
    pub fn said(&mut self, site: &SiteName, said: Result<(), CircuitFault>) -> EndReport {
        let Some(end) = self.0.get_mut(site) else { return EndReport::OfNoEnd };
        let fault = said.as_ref().err().cloned();
        end.alive = end.alive && fault.is_none();
        let was_known = end.said.replace(said).is_some();
        fault.filter(|_| was_known).map_or(EndReport::Noted, EndReport::Down)
    }

    /// Looks at an end; `heard`: the time since its last packet. `interface` is the hub's end.
    pub fn look(&mut self, site: &SiteName, heard: Option<Micros>, interface: &str) -> EndLook {
        let answers = heard.is_some_and(|since| since < SILENCE);
        let Some(end) = self.0.get_mut(site) else { return EndLook { change: None, ping: false } };
        let stands = end.said == Some(Ok(()));
        let changed = stands && end.alive != answers;
        end.alive = stands && answers;
        let change = changed.then(|| match answers {
            true => EndChange::Up,
            false => EndChange::Down(CircuitFault::silent(interface, heard)),
        });
        EndLook { change, ping: stands }
    }

    /// True if products may be sent to the site over the circuit.
    pub fn carries(&self, site: &SiteName) -> bool {
        self.0.get(site).is_some_and(|end| end.alive && end.said == Some(Ok(())))
    }

    /// True while a connected site has not reported its end.
    pub fn are_awaited(&self, is_connected: impl Fn(&SiteName) -> bool) -> bool {
        self.0.iter().any(|(site, end)| end.said.is_none() && is_connected(site))
    }

    /// The site's last report on its end.
    pub fn report(&self, site: &SiteName) -> Option<&Result<(), CircuitFault>> {
        self.0.get(site)?.said.as_ref()
    }
}

/// Five answers in a row are missing.
pub(super) const SILENCE: Micros = Micros::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn oslo() -> SiteName {
        SiteName::parse("oslo").unwrap()
    }

    fn fault() -> CircuitFault {
        CircuitFault { step: "kernel".to_owned(), sentence: "no".to_owned(), remedy: "yes".to_owned() }
    }

    fn offered() -> CircuitEnds {
        let mut ends = CircuitEnds::default();
        ends.offered(&oslo());
        ends
    }

    fn look(ends: &mut CircuitEnds, heard_ms: Option<u64>) -> EndLook {
        ends.look(&oslo(), heard_ms.map(Micros::from_millis), "dbc17")
    }

    #[test]
    fn an_end_carries_once_it_is_up_and_answers() {
        let mut ends = offered();
        assert_eq!(look(&mut ends, Some(5)), EndLook { change: None, ping: false }, "not reported yet");
        assert!(ends.are_awaited(|_| true) && !ends.are_awaited(|_| false));
        assert_eq!(ends.said(&oslo(), Ok(())), EndReport::Noted);
        assert!(!ends.carries(&oslo()) && !ends.are_awaited(|_| true));
        assert_eq!(look(&mut ends, None), EndLook { change: None, ping: true });
        assert_eq!(look(&mut ends, Some(999)), EndLook { change: Some(EndChange::Up), ping: true });
        assert!(ends.carries(&oslo()));
        assert_eq!(look(&mut ends, Some(200)), EndLook { change: None, ping: true });
        let silence = EndChange::Down(CircuitFault::silent("dbc17", Some(SILENCE)));
        assert_eq!(look(&mut ends, Some(1_000)), EndLook { change: Some(silence), ping: true });
        assert!(!ends.carries(&oslo()));
    }

    #[test]
    fn a_first_fault_answers_the_offer_and_a_later_one_is_news() {
        let mut ends = offered();
        assert_eq!(ends.said(&oslo(), Err(fault())), EndReport::Noted);
        assert_eq!(ends.report(&oslo()), Some(&Err(fault())));
        assert_eq!(ends.said(&oslo(), Ok(())), EndReport::Noted);
        look(&mut ends, Some(1));
        assert_eq!(ends.said(&oslo(), Err(fault())), EndReport::Down(fault()));
        assert!(!ends.carries(&oslo()));
        assert_eq!(look(&mut ends, Some(1)), EndLook { change: None, ping: false });
    }

    #[test]
    fn a_new_offer_forgets_the_reports_and_strangers_have_no_end() {
        let mut ends = offered();
        ends.said(&oslo(), Ok(()));
        look(&mut ends, Some(1));
        ends.offered(&oslo());
        assert!(!ends.carries(&oslo()) && ends.report(&oslo()).is_none());
        let paris = SiteName::parse("paris").unwrap();
        assert_eq!(ends.said(&paris, Ok(())), EndReport::OfNoEnd);
        assert!(!ends.carries(&paris) && ends.report(&paris).is_none());
    }

    #[test]
    fn an_end_that_joins_is_awaited_alone_and_one_that_left_is_not() {
        let mut ends = offered();
        ends.said(&oslo(), Ok(()));
        look(&mut ends, Some(1));
        let paris = SiteName::parse("paris").unwrap();
        ends.offered(&paris);
        assert!(ends.are_awaited(|_| true) && ends.carries(&oslo()));
        ends.left(&paris);
        // A look that began before the end left.
        let nothing = EndLook { change: None, ping: false };
        assert_eq!(ends.look(&paris, Some(Micros::from_millis(1)), "dbc17"), nothing);
        assert!(!ends.are_awaited(|_| true) && ends.carries(&oslo()));
    }
}
