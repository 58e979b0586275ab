//! The actions of a site on its products, and on old files.
//!
//! LDM's `pqact.conf` ([`pqact`]) and a YAML form ([`yaml`]) are read into the same [`Rules`]. [`Rules::due`]
//! returns the actions for a product, with everything substituted. `scour.conf` and the YAML form give
//! [`ScourRule`]s. This crate opens no file, starts no process and reads no clock: the `node` crate does.
#![forbid(unsafe_code)]

mod civil;
pub mod contents;
mod decide;
mod glob;
mod place;
pub mod pqact;
mod rule;
pub mod scour;
mod template;
mod units;
pub mod yaml;

pub use decide::{Due, Product, What};
pub use place::{Place, Problem, Read};
pub use rule::{
    Action, Feeds, FileAction, Kind, Limits, PipeAction, ProgramAction, Rule, Rules, Shape, Test,
};
pub use scour::ScourRule;
pub use template::Template;
pub use units::{bytes, duration};
