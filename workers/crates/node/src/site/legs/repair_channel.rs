//! The site's side of a leg's repair channel: a socket towards the hub.
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use downburst_model::LegId;
use downburst_session::LegJoin;
use downburst_site::LegNews;
use downburst_vcmtp::Datagram;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::arrived::Arrived;
use super::group::Found;
use crate::udp::connected;

/// Sends requests and receives repairs until it is dropped.
pub(super) struct RepairChannel {
    socket: Arc<UdpSocket>,
    reader: AbortHandle,
}

impl RepairChannel {
    /// Opens a socket to the hub at `peer`, if the hub offers a channel. Without it requests go unanswered, and the
    /// session carries them.
    pub(super) fn open(
        join: &LegJoin,
        peer: &str,
        arrived: Arrived,
        sender: mpsc::Sender<Found>,
    ) -> Option<Self> {
        let port = join.channel.as_ref()?.port;
        let mut hub: SocketAddr = peer.parse().ok()?;
        hub.set_port(port);
        match connect(hub) {
            Ok(socket) => {
                let reader =
                    tokio::spawn(read(join.leg, Arc::clone(&socket), arrived, sender)).abort_handle();
                Some(Self { socket, reader })
            }
            Err(error) => {
                tracing::warn!(leg = join.leg.0, %hub, %error, "no UDP to the hub; repairs go by the session");
                None
            }
        }
    }

    /// A datagram that can't be sent is lost, like any other.
    pub(super) fn send(&self, datagram: &[u8]) {
        let _ = self.socket.try_send(datagram);
    }
}

impl Drop for RepairChannel {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

fn connect(hub: SocketAddr) -> io::Result<Arc<UdpSocket>> {
    Ok(Arc::new(UdpSocket::from_std(connected(hub)?)?))
}

async fn read(leg: LegId, socket: Arc<UdpSocket>, arrived: Arrived, sender: mpsc::Sender<Found>) {
    let mut buffer = vec![0; LONGEST_BYTES];
    loop {
        // A host that refuses datagrams answers each with an error: to the channel they are simply unanswered.
        if socket.readable().await.is_err() {
            return;
        }
        let mut batch = Vec::new();
        while batch.len() < BATCH {
            match socket.try_recv(&mut buffer) {
                Ok(length) => {
                    arrived.datagram(length);
                    batch.push(Datagram::from(buffer.get(..length).unwrap_or_default()));
                }
                Err(_) => break,
            }
        }
        let found = Found { leg, news: LegNews::Datagrams(batch) };
        if sender.send(found).await.is_err() {
            return;
        }
    }
}

const BATCH: usize = 64;
const LONGEST_BYTES: usize = 65_536;
