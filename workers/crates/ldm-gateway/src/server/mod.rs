//! Service for LDMs that request products from this hub or push to it.
mod acknowledged;
mod connection;
mod host_names;
mod listeners;
mod peers;
mod positions;
mod readers;
mod rules;

pub(crate) use listeners::Listeners;
pub(crate) use peers::Peers;
