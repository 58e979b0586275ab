use super::HubSession;
use crate::{SiblingTerms, Ways};

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

    /// Takes the terms of the site's exchange with siblings and sends them to the site if they changed.
    pub(super) fn set_sibling_terms(&mut self, terms: SiblingTerms) {
        self.terms.siblings = terms;
        if !terms.on {
            self.set_refers(false);
        }
        if self.is_active() {
            self.tell_sibling_terms();
        }
    }

    /// A site that hears of none has no siblings.
    pub(super) fn tell_sibling_terms(&mut self) {
        if self.terms.siblings != self.last_sent.siblings {
            self.last_sent.siblings = self.terms.siblings;
            self.send(self.terms.siblings);
            if self.terms.siblings.on {
                self.await_port();
            }
        }
    }
}
