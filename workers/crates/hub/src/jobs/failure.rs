//! The failure of a job.
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

/// The reason why a job failed, for programs and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One of a closed list of words.
    pub code: &'static str,
    /// One sentence: the problem, its place, the remedy.
    pub error: String,
    /// Additional fields of the answer.
    pub fields: BTreeMap<&'static str, u64>,
}

impl Failure {
    /// A failure without further fields.
    pub fn new(code: &'static str, error: impl Into<String>) -> Self {
        Self { code, error: error.into(), fields: BTreeMap::new() }
    }

    /// Of a job that overtakes the first one.
    pub fn not_started() -> Self {
        Self::new(
            "not-started",
            "the node has not begun yet; its first job is start, try again in some seconds",
        )
    }

    /// A job with a value that is not usable.
    pub fn bad_request(error: impl Into<String>) -> Self {
        Self::new("bad-request", error)
    }

    /// A job that names an unknown feed.
    pub fn unknown_feed(feed: &str) -> Self {
        Self::new("unknown-feed", format!("there is no feed {feed:?}; create it first or correct the name"))
    }

    /// A directory of the start job in which nothing can be created.
    pub fn not_writable(directory: &Path, error: &dyn Display) -> Self {
        let directory = directory.display();
        Self::new(
            "not-writable",
            format!("{directory} can't be written: {error}; choose another data directory"),
        )
    }

    /// An address of the start job at which the node can't listen.
    pub fn no_listener(address: &str, is_in_use: bool, error: &dyn Display) -> Self {
        let sentence = if is_in_use {
            format!(
                "the address {address} for sites is in use; stop the program that uses it or choose another port"
            )
        } else {
            format!("the node can't listen on {address} for sites: {error}; choose another address")
        };
        Self::new("port-in-use", sentence)
    }

    /// A spooled product whose file can't be read.
    pub fn unreadable_spool(path: &Path, error: &dyn Display) -> Self {
        let path = path.display();
        Self::new("io", format!("the spool file {path} can't be read: {error}; send the product again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_address_and_an_impossible_one_get_different_advice() {
        let failure = |is_in_use| Failure::no_listener("192.0.2.1:7370", is_in_use, &"not here").error;
        assert!(failure(true).ends_with("stop the program that uses it or choose another port"));
        assert!(failure(false).ends_with("for sites: not here; choose another address"));
        assert_eq!(Failure::no_listener("x", true, &"").code, "port-in-use");
    }

    #[test]
    fn failures_name_the_place() {
        assert!(Failure::unknown_feed("NGRID").error.contains("there is no feed \"NGRID\""));
        let full = Failure::not_writable(Path::new("/data"), &"the disk is full");
        assert_eq!(full.code, "not-writable");
        assert!(full.error.starts_with("/data can't be written: the disk is full"));
        let spool = Failure::unreadable_spool(Path::new("/spool/7"), &"gone");
        assert_eq!((spool.code, spool.error.contains("/spool/7")), ("io", true));
        assert!(Failure::bad_request("no").fields.is_empty());
    }
}
