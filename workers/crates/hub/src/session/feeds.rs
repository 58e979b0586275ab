//! The feeds of a session: their logs' states as passed to the protocol.
use std::collections::BTreeMap;

use downburst_model::{FeedName, Micros, Now, Sequence};
use downburst_session::HubInput;

use crate::look_pace::LookPace;

use super::api::{FeedStanding, HubFacts, SessionOutput};
use super::{Report, Session};

/// The states passed to the protocol, and the time of the next look.
#[derive(Default)]
pub(super) struct Feeds {
    told: BTreeMap<FeedName, FeedStanding>,
    pace: LookPace,
    /// The time of a due look at feeds that have grown.
    look_at: Option<Micros>,
}

impl Feeds {
    pub(super) fn due(&self) -> Option<Micros> {
        self.look_at
    }

    /// The last number of a feed's log that was passed to the protocol.
    pub(super) fn head(&self, feed: &FeedName) -> Option<Sequence> {
        self.told.get(feed).map(|told| told.head)
    }
}

impl Session {
    /// Watches the subscribed feeds from now on; all of them have to be passed to the protocol again.
    pub(super) fn watch(&mut self) {
        self.feeds.told.clear();
        self.ask(SessionOutput::Watch(self.subscribed.clone()));
    }

    /// Takes the state of all subscribed feeds that are open.
    pub(super) fn watched(&mut self, now: Now, standing: Vec<FeedStanding>, hub: &dyn HubFacts) {
        self.feeds.told.retain(|feed, _| standing.iter().any(|it| it.feed == *feed));
        self.grown(now, standing);
        self.follow_legs();
        self.arrive(now, hub);
    }

    /// Takes the state of feeds that may have grown.
    pub(super) fn grown(&mut self, now: Now, standing: Vec<FeedStanding>) {
        for standing in standing {
            let told = self.feeds.told.get_mut(&standing.feed);
            let (rule, has_deadline) = match told {
                Some(told) if *told == standing => continue,
                Some(told) => {
                    let rule = (told.rule != standing.rule).then_some(standing.rule);
                    let has_deadline = told.deadline_us != standing.deadline_us;
                    (told.epoch, told.head) = (standing.epoch, standing.head);
                    (told.unicast_leg, told.rule) = (standing.unicast_leg, standing.rule);
                    told.deadline_us = standing.deadline_us;
                    (rule, has_deadline)
                }
                None => {
                    self.feeds.told.insert(standing.feed.clone(), standing.clone());
                    (Some(standing.rule), true)
                }
            };
            let FeedStanding { feed, epoch, head, unicast_leg, deadline_us, .. } = standing;
            if let Some(rule) = rule {
                self.tell(now, HubInput::Duplicates { feed: feed.clone(), rule });
            }
            if has_deadline {
                self.tell(now, HubInput::Deadline { feed: feed.clone(), deadline_us });
            }
            self.tell(now, HubInput::Feed { feed, epoch, head, unicast_leg });
        }
    }

    /// Looks at the feeds that have grown, now or a little later together with others.
    pub(super) fn look(&mut self, now: Micros) {
        match self.feeds.pace.look(now) {
            Ok(()) => self.ask(SessionOutput::Look),
            Err(at) => self.feeds.look_at = Some(at),
        }
    }

    pub(super) fn look_if_due(&mut self, now: Micros) {
        if self.feeds.look_at.take_if(|at| *at <= now).is_some() {
            self.look(now);
        }
    }

    /// Reports the site's position in each feed to the hub.
    pub(super) fn report_settled(&mut self) {
        let settled: Vec<_> = self.settled().map(|(feed, epoch, it)| (feed.clone(), epoch, it)).collect();
        for (feed, epoch, settled) in settled {
            self.report(Report::Settled(feed, epoch, settled));
        }
    }

    /// Reports the site's position in one feed.
    pub(super) fn report_settled_of(&mut self, feed: &FeedName) {
        let settled = self.hub.settled_of(feed).filter(|_| !self.identity.stand_by);
        if let Some((epoch, settled)) = settled {
            self.report(Report::Settled(feed.clone(), epoch, settled));
        }
    }
}
