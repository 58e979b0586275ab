//! A node's changes on its host for circuits: interfaces, HTB classes, addresses; over netlink, in the network
//! namespace of the calling thread. Beside that, a look at its TCP sockets ([`Sockets`]), and counters of the host from
//! the texts of `/proc` ([`HostLook`]).
//!
//! Nothing is stored here: the kernel's own tables are the memory. Everything that a node makes carries a mark (the
//! name of an interface, the handle of a tree of classes), so that leftovers of a crash at any step are found and
//! completed ([`raise`]) or removed ([`keep_only`]). Configuration of other origin is never touched.
#![forbid(unsafe_code)]
// A namespace belongs to a thread, so probing uses a thread of its own.
#![allow(clippy::disallowed_methods)]

mod ability;
mod classes;
mod clear;
mod counters;
mod failure;
mod half;
mod link;
mod marking;
mod message;
mod netlink;
mod raise;
mod shaping;
mod sockets;

pub use ability::{Abilities, Ability, probe_host};
pub use clear::{Cleared, clear, keep_only};
pub use counters::{CounterRow, HostLook, ProcTexts};
pub use failure::{Failure, Step};
pub use half::{Burst, Half, Owner, Place, Shape, Way};
pub use link::{Kind, Link, Vxlan, addresses, links};
pub use netlink::{Netlink, Refusal};
pub use raise::{Raised, change, raise, raise_watched};
pub use sockets::{Family, Sockets, TcpSocket};
