//! What a person asks: where is this product for this site?
use downburst_model::{FeedName, ProductKey};
use downburst_session::Standing;
use serde::Serialize;

use super::Session;

/// What a session answers.
#[derive(Debug)]
pub struct SessionView {
    /// One for each product that was asked for.
    pub products: Vec<ProductView>,
    /// Bytes that wait in the session's outbox.
    pub waiting: Vec<WaitingBytes>,
}

/// Where a product stands in a session.
#[derive(Debug)]
pub struct ProductView {
    /// As far as the hub knows.
    pub standing: Standing,
    /// When its first byte left by unicast, if it has.
    pub first_byte_us: Option<i64>,
}

/// What waits of one feed.
#[derive(Clone, Debug, Serialize)]
pub struct WaitingBytes {
    /// The feed.
    pub feed: FeedName,
    /// In the live lane.
    pub live: bool,
    /// How many bytes.
    pub bytes: usize,
}

impl Session {
    /// Where the products stand, and what lies before them in the outbox.
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
