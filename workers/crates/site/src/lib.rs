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

mod checkpoints;
mod choice;
mod circuit_ends;
mod completeness;
mod connection;
mod control;
mod credentials;
mod event_log;
mod frame_buffer;
mod group_reading;
mod hub_states;
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
mod storing;
#[cfg(test)]
mod world;

pub use checkpoints::{BegunFeeds, CHECKPOINT_INTERVAL, WaitingCheckpoints};
pub use circuit_ends::{CircuitEnds, EndsInput, EndsOrder, EndsOutput, Raising};
pub use completeness::Completeness;
pub use connection::{Connection, Input, LegNews, Linked, NoLink, Output, Settings};
pub use control::{SiteAnswer, SiteRequest};
pub use credentials::{Credentials, CredentialsAnswer, CredentialsOrder, CredentialsRecord, Entropy, Token};
pub use event_log::log_event;
pub use frame_buffer::FrameBuffer;
pub use group_reading::{GroupRead, GroupReading, PriorityChange, PriorityWatch, reception};
pub use hub_states::{host_of, hub_at_home};
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
pub use storing::{OwnDuplicates, ProductEnd, ProductStore, StoreBatch};
