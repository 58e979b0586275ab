//! What a person asks: where is this product for this site?
use downburst_model::ProductKey;

use super::Session;
use crate::hub::deliveries::{ProductView, SessionView, WaitingBytes};

impl Session {
    /// Where the products stand, and what lies before them in the outbox.
    pub(super) fn view(&self, products: &[ProductKey]) -> SessionView {
        let product = |key: &ProductKey| ProductView {
            standing: self.machine.standing(key),
            first_byte_us: self.first_bytes.find(key).map(|stamp| stamp.0),
        };
        let waiting = self.machine.waiting_bytes();
        SessionView {
            products: products.iter().map(product).collect(),
            waiting: waiting
                .map(|(feed, live, bytes)| WaitingBytes { feed: feed.clone(), live, bytes })
                .collect(),
        }
    }
}
