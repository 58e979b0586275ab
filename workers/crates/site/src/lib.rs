//! A receiving site: its connections to hubs, what it stores, and the order in which it shows it.
//!
//! [`Connection`] makes and keeps one connection to a hub: it drives the session's machine, decides when to dial and
//! when to give up, assembles products, requests their storage, and keeps the site's position and credential. [`Hubs`]
//! is above all connections: which hub serves, which of its nodes bring which feeds, in which order connections
//! replace each other.
//!
//! Nothing here has a socket, a file, a thread or a clock: time, bytes, randomness and storage are arguments. The
//! `node` crate drives these machines with TLS streams, groups and the product log; `sim` drives them in virtual time,
//! `swarm` by thousands without logs.
#![forbid(unsafe_code)]

mod choice;
mod completeness;
mod connection;
mod credentials;
mod hubs;
mod intake;
mod local;
mod nodes;
mod order;
mod position;
mod reconnect;
mod release;
#[cfg(test)]
mod rig;
mod role;
mod storage;
#[cfg(test)]
mod world;

pub use completeness::Completeness;
pub use connection::{Connection, Input, LegNews, Linked, NoLink, Output, Settings};
pub use credentials::{Credentials, CredentialsAnswer, CredentialsOrder, CredentialsRecord, Entropy, Token};
pub use hubs::{
    ConnectionId, Ending, GivenHub, HubStatus, Hubs, HubsInput, HubsOutput, Listeners, NodeStatus,
};
pub use intake::MEMORY_LIMIT_BYTES;
pub use local::{LocalNews, ShowOrder, Shown};
pub use nodes::Wanted;
pub use order::{Arrival, Order, Turn};
pub use position::{Feeds, HeldProducts, Positions, Recovered, StoredPosition, recover};
pub use reconnect::{Ended, Reconnect};
pub use release::{
    Candidate, Cursor, CursorChange, CursorNumbers, DAMAGED_STATE, FeedRelease, Kept, KeptCursor, LastShown,
    Life, LocalListeners, Opened, Release, ReleaseInput, ReleaseOutput, ShowWishes, ShownAhead,
    damaged_state, product_of_file, set_aside_name, unproven_since,
};
pub use role::{News, Role};
pub use storage::{
    Brought, Contents, PlaceId, PlaceOrder, StoreItem, StoreRequest, Stored, StoredItem, StoredWhat,
};
