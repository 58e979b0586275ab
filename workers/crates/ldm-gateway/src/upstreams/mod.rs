//! LDMs that are asked for products.
mod request;
mod resume_point;
mod sources;
mod status;

pub(crate) use sources::Sources;
