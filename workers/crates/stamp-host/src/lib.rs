//! STAMP at a host: `downburst-node stamp`, and the reflector within a hub's node or a site.
//!
//! A thread per address answers from a socket of its own. The kernel stamps what arrives, so that a busy host does not
//! lengthen the delays that it reports; what leaves is stamped just before the call that sends it.
#![forbid(unsafe_code)]
// A reflector waits in the kernel, on a thread of its own.
#![allow(clippy::disallowed_methods)]

mod command;
mod reflecting;
mod sending;
mod socket;
mod words;

pub use command::{StampTool, run};
pub use reflecting::{Reflecting, ReflectingSettings};
