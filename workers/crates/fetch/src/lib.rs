//! Downloads of products that others announce, as WIS2's notifications do.
//!
//! | part | what it does |
//! |---|---|
//! | [`Limits`] | the bounds of one download, from its line |
//! | [`Hop`], [`next_hop`] | the addresses that may be asked: HTTP and HTTPS, few redirects, named hosts |
//! | [`may_connect`] | the hosts behind them: private networks only if allowed |
//! | [`Credentials`] | the login at the announced server, which no other one gets |
//! | [`Verifier`] | length and digest of the bytes while they come |
//! | [`Attempts`] | the pauses between attempts, and their end |
//!
//! Bytes, times and randomness are arguments: there is no socket, thread or clock here.
#![forbid(unsafe_code)]

mod address;
mod attempts;
mod credentials;
mod digest;
mod hops;
mod limits;

pub use address::may_connect;
pub use attempts::{Attempts, Failed};
pub use credentials::{Credentials, Login, Server};
pub use digest::{Expected, Method, Verifier};
pub use hops::{Hop, next_hop};
pub use limits::Limits;
