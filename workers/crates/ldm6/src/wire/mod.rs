//! LDM's encodings: XDR, records of ONC RPC, versions, texts, times.
pub(crate) mod record;
pub(crate) mod rpc;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod versions;
pub(crate) mod xdr;
