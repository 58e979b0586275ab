//! Notifications of WIS2 that a site publishes about its products.
//!
//! [`Publisher`] has the settings of a rule, checked when rules are read. [`Plan`] names a product in WIS2, or refuses
//! it; [`Plan::message`] is its notification as wmo-im/wis2-notification-message describes it in clause 7. Everything
//! in a notification follows from the product and the rule, so that a second attempt after a crash makes the same
//! bytes with the same id. This crate opens no file and no socket, and reads no clock: crate `pqact` places the
//! files, and crate `publish` has the connection.
#![forbid(unsafe_code)]

mod base64;
mod broker;
mod heading;
mod identifier;
mod instant;
mod notification;
mod plan;
mod publisher;
mod record;
mod stated;
mod topic;

pub use broker::Broker;
pub use heading::Heading;
pub use notification::{Kind, Message};
pub use plan::{Before, Plan, Product, Verdict, sha512};
pub use publisher::Publisher;
pub use record::Record;
