//! The way of a leg's datagrams out of the hub: a socket of their group, or the session of a relay.
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;

use super::relay::{RelayOutlet, Route};
use crate::hub::Hub;
use crate::lines::{Failure, LegLine};
use crate::udp::{GroupSender, Outlet};

/// Where a leg's datagrams go.
pub(in crate::hub) struct LegOutlet {
    way: Way,
    /// The last send failed, and that was reported.
    failed: bool,
}

enum Way {
    Group(Box<GroupSender>),
    Relay(RelayOutlet),
}

impl LegOutlet {
    pub(super) fn open(hub: &Hub, line: &LegLine, group: SocketAddr) -> Result<Self, Failure> {
        if line.relay.is_some() {
            let way = Way::Relay(RelayOutlet::new(line.leg, line.rate_bps));
            return Ok(Self { way, failed: false });
        }
        let own =
            if line.interface.is_empty() { &hub.start.network.multicast_interface } else { &line.interface };
        let outlet = Outlet { interface: own.clone(), hops: line.hops, offload: line.offload };
        let socket = GroupSender::open(group, &outlet).map_err(|error| {
            let sentence = format!(
                "the multicast leg to {group} can't be opened: {error}; check the hub's multicast interface"
            );
            Failure::new("io", sentence)
        })?;
        Ok(Self { way: Way::Group(Box::new(socket)), failed: false })
    }

    /// The longest IP packet that is not fragmented, as far as this host knows.
    pub(super) fn mtu_bytes(&self) -> Option<u64> {
        match &self.way {
            Way::Group(socket) => socket.mtu_bytes(),
            Way::Relay(_) => None,
        }
    }

    /// The source address of the datagrams; a relay's is known once it sends the leg.
    pub(super) fn source(&self) -> Option<String> {
        match &self.way {
            Way::Group(socket) => Some(socket.source().to_string()),
            Way::Relay(_) => None,
        }
    }

    /// The way in use, for operators.
    pub(super) fn path(&self) -> String {
        match &self.way {
            Way::Group(socket) => socket.path(),
            Way::Relay(_) => "by the session of a relay".to_owned(),
        }
    }

    /// The route to the relay, if there is one.
    pub(super) fn route(&self) -> Option<Arc<Route>> {
        match &self.way {
            Way::Group(_) => None,
            Way::Relay(relay) => Some(relay.route()),
        }
    }

    /// False while the datagrams go nowhere.
    pub(super) fn is_open(&self) -> bool {
        match &self.way {
            Way::Group(_) => true,
            Way::Relay(relay) => relay.is_open(),
        }
    }

    pub(super) fn push(&mut self, datagram: BytesMut) -> io::Result<()> {
        match &mut self.way {
            Way::Group(socket) => socket.push(datagram),
            Way::Relay(relay) => {
                relay.push(datagram);
                Ok(())
            }
        }
    }

    /// Sends the datagrams that wait for a longer train.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match &mut self.way {
            Way::Group(socket) => socket.flush(),
            Way::Relay(relay) => {
                relay.flush();
                Ok(())
            }
        }
    }

    /// The error of a send, unless the last one failed, too.
    pub(super) fn is_news(&mut self, sent: io::Result<()>) -> Option<io::Error> {
        let before = std::mem::replace(&mut self.failed, sent.is_err());
        sent.err().filter(|_| !before)
    }
}
