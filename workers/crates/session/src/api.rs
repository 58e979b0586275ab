//! What drivers tell the two halves of a session, and what these ask for.
mod hub;
mod site;

pub use hub::*;
pub use site::*;
