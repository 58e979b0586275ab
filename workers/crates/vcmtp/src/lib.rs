//! VCMTP: reliable multicast of products, as protocol machines without sockets, clock or threads.
//!
//! A [`Sender`] turns products into paced, sealed datagrams for the group; each site runs a [`Receiver`].
//! Every datagram has a dense packet number in the life of its leg (its *leg epoch*), so that a receiver
//! detects its losses immediately and requests them as merged ranges while the multicast continues. Losses of
//! one site are repaired to it alone, over its session; common ones to the group, as coded symbols. The
//! manifest (product, its bytes, the product before) is part of the multicast, so that sessions carry no
//! messages per product and site.
#![forbid(unsafe_code)]

mod api;
mod channel;
mod keys;
mod leg_rate;
mod packet;
mod proof;
mod receiver;
mod sender;

pub use api::{
    Cipher, LegKey, ReceiverConfig, ReceiverInput, ReceiverOutput, ReceiverStats, SenderConfig, SenderInput,
    SenderKey, SenderOutput, SenderStats, SigningSeed, SiteSecret,
};
pub use channel::{Heard, HubChannel, RepairChannel, channel_of};
pub use keys::rotation::{Rotation, RotationInput, RotationOutput, Urgency};
pub use leg_rate::{LegRate, Straggler};
pub use packet::request::{Losses, Request, SymbolsHeard};
pub use receiver::Receiver;
pub use receiver::opening::{Datagram, Opened, Opener};
pub use sender::Sender;
pub use sender::pacer::long_train_time;
