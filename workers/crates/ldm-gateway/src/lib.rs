//! LDM in both roles: requests to upstream LDMs, and service for LDMs that request from a hub or push to it.
//!
//! [`Gateway`] is the hub's state of both. One task drives each request to an upstream ([`upstreams`]), and one each
//! connection from an LDM ([`server`]); both hold a machine of crate `ldm6` and hand products to the feeds' writers
//! ([`intake`]). The hub is visible only as a [`Hub`] with its [`Feed`]s: nothing here depends on sites' sessions,
//! plans or the writing of feeds. [`tools`] query LDM servers, and need no hub.
#![forbid(unsafe_code)]

mod address;
mod complaints;
mod config;
mod context;
mod description;
mod gateway;
mod hub;
mod intake;
mod routes;
mod server;
mod statistics;
#[cfg(test)]
mod tests;
pub mod tools;
mod upstreams;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use config::{LdmAcceptLine, LdmLine, LdmSourceLine, RtstatsLine};
pub use gateway::Gateway;
pub use hub::{Event, Failure, Feed, Hub, LogListener, Product, ProductBytes, Sent, Writing, Written};

/// Locks a mutex. Poison is ignored: here, a thread that panics with the lock held leaves consistent values behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
