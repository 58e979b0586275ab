//! The groups that a relay has joined.
use std::collections::BTreeMap;
use std::io;

use downburst_amt::{Change, Channel};
use socket2::{Domain, Protocol, Socket, Type};

use crate::udp::{self, Interface};

/// A socket for each channel: a single one could join no more than the system allows to it (twenty). Nothing is read
/// from them.
pub(super) struct Joins {
    interface: u32,
    sockets: BTreeMap<Channel, Option<Socket>>,
}

impl Joins {
    pub(super) fn new(interface: &Interface) -> Self {
        Self { interface: interface.index, sockets: BTreeMap::new() }
    }

    /// A channel that can't be joined stays silent; its gateways go to another relay or hear nothing.
    pub(super) fn follow(&mut self, change: Change) {
        match change {
            Change::Join(channel) => {
                let joined = self.join(channel);
                match &joined {
                    Ok(_) => tracing::info!(group = %channel.group, source = shown(channel), "group joined"),
                    Err(error) => tracing::warn!(group = %channel.group, %error, "the group can't be joined"),
                }
                self.sockets.insert(channel, joined.ok());
            }
            Change::Leave(channel) => {
                self.sockets.remove(&channel);
                tracing::info!(group = %channel.group, source = shown(channel), "group left");
            }
        }
    }

    fn join(&self, channel: Channel) -> io::Result<Socket> {
        let domain = if channel.group.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        udp::join(&socket, channel.group, channel.source, self.interface)?;
        Ok(socket)
    }
}

fn shown(channel: Channel) -> String {
    channel.source.map_or("any".to_owned(), |source| source.to_string())
}
