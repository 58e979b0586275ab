//! The site's exchange with its siblings.
use downburst_model::Now;
use downburst_session::HubInput;

use crate::site_config::sibling_terms;

use super::{HubFacts, Session};

impl Session {
    /// Applies a change of the site's exchange with siblings.
    pub(super) fn siblings_changed(&mut self, now: Now, hub: &dyn HubFacts) {
        if let Some(line) = self.line(hub) {
            self.tell(now, HubInput::SiblingTerms(sibling_terms(&line)));
        }
    }
}
