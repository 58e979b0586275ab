//! The carrier of a probe's steps.
use std::io;

use downburst_probe::Step;

use super::{Counter, Port, Sending, Stream};

/// One end of a probe at a constant rate or of a sweep.
pub(crate) enum Way {
    Udp(Port),
    Tcp(Stream),
}

impl Way {
    /// The number of this node's port.
    pub(crate) fn number(&self) -> io::Result<u16> {
        match self {
            Self::Udp(port) => port.number(),
            Self::Tcp(stream) => Ok(stream.number()),
        }
    }

    /// The name of its protocol.
    pub(crate) fn protocol(&self) -> &'static str {
        match self {
            Self::Udp(_) => "UDP",
            Self::Tcp(_) => "TCP",
        }
    }

    /// The bytes of each frame on the wire.
    pub(crate) fn frame_bytes(&self) -> u64 {
        match self {
            Self::Udp(port) => port.frame_bytes(),
            Self::Tcp(stream) => stream.frame_bytes(),
        }
    }

    /// True if the packets go by IPv6.
    pub(crate) fn is_ipv6(&self) -> bool {
        match self {
            Self::Udp(port) => port.is_ipv6(),
            Self::Tcp(stream) => stream.is_ipv6(),
        }
    }

    /// Waits until the site has shown its address.
    pub(crate) async fn hears(&self) {
        match self {
            Self::Udp(port) => port.hears().await,
            Self::Tcp(stream) => stream.hears().await,
        }
    }

    /// Counts this step from now on.
    pub(crate) fn count(&self, number: u16, step: Step) {
        match self {
            Self::Udp(port) => port.count(number, step),
            Self::Tcp(stream) => stream.count(number, step),
        }
    }

    /// The count of the step.
    pub(crate) fn counter(&self) -> &Counter {
        match self {
            Self::Udp(port) => port.counter(),
            Self::Tcp(stream) => stream.counter(),
        }
    }

    /// Sends a step from a thread of its own.
    pub(crate) fn send(&self, number: u16, step: Step) -> io::Result<Sending> {
        match self {
            Self::Udp(port) => port.send(number, step),
            Self::Tcp(stream) => stream.send(number, step),
        }
    }
}
