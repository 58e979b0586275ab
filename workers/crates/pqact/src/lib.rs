//! A site's actions on its products, apart from their files in `received/`: the rules of `--actions`, and the
//! removal of old files by the rules of `--scour`. LDM's counterparts are pqact and scour.
//!
//! Each line of actions has a thread ([`line_worker`]) that reads the site's log from its own position
//! ([`positions`]). Actions therefore never affect the session or the receipts, and a slow program delays its own
//! line only. Files of all rules are one line; programs start on a product after its files are written, and
//! notifications of WIS2 go out after them, too ([`publishing`], by crate `publish`).
//! Products whose actions fail permanently go to a folder ([`dead_letters`]), and the hub is notified
//! ([`failure_reports`]).
//!
//! Crate `actions` parses the rules. The site starts and ends [`Actions`] and [`Scouring`], which see it only as a
//! [`Site`]; [`tools`] are commands for an operator.
#![forbid(unsafe_code)]
// The purpose of this crate is threads, programs and their time limits.
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
mod publishing;
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
