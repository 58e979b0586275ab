use std::collections::BTreeMap;

use downburst_model::RangeSet;

use super::SiteSession;
use crate::frame::Message;
use crate::{ResentEnded, ResentFailed};

/// The reports to the hub about products of resends.
#[derive(Debug, Default)]
pub(crate) struct Resends {
    ended: Vec<ResentEnded>,
    failed: BTreeMap<u64, RangeSet>,
}

impl Resends {
    fn take(&mut self) -> impl Iterator<Item = Message> {
        let failed = std::mem::take(&mut self.failed).into_iter();
        let failed = failed.map(|(resend, sequences)| Message::from(ResentFailed { resend, sequences }));
        std::mem::take(&mut self.ended).into_iter().map(Message::from).chain(failed)
    }

    pub(super) fn end(&mut self, ended: ResentEnded) {
        self.ended.push(ended);
    }

    pub(super) fn fail(&mut self, resend: u64, number: u64) {
        self.failed.entry(resend).or_default().insert(number, number);
    }
}

impl SiteSession {
    pub(super) fn answer_resends(&mut self) {
        let answers: Vec<Message> =
            self.tracks.values_mut().flat_map(|track| track.resends.take().collect::<Vec<_>>()).collect();
        for answer in answers {
            self.send(answer);
        }
    }
}
