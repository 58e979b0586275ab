//! What a node changes on its host for circuits: interfaces, classes of HTB, addresses; by netlink, in the network namespace of the
//! thread that asks.
//!
//! Nothing is remembered here: the kernel's own tables are the memory. Each thing carries a mark of ours (an interface its name, a
//! tree of classes its handle), so what a crash left behind at any step is found and completed ([`raise`]) or taken away
//! ([`keep_only`]). What somebody else configured is never touched.
#![forbid(unsafe_code)]
// A namespace belongs to a thread, so one is tried in a thread of its own.
#![allow(clippy::disallowed_methods)]

mod ability;
mod clear;
mod failure;
mod half;
mod link;
mod message;
mod netlink;
mod raise;
mod shaping;

pub use ability::{Abilities, Ability, probe_host};
pub use clear::{Cleared, clear, keep_only};
pub use failure::{Failure, Step};
pub use half::{Burst, Half, Owner, Shape, Way};
pub use link::{Kind, Link, Vxlan, addresses, links};
pub use netlink::{Netlink, Refusal};
pub use raise::{Raised, change, raise, raise_watched};
