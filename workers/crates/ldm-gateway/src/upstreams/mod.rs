//! Requests to upstream LDMs.
mod request;
mod resume_point;
mod sources;
mod status;

pub(crate) use sources::Sources;
