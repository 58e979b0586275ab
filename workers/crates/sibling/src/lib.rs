//! Repair between sites (decision 73): a site that holds products gives them to a sibling that lacks them.
//!
//! [`Desk`] is the giving role: grants of the hub, each for one connection of one sibling, and the ceiling of
//! uploads. [`Taking`] is the taking role: it accepts exactly the products that the hub described, and lets the last
//! bytes of each pass only if its digest is right. Neither has sockets, clocks or logs: the `node` crate drives them.
#![forbid(unsafe_code)]

mod ceiling;
mod desk;
mod taking;
mod wire;

pub use ceiling::Spent;
pub use desk::{Answer, Desk, GRANT_LIFE, Owner, Transfer, TransferId};
pub use taking::{Piece, Rubbish, Taken, Taking};
pub use wire::{REQUEST_BYTES, Refusal, end, lacks, product, refused, request, ticket_of};
