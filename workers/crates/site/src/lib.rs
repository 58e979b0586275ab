//! A receiving site: its connections to hubs, its storage of products, and the order of their files.
//!
//! [`Connection`] makes and keeps one connection to a hub: it drives the session's machine, decides when to dial
//! and when to give up, assembles products, requests their storage, and keeps the site's position and credential.
//! [`Hubs`] is above all connections: it chooses the hub that serves and the nodes for each feed, and orders the
//! replacement of connections. [`FeedRelease`] turns the products of a feed into files, exactly once each and in
//! the requested order; [`Release`] is above those of all feeds. [`CircuitEnds`] makes and removes the ends of
//! circuits that a hub orders; [`FarEnd`] is the other end of one that this site watches. [`Announcer`] and
//! [`Receivers`] are both ends of a leg that a relay sends by unicast.
//!
//! Nothing here has a socket, a file, a thread or a clock: time, bytes, randomness and storage are arguments. The
//! `node` crate drives these machines with TLS streams, groups and the product log; `sim` drives them in virtual
//! time, `swarm` by the thousand without logs.
#![forbid(unsafe_code)]

mod announcing;
mod circuit_ends;
mod connection;
mod control;
mod credentials;
mod event_log;
mod far_end;
mod frame_buffer;
mod group_reading;
mod hubs;
mod intake;
mod reconnect;
mod release;
#[cfg(test)]
mod rig;
mod role;
mod spinning;
mod storage;
mod ways;
#[cfg(test)]
mod world;
mod write_buffer;

pub use announcing::{ANNOUNCEMENT_BYTES, Announcer, Receivers};
pub use circuit_ends::{CircuitEnds, EndsInput, EndsOrder, EndsOutput, Raising};
pub use connection::{Connection, Input, LegNews, Linked, NoLink, Output, Settings};
pub use control::{FilesStatus, GroupStatus, SiteAnswer, SiteRequest};
pub use credentials::{Credentials, CredentialsAnswer, CredentialsOrder, CredentialsRecord, Entropy, Token};
pub use event_log::log_event;
pub use far_end::FarEnd;
pub use frame_buffer::FrameBuffer;
pub use group_reading::{
    DropCount, GroupArrival, GroupRead, GroupReading, HostReadings, LineWatch, PriorityChange, PriorityWatch,
    ReadingWatch, SocketReading, SpinWatch, reception,
};
pub use hubs::nodes::Wanted;
pub use hubs::{
    ConnectionId, Ending, GivenHub, HubStatus, Hubs, HubsInput, HubsOutput, Listeners, NodeStatus,
};
pub use intake::MEMORY_LIMIT_BYTES;
pub use reconnect::{Ended, Reconnect};
pub use release::local::{LocalNews, ShowOrder, Shown};
pub use release::order::{Arrival, Order, Turn};
pub use release::{
    Candidate, Cursor, CursorChange, CursorNumbers, DAMAGED_STATE, FeedRelease, Kept, KeptCursor, LastShown,
    Life, LocalListeners, Opened, OrderRequests, Release, ReleaseInput, ReleaseOutput, ShownAhead,
    damaged_state, product_of_file, set_aside_name, unproven_since,
};
pub use role::{News, Role};
pub use spinning::Spinning;
pub use storage::{
    BegunFeeds, Brought, CHECKPOINT_INTERVAL, Completeness, Contents, Feeds, HeldProducts, OwnDuplicates,
    PlaceId, PlaceOrder, Positions, ProductEnd, ProductStore, Recovered, StoreBatch, StoreItem, StoreRequest,
    Stored, StoredItem, StoredPosition, StoredWhat, WaitingCheckpoints, full_disk, host_of, hub_at_home,
    recover,
};
pub use ways::{Ways, way_in_words};
pub use write_buffer::{NextWrite, WriteBuffer};
