//! A site's storage in the terms of its machines: products in its logs, checkpoints, and the completeness of each
//! feed.
mod checkpoints;
mod completeness;
mod hub_states;
mod position;
mod request;
mod storing;

pub use checkpoints::{BegunFeeds, CHECKPOINT_INTERVAL, WaitingCheckpoints};
pub use completeness::Completeness;
pub use hub_states::{host_of, hub_at_home};
pub(crate) use position::Noted;
pub use position::{Feeds, HeldProducts, Positions, Recovered, StoredPosition, recover};
pub use request::{
    Brought, Contents, PlaceId, PlaceOrder, StoreItem, StoreRequest, Stored, StoredItem, StoredWhat,
};
pub use storing::{OwnDuplicates, ProductEnd, ProductStore, StoreBatch, full_disk};
