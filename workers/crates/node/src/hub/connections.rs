//! Sockets with sites: the listening port, and the bytes of their connections.
pub(super) mod accept;
pub(super) mod counted;
pub(super) mod data;
mod inbound;
pub(super) mod outbound;
pub(super) mod pending_connections;
pub(super) mod session_socket;

use std::net::SocketAddr;

use downburst_stamp_host::Reflecting;
use tokio_rustls::TlsAcceptor;

use crate::clock::Clock;
use crate::lines::{Failure, Start};
use crate::tls::HubIdentity;

/// The hub's entrance for sites.
pub(super) struct Entrance {
    /// The listening addresses for sites; circuits lead to the port of the first one, too.
    pub(super) places: Vec<SocketAddr>,
    pub(super) acceptor: TlsAcceptor,
    /// Fingerprint of this hub's own authority.
    pub(super) ca_sha256: String,
    /// Answers STAMP requests while the hub runs, if the operator wants it.
    pub(super) _reflecting: Option<Reflecting>,
}

impl Entrance {
    /// The entrance at these addresses; STAMP requests are answered where the operator wants it.
    pub(super) fn open(
        start: &Start,
        clock: Clock,
        places: Vec<SocketAddr>,
        identity: HubIdentity,
    ) -> Result<Self, Failure> {
        let listen = start.network.stamp_listen;
        let reflecting = listen.map(|at| Reflecting::start(Reflecting::modest(at, clock))).transpose();
        let _reflecting = reflecting.map_err(Failure::bad_request)?;
        let acceptor = TlsAcceptor::from(identity.config);
        Ok(Self { places, acceptor, ca_sha256: identity.ca_sha256, _reflecting })
    }
}
