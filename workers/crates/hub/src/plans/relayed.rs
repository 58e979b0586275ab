//! Legs that relays send into their networks: the state of each at its relay, and the steps towards the plan.
use std::collections::BTreeMap;

use downburst_model::{FeedName, LegId, SiteName};
use downburst_session::{FanOutPass, RelayLeg, RelayLegOpen, UnicastFanOut};

use super::{FanOut, LegLine, Plans};

/// The legs that relays send.
#[derive(Debug, Default)]
pub struct RelayedLegs(BTreeMap<LegId, RelayedLeg>);

/// A leg that a relay sends.
#[derive(Debug)]
struct RelayedLeg {
    feed: FeedName,
    relay: SiteName,
    message: RelayLeg,
    state: State,
    /// The number of its sites is another one since the relay was asked.
    recounted: bool,
    /// The last fault that was reported, which is not repeated.
    fault: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// The relay has no session, or no right to the feed.
    Closed,
    /// The relay's session with this number was asked.
    Asked { session: u64 },
    /// It sends the leg.
    Open { session: u64, open: RelayLegOpen },
}

/// The standing of a relay: the number of its session, if there is one; or the reason for which it may not send the
/// leg, as one sentence.
pub type RelayStanding = Result<Option<u64>, String>;

/// A step towards the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayStep {
    /// Ask the relay's session to send the leg.
    Ask {
        /// The relay.
        relay: SiteName,
        /// The number of its session.
        session: u64,
        /// The request.
        message: RelayLeg,
    },
    /// The leg's datagrams go nowhere from here on, and a session that still exists ends the leg.
    End(LegId),
    /// The leg's datagrams go nowhere until the relay sends it.
    Close(LegId),
    /// Notify the operator.
    Fault {
        /// The leg's feed.
        feed: FeedName,
        /// One sentence.
        sentence: String,
    },
}

impl<L> Plans<L> {
    /// Notes the relay of a leg that begins, if it has one. With a pass the relay sends the leg by unicast.
    pub fn begin_relayed(&mut self, feed: &FeedName, line: &LegLine, pass: Option<FanOutPass>) {
        if let Some(relay) = &line.relay {
            let LegLine { leg, group, port, rate_bps, hops, .. } = line.clone();
            let unicast = pass.map(|pass| UnicastFanOut { sites: line.sites.len() as u64, pass });
            let message = RelayLeg { leg, group, port, rate_bps, hops, unicast };
            self.relayed.begin(relay.clone(), feed.clone(), message);
        }
    }
}

impl RelayedLegs {
    /// Adds a leg of a plan, unless it is known.
    fn begin(&mut self, relay: SiteName, feed: FeedName, message: RelayLeg) {
        let leg = RelayedLeg { feed, relay, message, state: State::Closed, recounted: false, fault: None };
        self.0.entry(leg.message.leg).or_insert(leg);
    }

    /// Notes the present number of sites of a leg, which bounds a fan-out by unicast.
    pub fn recount(&mut self, line: &LegLine) {
        let Some(leg) = self.0.get_mut(&line.leg) else { return };
        let Some(unicast) = &mut leg.message.unicast else { return };
        let before = std::mem::replace(&mut unicast.sites, line.sites.len() as u64);
        leg.recounted |= before != unicast.sites;
    }

    /// Removes a leg.
    pub fn end(&mut self, leg: LegId) {
        self.0.remove(&leg);
    }

    /// The relay of a leg.
    pub fn relay_of(&self, leg: LegId) -> Option<&SiteName> {
        self.0.get(&leg).map(|leg| &leg.relay)
    }

    /// The way from the relay of a leg to its sites.
    pub fn fan_out_of(&self, leg: LegId) -> FanOut {
        let unicast = self.0.get(&leg).and_then(|leg| leg.message.unicast.as_ref());
        unicast.map_or(FanOut::Group, |_| FanOut::Unicast)
    }

    /// True if a relay sends the leg.
    pub fn is_open(&self, leg: LegId) -> bool {
        self.0.get(&leg).is_some_and(|leg| matches!(leg.state, State::Open { .. }))
    }

    /// Compares all legs with the standing of their relays; returns the steps that are due.
    pub fn look(&mut self, standing: impl Fn(&SiteName, &FeedName) -> RelayStanding) -> Vec<RelayStep> {
        self.0.values_mut().flat_map(|leg| leg.look(standing(&leg.relay, &leg.feed))).collect()
    }

