//! The site and the role of each peer.
use std::collections::BTreeMap;
use std::net::SocketAddr;

use downburst_host::TcpSocket;
use downburst_model::{SiteName, WallMicros};
use downburst_tracer::{Connection, Role, Sample};

/// Peers of admitted connections.
#[derive(Debug, Default)]
pub(super) struct Known {
    peers: BTreeMap<SocketAddr, Peer>,
}

#[derive(Debug)]
struct Peer {
    local: SocketAddr,
    site: SiteName,
    role: Role,
    /// Looks since its connection was last seen.
    unseen: u32,
}

impl Known {
    pub(super) fn serves(&mut self, (local, peer): (SocketAddr, SocketAddr), site: &SiteName, role: Role) {
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        self.peers.insert(peer, Peer { local, site: site.clone(), role, unseen: 0 });
    }

    pub(super) fn site_at(&self, peer: SocketAddr) -> Option<SiteName> {
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        self.peers.get(&peer).map(|known| known.site.clone())
    }

    /// Both ends of each connection, the hub's first.
    pub(super) fn ends(&self) -> Vec<(SocketAddr, SocketAddr)> {
        self.peers.iter().map(|(peer, known)| (known.local, *peer)).collect()
    }

    /// The samples of a look, of admitted connections alone; peers whose connection is gone are forgotten.
    pub(super) fn of(&mut self, at: WallMicros, sockets: &[TcpSocket]) -> Vec<(Connection, Sample)> {
        self.peers.values_mut().for_each(|peer| peer.unseen += 1);
        let mut samples = Vec::with_capacity(self.peers.len());
        for TcpSocket { local, peer, info, .. } in sockets {
            let Some(known) = self.peers.get_mut(peer) else { continue };
            known.unseen = 0;
            let (site, role) = (Some(known.site.clone()), known.role);
            samples.push((Connection { local: *local, peer: *peer, site, role }, Sample::read(at, info)));
        }
        self.peers.retain(|_, peer| peer.unseen < FORGOTTEN_AFTER);
        samples
    }
}

/// A connection that was admitted during a look is seen by the next one.
const FORGOTTEN_AFTER: u32 = 3;
