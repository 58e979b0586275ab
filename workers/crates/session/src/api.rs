//! The inputs and outputs of the two halves of a session, as their drivers see them.
mod hub;
mod site;

pub use hub::*;
pub use site::*;
