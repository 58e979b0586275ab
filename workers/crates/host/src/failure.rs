//! The reason of a failed step, for people.
use std::fmt;

use nix::errno::Errno;

use crate::netlink::Refusal;

/// The steps of a host for its half of a circuit, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The node has the privilege.
    Privilege,
    /// The kernel supports it.
    Kernel,
    /// The port exists.
    Interface,
    /// The circuit has an interface of its own.
    Tunnel,
    /// Its rate is limited and reserved.
    Shaping,
    /// It has an address.
    Address,
    /// It is switched on, which creates its route.
    Route,
}

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}; {remedy}")]
pub struct Failure {
    /// The step.
    pub step: Step,
    /// The failure, as a sentence.
    pub sentence: String,
    /// The remedy.
    pub remedy: String,
}

impl Failure {
    pub(crate) fn new(step: Step, sentence: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { step, sentence: sentence.into(), remedy: remedy.into() }
    }

    /// The failure for a refusal while `doing` something that needs the kernel's `part`.
    pub(crate) fn of(step: Step, refusal: &Refusal, doing: &str, part: &str) -> Self {
        match refusal.errno {
            Errno::EPERM | Errno::EACCES => Self::new(
                Step::Privilege,
                format!("{doing} needs a privilege that the node does not have"),
                "give it CAP_NET_ADMIN: AmbientCapabilities=CAP_NET_ADMIN in its unit, or --cap-add NET_ADMIN for \
                 its container",
            ),
            Errno::EOPNOTSUPP | Errno::ENOENT | Errno::EPROTONOSUPPORT if step < Step::Address => Self::new(
                Step::Kernel,
                format!("{doing} is not possible with this host's kernel: {refusal}"),
                format!("load its module {part} (modprobe {part}), or use a kernel that has it"),
            ),
            _ => Self::new(
                step,
                format!("{doing} failed: {refusal}"),
                "check the host's interfaces (ip -d link, tc class show) for the conflict",
            ),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Privilege => "privilege",
            Self::Kernel => "kernel",
            Self::Interface => "interface",
            Self::Tunnel => "tunnel",
            Self::Shaping => "shaping",
            Self::Address => "address",
            Self::Route => "route",
        })
    }
}
