//! The keys of a leg: the sender's rotation, and the keys known to a receiver.
pub(crate) mod ring;
pub(crate) mod rotation;
