//! VCMTP: reliable multicast of products, as protocol machines without sockets, clock or threads.
//!
//! A [`Sender`] turns products into paced, sealed datagrams for the group; each site runs a [`Receiver`].
//! Every datagram has a dense packet number in the life of its leg (its *leg epoch*), so that a receiver sees
//! its losses immediately and asks for them as merged ranges while the multicast goes on. Losses of one site
//! travel to it alone, by its session; common ones go to the group as coded symbols. The manifest (product,
//! its bytes, the product before) is part of the multicast, so that nothing per product and site crosses a
//! session.
#![forbid(unsafe_code)]

mod api;
mod blocks;
mod catalogue;
mod channel;
mod code;
mod frequent_requesters;
mod head_schedule;
mod key_ring;
mod lag;
mod leg_rate;
mod loss_reports;
mod missing;
mod notice;
mod pacer;
mod parity;
mod payload;
mod payload_store;
mod pending_repairs;
mod proof;
mod proof_filter;
mod proof_signature;
mod queue;
mod receiver;
mod reordering;
mod repairs;
mod request;
mod rotation;
mod seal;
mod sender;
mod share;
mod shared_losses;
mod suppression;
mod symbol;
mod window;

pub use api::{
    Cipher, LegKey, ReceiverConfig, ReceiverInput, ReceiverOutput, ReceiverStats, SenderConfig, SenderInput,
    SenderKey, SenderOutput, SenderStats, SigningSeed, SiteSecret,
};
pub use channel::{Heard, HubChannel, RepairChannel, channel_of};
pub use leg_rate::{LegRate, Straggler};
pub use receiver::Receiver;
pub use request::{Losses, Request, SymbolsHeard};
pub use rotation::{Rotation, RotationInput, RotationOutput, Urgency};
pub use sender::Sender;
