//! LDM both ways: LDMs that are asked for products, and those that ask a hub or push to it.
//!
//! [`Gateway`] is the hub's state of both. A task drives each request to an upstream ([`upstreams`]), and one each
//! connection that an LDM made ([`server`]); both hold a machine of crate `ldm6` and hand products to the feeds'
//! writers ([`intake`]). The hub itself is known as a [`Hub`] with its [`Feed`]s only: nothing here knows sites'
//! sessions, plans or how a feed is written. [`tools`] ask LDM servers, and need no hub.
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

/// Locks a mutex; a thread that panicked while it held it leaves whole values behind here, so its poison is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
