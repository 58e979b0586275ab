//! A site's actions on its products, apart from their files in `received/`: the rules of `--actions`, and the
//! removal of old files by those of `--scour`. LDM has pqact and scour for it.
//!
//! A thread per line of actions ([`line_worker`]) reads the site's log by itself, from its own position
//! ([`positions`]), so that nothing here reaches the session or the receipts, and a slow program delays its
//! own line only. Files of all rules are one line; programs begin with a product when its files are written.
//! Products that fail for good go to a folder ([`dead_letters`]), and the hub is notified ([`failure_reports`]).
//!
//! The rules themselves are of crate `actions`. [`Actions`] and [`Scouring`] are started and ended by the site, which
//! is known as a [`Site`] only; [`tools`] are commands for an operator.
#![forbid(unsafe_code)]
// Threads, programs and their time limits are what this crate is for.
#![allow(clippy::disallowed_methods)]

mod actions;
mod active_rules;
mod arguments;
mod children;
mod dead_letters;
mod failed_products;
mod failure;
mod failure_reports;
mod files;
mod lag;
mod line_worker;
mod notifier;
mod pipes;
mod positions;
mod programs;
mod scour;
mod shared;
mod site;
mod stop;
mod task;
#[cfg(test)]
mod tests;
pub mod tools;

pub use actions::{Actions, Wanted};
pub use arguments::SiteArguments;
pub use dead_letters::Keep;
pub use notifier::Notifier;
pub use positions::is_whole as position_is_whole;
pub use scour::{Scouring, Wanted as ScourWanted};
pub use site::Site;
pub use task::Defaults;
