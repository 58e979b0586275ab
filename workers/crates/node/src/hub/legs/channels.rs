//! Repair channels: the site of each channel, and the threads that carry their datagrams.
//!
//! One thread for each address reads requests, acknowledges them, and passes them to the legs; one thread
//! seals and sends the repairs of all legs, so that no leg waits for a socket. Nothing is sent to a peer that
//! has not proved with a request that it has the channel's key, and a repair goes to the source of the latest
//! request.
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, bounded};
use downburst_hub::ChannelTable;
use downburst_model::LegId;
use downburst_vcmtp::{Cipher, Heard, HubChannel, RepairChannel, Request, channel_of};

use crate::hub::{Hub, lock};
use crate::udp::{Buffers, ChannelSocket, Peer};

/// All repair channels of a hub.
#[derive(Default)]
pub(in crate::hub) struct Channels {
    open: Mutex<ChannelTable<Arc<Channel>>>,
    /// The ports that receive requests, and the queue of repairs; empty until [`serve`](Self::serve).
    served: OnceLock<Served>,
}

struct Served {
    ports: Vec<u16>,
    repairs: Sender<Repair>,
}

/// One site's channel of one leg.
pub(in crate::hub) struct Channel {
    end: Mutex<End>,
    take: Take,
}

/// Passes a request to the leg.
type Take = Box<dyn Fn(&Arc<Channel>, Request) + Send + Sync>;

struct End {
    machine: HubChannel,
    /// The address of the site, once it has proved that it has the key.
    site: Option<(Arc<ChannelSocket>, Peer)>,
}

struct Repair {
    channel: Arc<Channel>,
    packet: u64,
    payload: Bytes,
}

impl Channels {
    /// Opens the ports at the addresses for sites; if a port is unavailable, its sites are repaired over their
    /// sessions.
    pub(in crate::hub) fn serve(hub: &Arc<Hub>, addresses: &[SocketAddr]) {
        let (repairs, repair_stream) = bounded(REPAIR_QUEUE);
        let mut ports = Vec::new();
        for address in addresses {
            match serve_at(hub, *address) {
                Ok(()) => ports.push(address.port()),
                Err(error) => hub.fault(
                    format!("UDP {address} can't be used, repairs of multicast legs go by sessions: {error}; free \
                        that port"),
                    None,
                ),
            }
        }
        let writer =
            std::thread::Builder::new().name("repairs".to_owned()).spawn(move || send(&repair_stream));
        match writer {
            Ok(_) => drop(hub.legs.channels.served.set(Served { ports, repairs })),
            Err(error) => hub.fault(format!("no thread for repairs: {error}; they go by sessions"), None),
        }
    }

    /// Draws a channel for a site that is offered a leg. Each offer gets a channel of its own, because packet
    /// counters start with the channel; the session fills in the port.
    pub(in crate::hub) fn draw(
        &self,
        session: u64,
        leg: LegId,
        cipher: Cipher,
        take: impl Fn(&Arc<Channel>, Request) + Send + Sync + 'static,
    ) -> Option<RepairChannel> {
        self.served.get()?;
        let mut secret = [0; 32];
        let mut number = [0; 4];
        getrandom::fill(&mut secret).and_then(|()| getrandom::fill(&mut number)).ok()?;
        let key = RepairChannel { id: u32::from_be_bytes(number), port: 0, secret, cipher };
        let end = Mutex::new(End { machine: HubChannel::new(&key), site: None });
        let channel = Arc::new(Channel { end, take: Box::new(take) });
        let is_in_use = |channel: &Arc<Channel>| lock(&channel.end).site.is_some();
        lock(&self.open).open(key.id, (session, leg), channel, is_in_use).then_some(key)
    }

    /// True if this port receives requests.
    pub(in crate::hub) fn hears(&self, port: u16) -> bool {
        self.served.get().is_some_and(|served| served.ports.contains(&port))
    }

    /// Removes the channels of a session that ended.
    pub(in crate::hub) fn forget(&self, session: u64) {
        lock(&self.open).forget(session);
    }

    /// Sends a packet to a site; a full queue drops it, and the site requests it again.
    pub(in crate::hub) fn repair(&self, channel: Arc<Channel>, packet: u64, payload: Bytes) {
        if let Some(served) = self.served.get() {
            let _ = served.repairs.try_send(Repair { channel, packet, payload });
        }
    }

    fn find(&self, datagram: &[u8]) -> Option<Arc<Channel>> {
        lock(&self.open).find(channel_of(datagram)?).cloned()
    }
}

fn serve_at(hub: &Arc<Hub>, address: SocketAddr) -> std::io::Result<()> {
    let socket = Arc::new(ChannelSocket::bind(address)?);
    let hub = Arc::downgrade(hub);
    std::thread::Builder::new().name("requests".to_owned()).spawn(move || read(&hub, &socket))?;
    Ok(())
}

fn read(hub: &Weak<Hub>, socket: &Arc<ChannelSocket>) {
    let mut buffers = Buffers::default();
    while let Some(hub) = hub.upgrade() {
        let heard = socket.receive(&mut buffers, PATIENCE_MS, |datagram, peer| {
            if let Some(channel) = hub.legs.channels.find(&datagram) {
                channel.hear(&hub, socket, datagram, peer);
            }
        });
        if let Err(error) = heard {
            tracing::debug!(%error, "a read of requests failed");
        }
        if *hub.stopping.borrow() {
            return;
        }
    }
}

impl Channel {
    fn hear(self: &Arc<Self>, hub: &Hub, socket: &Arc<ChannelSocket>, datagram: Bytes, peer: Peer) {
        let Heard { request, answer, newest } = {
            let mut end = lock(&self.end);
            let Some(heard) = end.machine.hear(hub.clock.monotonic(), datagram) else { return };
            if heard.newest || end.site.is_none() {
                end.site = Some((Arc::clone(socket), peer));
            }
            heard
        };
        // A request that was overtaken is answered at its source, but does not change the site's address.
        let sent = socket.send(peer, &answer);
        tracing::trace!(newest, failed = sent.is_err(), "a request was heard");
        if let Some(request) = request {
            (self.take)(self, request);
        }
    }
}

fn send(repairs: &Receiver<Repair>) {
    for Repair { channel, packet, payload } in repairs {
        let mut end = lock(&channel.end);
        let Some((socket, peer)) = end.site.clone() else { continue };
        let Some(datagram) = end.machine.repair(packet, &payload) else { continue };
        drop(end);
        if let Err(error) = socket.send_patiently(peer, &datagram) {
            tracing::debug!(%error, "a repair could not be sent");
        }
    }
}

/// The queue of repairs to the socket: 6 MB.
const REPAIR_QUEUE: usize = 4_096;

const PATIENCE_MS: u16 = 200;
