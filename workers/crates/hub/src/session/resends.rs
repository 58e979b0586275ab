//! Resends of stored products to the site.
use downburst_model::Now;
use downburst_session::HubInput;

use super::Session;
use super::api::{HubFacts, ResendRead, SessionOutput};

impl Session {
    /// Requests the positions of all resends in the present logs.
    pub(super) fn find_resends(&mut self, hub: &dyn HubFacts) {
        if self.identity.site.is_some() {
            let line = self.line(hub).map(|line| self.part_of(line));
            let lines = line.map(|line| line.resends).unwrap_or_default();
            self.ask(SessionOutput::FindResends(lines));
        }
    }

    /// A closed feed reveals nothing about its content. The protocol repeats a failed read.
    pub(super) fn resend_is_read(&mut self, now: Now, read: ResendRead) {
        let ResendRead { resend, feed, after, read } = read;
        let (entries, read_to) = match read {
            Ok(read) => {
                self.reads.resends_are_well();
                read
            }
            Err(fault) => {
                self.resend_failed(feed, fault);
                (Vec::new(), after)
            }
        };
        self.tell(now, HubInput::ResendEntries { resend, entries, after, read_to });
    }
}
