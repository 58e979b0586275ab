//! Limits of the process.
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the process's limit of open files and sockets as far as it can without privilege: each connection uses one,
/// and the customary 1,024 are fewer than a hub's sites.
pub fn raise_open_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!("the limit of open files stays as it is: {error}");
    }
}