    /// Notes that the session of a relay sends a leg; false if it was not asked, or says nothing new.
    pub fn opened(&mut self, relay: &SiteName, session: u64, open: RelayLegOpen) -> bool {
        let Some(leg) = self.asked(relay, session, open.leg) else { return false };
        let opened = State::Open { session, open };
        leg.fault = None;
        std::mem::replace(&mut leg.state, opened.clone()) != opened
    }

    /// Notes that the session of a relay does not send a leg. It is not asked again; it reports the leg as open once
    /// it sends it.
    pub fn failed(&mut self, relay: &SiteName, session: u64, id: LegId, sentence: &str) -> Vec<RelayStep> {
        let Some(leg) = self.asked(relay, session, id) else { return Vec::new() };
        leg.state = State::Asked { session };
        let sentence = format!("relay {relay} does not send leg {} of feed {}: {sentence}", id.0, leg.feed);
        let fault = leg.complain(sentence);
        std::iter::once(RelayStep::Close(id)).chain(fault).collect()
    }

    /// The leg, if this session of its relay was asked to send it.
    fn asked(&mut self, relay: &SiteName, session: u64, leg: LegId) -> Option<&mut RelayedLeg> {
        let is_asked = |leg: &RelayedLeg| leg.relay == *relay && leg.state.session() == Some(session);
        self.0.get_mut(&leg).filter(|leg| is_asked(leg))
    }
}

impl RelayedLeg {
    fn look(&mut self, standing: RelayStanding) -> Vec<RelayStep> {
        let (session, fault) = match standing {
            Ok(session) => (session, None),
            Err(sentence) => (None, self.complain(sentence)),
        };
        let recounted = std::mem::take(&mut self.recounted);
        if self.state.session() == session {
            let again = session.filter(|_| recounted).map(|session| self.ask(session));
            return again.into_iter().chain(fault).collect();
        }
        let was_asked = self.state != State::Closed;
        self.state = session.map_or(State::Closed, |session| State::Asked { session });
        let end = was_asked.then_some(RelayStep::End(self.message.leg));
        let ask = session.map(|session| self.ask(session));
        end.into_iter().chain(ask).chain(fault).collect()
    }

    fn ask(&self, session: u64) -> RelayStep {
        RelayStep::Ask { relay: self.relay.clone(), session, message: self.message.clone() }
    }

    fn complain(&mut self, sentence: String) -> Option<RelayStep> {
        if self.fault.as_ref() == Some(&sentence) {
            return None;
        }
        self.fault = Some(sentence.clone());
        Some(RelayStep::Fault { feed: self.feed.clone(), sentence })
    }
}

