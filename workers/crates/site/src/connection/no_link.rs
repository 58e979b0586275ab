//! The reasons for a missing connection to a hub, as text.
use std::io::{self, ErrorKind};

use super::NoLink;
use crate::reconnect::Ended;

impl NoLink {
    /// The host at `hub` could not be reached.
    pub fn unreached(hub: &str, error: &io::Error, ended: Ended) -> Self {
        Self { sentence: format!("the hub at {hub} can't be reached: {error}"), ended }
    }

    /// The host answered, but there is no session for another reason.
    pub fn answered(sentence: String) -> Self {
        Self { sentence, ended: Ended::Answered }
    }

    /// The host at `hub` answered, but the handshake failed.
    pub fn unshaken(hub: &str, error: &io::Error) -> Self {
        Self::answered(match error.kind() {
            ErrorKind::TimedOut | ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
                format!("the hub at {hub} ended the handshake of a session: {error}")
            }
            _ => format!(
                "the host at {hub} is not the hub of this site's token: {error}; check the address, or ask for a new \
                 token if the hub was set up anew"
            ),
        })
    }
}

impl Ended {
    /// Whether a failed attempt to connect had an answer, by its error.
    pub fn of_attempt(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Self::Answered,
            _ => Self::Unanswered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_hangs_up_is_not_called_a_stranger() {
        let sentence = |kind: ErrorKind| NoLink::unshaken("h:1", &kind.into()).sentence;
        for kind in [ErrorKind::TimedOut, ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset] {
            assert!(sentence(kind).starts_with("the hub at h:1 ended the handshake"), "{kind}");
        }
        assert!(sentence(ErrorKind::InvalidData).contains("is not the hub of this site's token"));
    }

    #[test]
    fn a_host_that_refuses_has_answered() {
        for (kind, ended) in [
            (ErrorKind::ConnectionRefused, Ended::Answered),
            (ErrorKind::ConnectionReset, Ended::Answered),
            (ErrorKind::TimedOut, Ended::Unanswered),
            (ErrorKind::HostUnreachable, Ended::Unanswered),
        ] {
            assert_eq!(Ended::of_attempt(&kind.into()), ended, "{kind}");
        }
    }
}
