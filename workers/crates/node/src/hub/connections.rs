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
