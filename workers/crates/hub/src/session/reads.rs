//! Reading logs for a session: a failed read is repeated, and never treated as an empty log; numbers whose products
//! a log has forgotten are reported.
use std::collections::BTreeMap;
use std::sync::Arc;

use downburst_model::{FeedName, Micros, Now};
use downburst_session::{HubInput, Stretch};

use super::api::{ReadFault, ReadRequest, SessionOutput};
use super::{Report, Session};

/// Failed reads, and numbers whose products a log no longer knows.
#[derive(Default)]
pub(super) struct Reads {
    again: Vec<(Micros, ReadRequest)>,
    bad_resend_reads: u32,
    forgotten: BTreeMap<FeedName, Forgotten>,
}

/// Numbers of a feed that the site lacks and the log has forgotten.
#[derive(Default)]
struct Forgotten {
    first: u64,
    last: u64,
    count: u64,
}

impl Reads {
    pub(super) fn due(&self) -> Option<Micros> {
        self.again.iter().map(|(at, _)| *at).min()
    }

    pub(super) fn resends_are_well(&mut self) {
        self.bad_resend_reads = 0;
    }
}

impl Session {
    pub(super) fn take_stretch(&mut self, now: Now, stretch: Arc<Stretch>) {
        self.note_forgotten(&stretch);
        self.tell(now, HubInput::Stretch(stretch));
    }

    /// Reports a failed read from time to time, and schedules its repetition if there is a site to read for.
    pub(super) fn read_failed(&mut self, now: Micros, request: ReadRequest, fault: ReadFault) {
        if let Some(sentence) = fault.filter(|_| request.failures.is_multiple_of(FAILURES_TOLD)) {
            let feed = Some(request.feed.clone());
            self.report(Report::Fault { sentence, feed, of_site: false });
        }
        if self.identity.site.is_some() {
            let again = ReadRequest { failures: request.failures.wrapping_add(1), ..request };
            self.reads.again.push((now.plus(AGAIN_AFTER), again));
        }
    }

    /// Repeats failed reads that are due.
    pub(super) fn read_again(&mut self, now: Micros) {
        while let Some(due) = self.reads.again.iter().position(|(at, _)| *at <= now) {
            let (_, request) = self.reads.again.swap_remove(due);
            self.ask(SessionOutput::Read(request));
        }
    }

    pub(super) fn resend_failed(&mut self, feed: FeedName, fault: ReadFault) {
        let Some(sentence) = fault else { return };
        if self.reads.bad_resend_reads.is_multiple_of(BAD_READS_TOLD) {
            self.report(Report::Fault { sentence, feed: Some(feed), of_site: false });
        }
        self.reads.bad_resend_reads = self.reads.bad_resend_reads.wrapping_add(1);
    }

    /// Counts the numbers of a stretch that the log has forgotten and the site lacks. They arrive in consecutive
    /// stretches; the report follows the last of these.
    fn note_forgotten(&mut self, stretch: &Stretch) {
        let settled = self.hub.settled_of(&stretch.feed);
        let forgotten = stretch.forgotten.zip(settled.filter(|(epoch, _)| *epoch == stretch.epoch));
        if let Some(((from, to), (_, settled))) = forgotten {
            let noted = self.reads.forgotten.entry(stretch.feed.clone()).or_default();
            for (first, last) in settled.gaps(from.0.max(noted.last.saturating_add(1)), to.0) {
                noted.first = if noted.count == 0 { first } else { noted.first };
                noted.last = last;
                noted.count += last - first + 1;
            }
        }
        let goes_on =
            stretch.forgotten.is_some_and(|(_, to)| to == stretch.read_to && !self.is_at_head(stretch));
        if !goes_on {
            self.report_forgotten(&stretch.feed);
        }
    }

    fn is_at_head(&self, stretch: &Stretch) -> bool {
        self.feeds.head(&stretch.feed).is_none_or(|head| stretch.read_to >= head)
    }

    fn report_forgotten(&mut self, feed: &FeedName) {
        let Some(Forgotten { first, last, count }) =
            self.reads.forgotten.remove(feed).filter(|it| it.count > 0)
        else {
            return;
        };
        let Some(site) = &self.identity.site else { return };
        let sentence = format!(
            "site {site} lacks {count} numbers of feed {feed}, between {first} and {last}, whose products this hub \
             has forgotten: the site was away longer than the feed's log remembers; products that it missed among \
             them do not come any more"
        );
        self.report(Report::Fault { sentence, feed: Some(feed.clone()), of_site: true });
    }
}

/// Long for a healthy disk, short for people who wait for it.
const AGAIN_AFTER: Micros = Micros::from_secs(1);

/// A lasting disk fault is reported each minute.
const FAILURES_TOLD: u32 = 60;

/// The protocol repeats a read every five seconds; a lasting disk fault is reported each minute.
const BAD_READS_TOLD: u32 = 12;