impl State {
    fn session(&self) -> Option<u64> {
        match self {
            Self::Closed => None,
            Self::Asked { session } | Self::Open { session, .. } => Some(*session),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEG: LegId = LegId(7);

    fn campus() -> SiteName {
        SiteName::parse("campus").unwrap()
    }

    fn feed() -> FeedName {
        FeedName::parse("A").unwrap()
    }

    fn message() -> RelayLeg {
        RelayLeg { leg: LEG, group: "239.0.0.1".to_owned(), port: 5, rate_bps: 9, hops: 32, unicast: None }
    }

    fn open() -> RelayLegOpen {
        RelayLegOpen { leg: LEG, source: "10.0.0.9".to_owned(), mtu_bytes: Some(1_400) }
    }

    fn ask(session: u64) -> RelayStep {
        RelayStep::Ask { relay: campus(), session, message: message() }
    }

    fn legs() -> RelayedLegs {
        let mut legs = RelayedLegs::default();
        legs.begin(campus(), feed(), message());
        legs
    }

    fn look(legs: &mut RelayedLegs, standing: RelayStanding) -> Vec<RelayStep> {
        legs.look(|relay, of| {
            assert_eq!((relay, of), (&campus(), &feed()));
            standing.clone()
        })
    }

    #[test]
    fn each_session_is_asked_once_and_the_leg_is_open_from_its_answer_to_its_end() {
        let mut legs = legs();
        assert_eq!(look(&mut legs, Ok(None)), []);
        assert_eq!(look(&mut legs, Ok(Some(3))), [ask(3)]);
        assert_eq!((look(&mut legs, Ok(Some(3))), legs.is_open(LEG)), (vec![], false));
        assert!(legs.opened(&campus(), 3, open()) && legs.is_open(LEG));
        assert!(!legs.opened(&campus(), 3, open()), "it is no news");
        assert_eq!(look(&mut legs, Ok(None)), [RelayStep::End(LEG)]);
        assert!(!legs.is_open(LEG) && !legs.opened(&campus(), 3, open()), "that session has ended");
        assert_eq!(look(&mut legs, Ok(Some(4))), [ask(4)]);
        legs.opened(&campus(), 4, open());
        assert_eq!(look(&mut legs, Ok(Some(5))), [RelayStep::End(LEG), ask(5)], "a newer session");
        assert_eq!((legs.relay_of(LEG), legs.relay_of(LegId(8))), (Some(&campus()), None));
        legs.end(LEG);
        assert!(look(&mut legs, Ok(Some(6))).is_empty());
    }

    #[test]
    fn a_feed_that_is_not_granted_is_refused_with_one_sentence() {
        let mut legs = legs();
        look(&mut legs, Ok(Some(3)));
        legs.opened(&campus(), 3, open());
        let fault = RelayStep::Fault { feed: feed(), sentence: "no".to_owned() };
        assert_eq!(look(&mut legs, Err("no".to_owned())), [RelayStep::End(LEG), fault]);
        assert_eq!(look(&mut legs, Err("no".to_owned())), [], "it was said");
        assert_eq!(look(&mut legs, Ok(Some(3))), [ask(3)], "the feed was granted");
    }

    #[test]
    fn a_failed_leg_is_closed_and_opens_when_the_relay_says_so() {
        let mut legs = legs();
        look(&mut legs, Ok(Some(3)));
        let sentence = "relay campus does not send leg 7 of feed A: no interface".to_owned();
        let fault = RelayStep::Fault { feed: feed(), sentence };
        assert_eq!(legs.failed(&campus(), 3, LEG, "no interface"), [RelayStep::Close(LEG), fault]);
        assert_eq!(legs.failed(&campus(), 3, LEG, "no interface"), [RelayStep::Close(LEG)]);
        assert_eq!(look(&mut legs, Ok(Some(3))), [], "it knows the leg");
        assert!(legs.opened(&campus(), 3, open()));
    }

    #[test]
    fn a_relay_that_sends_by_unicast_hears_of_each_new_number_of_sites() {
        let line = |sites: &[&str]| -> LegLine {
            serde_json::from_value(serde_json::json!({
                "leg": 7, "transport": "multicast", "sites": sites, "group": "239.0.0.1", "port": 5,
                "rate_bps": 9, "relay": "campus", "fan_out": "unicast",
            }))
            .unwrap()
        };
        let pass = FanOutPass([3; 32]);
        let asks = |sites| RelayStep::Ask {
            relay: campus(),
            session: 3,
            message: RelayLeg { unicast: Some(UnicastFanOut { sites, pass: pass.clone() }), ..message() },
        };
        let mut plans = Plans::<()>::default();
        plans.begin_relayed(&feed(), &line(&["oslo"]), Some(pass.clone()));
        let legs = plans.relayed_mut();
        assert_eq!(look(legs, Ok(Some(3))), [asks(1)]);
        legs.opened(&campus(), 3, open());
        legs.recount(&line(&["oslo", "bergen"]));
        assert_eq!(look(legs, Ok(Some(3))), [asks(2)]);
        assert!(legs.is_open(LEG), "it goes on meanwhile");
        legs.recount(&line(&["oslo", "bergen"]));
        assert_eq!(look(legs, Ok(Some(3))), [], "it is no news");
        let mut groups = self::legs();
        groups.recount(&line(&["oslo", "bergen"]));
        assert_eq!(look(&mut groups, Ok(Some(3))), [ask(3)], "a group has no number of sites");
    }

    #[test]
    fn another_site_and_another_session_change_nothing() {
        let mut legs = legs();
        look(&mut legs, Ok(Some(3)));
        let oslo = SiteName::parse("oslo").unwrap();
        assert!(!legs.opened(&oslo, 3, open()) && !legs.opened(&campus(), 2, open()));
        assert!(legs.failed(&oslo, 3, LEG, "no").is_empty());
        assert!(!legs.opened(&campus(), 3, RelayLegOpen { leg: LegId(8), ..open() }));
    }
}
