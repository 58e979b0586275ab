//! The forms on the wire: what datagrams and requests hold, and how they are sealed and coded.
pub(crate) mod code;
pub(crate) mod notice;
pub(crate) mod payload;
pub(crate) mod request;
pub(crate) mod seal;
pub(crate) mod symbol;
