//! A file by multicast in trains of datagrams, with nothing that could repair a loss.
//!
//! The physical limit beside which a protocol is measured: GSO and GRO, `recvmmsg`, one `pwritev` per train, buffers so
//! large that a receiver may fall behind by the whole file. With `--seal` and `--hash` it does the arithmetic that a
//! product needs too: AES-256-GCM per datagram and BLAKE3 of the whole.

mod packet;
mod receive;
mod send;

use crate::Outcome;

/// The two ends.
#[derive(clap::Subcommand)]
pub(crate) enum Blast {
    /// Send a file to a group and print when the first train left.
    Send(send::Send),
    /// Say `ready`, receive a file of known size, and print what came.
    Receive(receive::Receive),
}

impl Blast {
    /// Sends or receives.
    pub(crate) fn run(&self) -> Outcome {
        match self {
            Self::Send(send) => send.run(),
            Self::Receive(receive) => receive.run(),
        }
    }
}
