use super::HubSession;
use crate::Ways;

impl HubSession {
    /// Takes the whole set and sends it to the site if it changed.
    pub(super) fn set_ways(&mut self, chains: Vec<String>) {
        self.terms.ways = chains;
        if self.is_active() {
            self.tell_ways();
        }
    }

    /// A site that hears of none before its first subscriptions has none.
    pub(super) fn tell_ways(&mut self) {
        if self.terms.ways != self.last_sent.ways {
            self.last_sent.ways.clone_from(&self.terms.ways);
            self.send(Ways { chains: self.terms.ways.clone() });
        }
    }
}
