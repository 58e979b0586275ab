//! LDM both ways: LDMs that are asked for products, and those that ask a hub or push to it.
//!
//! [`Gateway`] is the hub's state of both. A task drives each request to an upstream ([`request`]), and one each
//! connection that an LDM made ([`connection`]); both hold a machine of crate `ldm6` and hand products to the feeds'
//! writers ([`intake`]). The hub itself is known as a [`Hub`] with its [`Feed`]s only: nothing here knows sites'
//! sessions, plans or how a feed is written. [`tools`] ask LDM servers, and need no hub.
#![forbid(unsafe_code)]

mod acknowledged;
mod address;
mod complaints;
mod config;
mod connection;
mod description;
mod gateway;
mod host_names;
mod hub;
mod intake;
mod positions;
mod readers;
mod request;
mod resume_point;
mod routes;
mod rules;
mod server;
mod sources;
mod statistics;
pub mod tools;

pub use config::{LdmAcceptLine, LdmLine, LdmSourceLine, RtstatsLine};
pub use gateway::Gateway;
pub use hub::{Event, Failure, Feed, Hub, LogListener, Product, ProductBytes, Sent, Writing, Written};
