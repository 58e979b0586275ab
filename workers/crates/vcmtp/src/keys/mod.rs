//! The keys of a leg: when the sender takes another one, and those that a receiver knows.
pub(crate) mod ring;
pub(crate) mod rotation;
