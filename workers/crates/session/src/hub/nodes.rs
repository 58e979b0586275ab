use super::HubSession;
use crate::Nodes;

impl HubSession {
    pub(super) fn tell_nodes(&mut self, nodes: Nodes) {
        let before = self.last_sent.nodes.as_ref();
        // A hub that was always one node reports that only to a standby site, which may be connected for this
        // information.
        let is_news = before.map_or(self.terms.stand_by || nodes != Nodes::default(), |told| *told != nodes);
        if self.takes_several_nodes() && is_news {
            self.send(nodes.clone());
            self.last_sent.nodes = Some(nodes);
        }
    }
}
