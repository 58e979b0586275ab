//! What a session does when the group has flooded its site's link: what TCP learnt of the path meanwhile is forgotten.
use downburst_hub::Sight;

use super::Session;
use crate::hub::accept::Counted;
use crate::hub::session_socket::SessionSocket;
use downburst_hub::PathFacts;

impl Session {
    /// As long as the flood lasts, the connections check each second whether it is over: they retransmit, and
    /// find out anew how much their path carries. No other traffic is on that path. The last check is after a
    /// second without loss.
    pub(super) fn look_after_flood(&mut self, socket: &SessionSocket) {
        let now = self.hub.clock.monotonic();
        if self.flood.due().is_none_or(|due| due > now) {
            return;
        }
        let facts = socket.path_facts().into_iter().chain(self.streams.links.path_facts());
        let resent = facts.reduce(PathFacts::with).map_or(0, |facts| facts.resent_segments);
        let waits = self.connections(socket).any(Counted::waits_to_resend);
        let sight = self.flood.look(now, resent, waits);
        for connection in self.connections(socket) {
            connection.try_again_each_second(matches!(sight, Sight::Flooded | Sight::StillFlooded));
            if matches!(sight, Sight::StillFlooded | Sight::Over) {
                connection.measure_anew();
            }
        }
    }

    fn connections<'a>(&'a self, socket: &'a SessionSocket) -> impl Iterator<Item = &'a Counted> {
        std::iter::once(socket.connection()).chain(self.streams.links.connections())
    }
}
