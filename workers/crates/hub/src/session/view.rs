//! Answers the operator's question about a product's state for a site.
use downburst_model::{FeedName, ProductKey};
use downburst_session::Standing;
use serde::Serialize;

use super::Session;

/// The answer of a session.
#[derive(Debug)]
pub struct SessionView {
    /// One for each requested product.
    pub products: Vec<ProductView>,
    /// Bytes queued in the session's outbox.
    pub waiting: Vec<WaitingBytes>,
}

/// The state of a product in a session.
#[derive(Debug)]
pub struct ProductView {
    /// The state, as far as the hub knows.
    pub standing: Standing,
    /// The time at which its first byte left over unicast, if it has.
    pub first_byte_us: Option<i64>,
}

/// The queued bytes of one feed.
#[derive(Clone, Debug, Serialize)]
pub struct WaitingBytes {
    /// The feed.
    pub feed: FeedName,
    /// True for the live lane.
    pub live: bool,
    /// The number of bytes.
    pub bytes: usize,
}

impl Session {
    /// The states of the products, and the bytes ahead of them in the outbox.
    pub fn view(&self, products: &[ProductKey]) -> SessionView {
        let product = |key: &ProductKey| ProductView {
            standing: self.hub.standing(key),
            first_byte_us: self.first_bytes.find(key).map(|stamp| stamp.0),
        };
        let waiting = self.hub.waiting_bytes();
        SessionView {
            products: products.iter().map(product).collect(),
            waiting: waiting
                .map(|(feed, live, bytes)| WaitingBytes { feed: feed.clone(), live, bytes })
                .collect(),
        }
    }
}
