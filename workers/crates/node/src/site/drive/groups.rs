//! Groups and repair channels of legs: joined as the machine asks, and what they bring told to it.
use downburst_session::{LegJoin, SiteInput};

use super::Site;
use crate::site::asks::Asks;
use crate::site::group::{Found, Group, What};

impl Site {
    pub(super) fn join(&mut self, join: &LegJoin) {
        match Group::join(join, &self.local_address, self.reading, self.found_sender.clone()) {
            Ok((group, reception)) => {
                self.groups.insert(join.leg, group);
                let asks = Asks::open(join, &self.peer_address, self.answer_sender.clone());
                self.asks.extend(asks.map(|asks| (join.leg, asks)));
                self.tell(SiteInput::GroupJoined { leg: join.leg, reception });
            }
            Err(reason) => {
                tracing::warn!("{reason}");
                self.tell(SiteInput::JoinFailed { leg: join.leg, reason });
            }
        }
    }

    /// The hub's answers go first: they came while the batch waited.
    pub(super) fn found(&mut self, found: Found) {
        while let Ok(Found { leg, what: What::Datagrams(batch) }) = self.answers.try_recv() {
            self.tell(SiteInput::Datagrams { leg, batch });
        }
        let Found { leg, what } = found;
        self.tell(match what {
            What::Datagrams(batch) => SiteInput::Datagrams { leg, batch },
            What::Deaf(reason) => SiteInput::Deaf { leg, reason },
        });
    }
}
