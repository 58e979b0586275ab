//! The wire format: the content of datagrams and requests, and their sealing and coding.
pub(crate) mod code;
pub(crate) mod notice;
pub(crate) mod payload;
pub(crate) mod raw;
pub(crate) mod request;
pub(crate) mod seal;
pub(crate) mod slice;
pub(crate) mod symbol;
