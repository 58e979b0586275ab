//! Legs that relays send: they open and end with the sessions and rights of relays, and sites follow.
use downburst_hub::{RelayStanding, RelayStep, SessionInput};
use downburst_model::{FeedName, LegId, SiteName};
use downburst_session::{HubInput, RelayLegFailed, RelayLegOpen};

use crate::hub::legs::leg::{Leg, RelayLink};
use crate::hub::legs::plans::Plans;
use crate::hub::roster::Command;
use crate::hub::{Hub, lock};

impl Hub {
    /// Handles a relay that connected, left, or got other rights: its legs open and end, and sites follow.
    pub(in crate::hub) fn look_at_relays(&self) {
        let mut plans = lock(&self.legs.plans);
        if self.step_relays(&mut plans) {
            self.place_misplaced(&plans);
        }
    }

    /// Takes the steps that the standing of relays demands; true if there were any.
    pub(in crate::hub) fn step_relays(&self, plans: &mut Plans) -> bool {
        let steps = plans.relayed_mut().look(|relay, feed| self.standing(relay, feed));
        let any = !steps.is_empty();
        steps.into_iter().for_each(|step| self.step_relay(plans, step));
        any
    }

    /// Has the sites join a leg that its relay sends now.
    pub(in crate::hub) fn relay_leg_opened(&self, relay: &SiteName, session: u64, open: RelayLegOpen) {
        let mut plans = lock(&self.legs.plans);
        let Some(handle) = self.roster.session(relay).filter(|handle| handle.serial == session) else {
            return;
        };
        if !plans.relayed_mut().opened(relay, session, open.clone()) {
            return;
        }
        tracing::info!(leg = open.leg.0, %relay, source = open.source, "a relay sends a leg");
        if let Some(leg) = plans.find(open.leg) {
            leg.route_by(RelayLink { session: handle, open });
        }
        self.place_misplaced(&plans);
    }

    /// Has the sites leave a leg that its relay does not send.
    pub(in crate::hub) fn relay_leg_failed(&self, relay: &SiteName, session: u64, failed: &RelayLegFailed) {
        let mut plans = lock(&self.legs.plans);
        let steps = plans.relayed_mut().failed(relay, session, failed.leg, &failed.sentence);
        steps.into_iter().for_each(|step| self.step_relay(&plans, step));
        self.place_misplaced(&plans);
    }

    /// Notes datagrams that found no room on the way to a relay: sites request what they miss.
    pub(in crate::hub) fn relay_dropped(&self, relay: &SiteName, leg: LegId, datagrams: u64) {
        let mut dropped = lock(&self.legs.relay_dropped);
        let dropped = dropped.entry(leg).or_default();
        if *dropped == 0 {
            tracing::warn!(leg = leg.0, %relay, "the connection to a relay is slower than its leg, and loses packets");
        }
        *dropped += datagrams;
    }

    fn standing(&self, relay: &SiteName, feed: &FeedName) -> RelayStanding {
        if !self.roster.may_take(relay, feed) {
            return Err(format!(
                "relay {relay} is not granted feed {feed}, and gets none of its legs; grant it the feed, or take the \
                 relay out of the plan"
            ));
        }
        let handle = self.roster.session(relay).filter(|handle| !handle.stand_by);
        Ok(handle.map(|handle| handle.serial))
    }

    fn step_relay(&self, plans: &Plans, step: RelayStep) {
        match step {
            RelayStep::Ask { relay, session, message } => {
                if let Some(handle) = self.roster.session(&relay).filter(|handle| handle.serial == session) {
                    let input = SessionInput::Pass(HubInput::RelayLeg(message));
                    let _ = handle.commands.send(Command::Tell(input));
                }
            }
            RelayStep::End(leg) => {
                let dropped = lock(&self.legs.relay_dropped).remove(&leg).unwrap_or_default();
                tracing::info!(leg = leg.0, dropped, "a relay ends a leg");
                plans.find(leg).into_iter().for_each(Leg::end_route);
            }
            RelayStep::Close(leg) => plans.find(leg).into_iter().for_each(Leg::close_route),
            RelayStep::Fault { feed, sentence } => self.fault(sentence, Some(&feed)),
        }
    }
}
