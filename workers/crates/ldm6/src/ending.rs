use bytes::Bytes;
use thiserror::Error;

use crate::listener::Garbled;
use crate::product_receiver::Taken;
use crate::product_sender::Want;
use crate::wire::rpc::Status;

/// Why a connection ended.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Ending {
    /// The peer or the network closed it.
    #[error("the connection was closed")]
    Disconnected,
    /// Nothing came for too long.
    #[error("the peer sent nothing for {0} s")]
    Silent(u64),
    /// The peer did not answer a call.
    #[error("a call was not answered within {0} s")]
    Unanswered(u64),
    /// The peer said what can't be understood.
    #[error("the peer does not keep to the protocol: {0}")]
    Garbled(String),
    /// The peer answered a call with a failure.
    #[error("the peer could not carry out the request: {0}")]
    Failed(String),
    /// A product that was begun could not be gone on with here.
    #[error("a product's bytes were gone before they were sent")]
    Gone,
    /// The peer asked for other classes too often, or answered with too many.
    #[error("the peers did not agree on a class of products")]
    NoAgreement,
    /// The request goes on in the other mode.
    #[error("the request is repeated in the other mode")]
    Shifted,
    /// The peer speaks an older version only: it is asked again, in that one.
    #[error("the peer speaks version 5 and is asked again in it")]
    OlderVersion,
    /// The driver could not keep what came.
    #[error("a product could not be stored here, and is requested again")]
    Unstored,
    /// The pusher has said all.
    #[error("everything was sent")]
    Done,
}

impl Ending {
    /// True where the peer said what can't be: somebody has to look at its program.
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

/// What giving and taking ask of the machine that does it.
#[derive(Debug)]
pub(crate) enum Step {
    Send(Bytes),
    Taken(Taken),
    Want(Want),
    /// The peer was asked behind everything that was sent so far.
    Asked,
    /// It answered: it has dealt with all that was sent before it was asked.
    Answered,
}
