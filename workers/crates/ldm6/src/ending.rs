use thiserror::Error;

use crate::listener::Garbled;
use crate::wire::rpc::Status;

/// The reason for the end of a connection.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Ending {
    /// The peer or the network closed it.
    #[error("the connection was closed")]
    Disconnected,
    /// The peer sent nothing for too long.
    #[error("the peer sent nothing for {0} s")]
    Silent(u64),
    /// The peer did not answer a call.
    #[error("a call was not answered within {0} s")]
    Unanswered(u64),
    /// The peer violated the protocol.
    #[error("the peer does not keep to the protocol: {0}")]
    Garbled(String),
    /// The peer answered a call with a failure.
    #[error("the peer could not carry out the request: {0}")]
    Failed(String),
    /// This side could not finish sending a product.
    #[error("a product's bytes were gone before they were sent")]
    Gone,
    /// The peer requested other classes too often, or replied with too many specs.
    #[error("the peers did not agree on a class of products")]
    NoAgreement,
    /// The request continues in the other mode.
    #[error("the request is repeated in the other mode")]
    Shifted,
    /// The peer speaks only an older version, in which the request is repeated.
    #[error("the peer speaks version 5 and is asked again in it")]
    OlderVersion,
    /// The driver could not store the received products.
    #[error("a product could not be stored here, and is requested again")]
    Unstored,
    /// The pusher has sent everything.
    #[error("everything was sent")]
    Done,
}

impl Ending {
    /// True if the peer violated the protocol: its program is faulty.
    pub fn is_violation(&self) -> bool {
        matches!(self, Self::Garbled(_))
    }
}

impl From<Garbled> for Ending {
    fn from(garbled: Garbled) -> Self {
        Self::Garbled(garbled.to_string())
    }
}

impl From<crate::wire::xdr::Malformed> for Ending {
    fn from(malformed: crate::wire::xdr::Malformed) -> Self {
        Self::Garbled(malformed.to_string())
    }
}

impl From<Status> for Ending {
    fn from(status: Status) -> Self {
        Self::Failed(match status {
            Status::Success => "no reason".to_owned(),
            Status::ProgramUnavailable => "no LDM answers at this port".to_owned(),
            Status::ProgramMismatch { low, high } => format!("it speaks versions {low} to {high}"),
            Status::ProcedureUnavailable => "it does not know the procedure".to_owned(),
            Status::GarbageArguments => "it could not read the call".to_owned(),
            Status::SystemError => "it has an internal error; see its log".to_owned(),
            Status::RpcMismatch { low, high } => format!("it speaks RPC versions {low} to {high}"),
            Status::AuthError(_) => "it does not allow this host".to_owned(),
        })
    }
}
