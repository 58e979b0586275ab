use bytes::Bytes;

use crate::product::ProductInfo;

/// An action that a sender or receiver of products requests from its machine.
#[derive(Debug)]
pub(crate) enum Step {
    Send(Bytes),
    Taken(Taken),
    Want(Want),
    /// A NULLPROC follows everything that was sent so far.
    Asked,
    /// The peer answered it: it has processed everything that was sent before.
    Answered,
}

/// Events of the reception of products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The sender offers this product; decide whether to have it sent.
    Offered(ProductInfo),
    /// The product's bytes follow.
    Begins(ProductInfo),
    /// Its next bytes.
    Bytes(Bytes),
    /// The product is complete.
    Ends,
    /// The product will not be completed on this connection.
    Broken,
    /// A product that was not accepted.
    Dropped(ProductInfo, Dropped),
    /// The description of a product, as requested by a NOTIFYME.
    Notified(ProductInfo),
}

/// Reasons to drop a product while the connection continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// It is outside the agreed class or the rights of the sender.
    OutOfClass,
    /// It is older than the limit.
    TooOld,
    /// It is larger than the limit.
    TooLarge,
}

/// The next input that a machine that sends products needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The description of the next product. If there is none yet: a notice of that, and the product once it exists.
    Product,
    /// The next bytes of the current product, up to this number.
    Bytes(u32),
}
