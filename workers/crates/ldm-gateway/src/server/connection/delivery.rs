//! Delivery to a peer: the products after its positions, and the progress of its acknowledgements.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use downburst_ldm6::ProductInfo;
use downburst_model::Content;
use tokio::sync::Notify;

use super::super::peers::Served;
use super::super::positions::Positions;
use super::super::readers::Readers;
use crate::hub::Hub;

#[derive(Default)]
pub(super) struct Delivery {
    /// `None` before the peer's request.
    pub(super) readers: Option<Readers>,
    /// The product in transmission, and the number of its bytes handed out.
    current: Option<(Content, usize)>,
    is_begun: bool,
    /// True while the peer waits for the next product to be stored.
    is_awaited: bool,
    /// Products sent before the last question (NULLPROC) to the peer.
    sent_at_question: u64,
}

impl Delivery {
    /// The next product; `None`: the peer waits.
    pub(super) fn next(&mut self, hub: &dyn Hub) -> Option<ProductInfo> {
        let next = self.readers.as_mut().and_then(|readers| readers.next(hub));
        let Some(next) = next else {
            self.is_awaited = true;
            return None;
        };
        (self.current, self.is_begun, self.is_awaited) = (Some((next.content, 0)), false, false);
        Some(next.info)
    }

    /// The next bytes of the current product; `None`: none are left, or the disk can't return them.
    pub(super) fn piece(&mut self, most: u32) -> Option<Bytes> {
        let (content, sent) = self.current.as_mut().filter(|(content, sent)| *sent < content.len())?;
        let end = content.len().min(sent.saturating_add(most as usize));
        let piece = content.slice(*sent..end)?;
        *sent = end;
        if let Some(readers) = &mut self.readers {
            readers.sends(piece.len() as u64, !std::mem::replace(&mut self.is_begun, true));
        }
        Some(piece)
    }

    /// The notification of growing logs, if the peer waits for it.
    pub(super) fn awaited(&self) -> Option<Arc<Notify>> {
        self.readers.as_ref().filter(|_| self.is_awaited).map(|readers| Arc::clone(&readers.news))
    }

    /// Notes that a question was sent after all products so far.
    pub(super) fn asked(&mut self, counts: &Served) {
        self.sent_at_question = counts.products.load(Ordering::Relaxed);
        if let Some(readers) = &mut self.readers {
            readers.asked();
        }
    }

    /// Notes the peer's answer to the last question.
    pub(super) fn answered(&mut self, counts: &Served, now_us: u64, positions: &Positions) {
        counts.answered.store(self.sent_at_question, Ordering::Relaxed);
        counts.answered_at.store(now_us, Ordering::Relaxed);
        if let Some(readers) = &mut self.readers {
            readers.answered(positions);
        }
    }

    /// Adds the sent products to the accounts.
    pub(super) fn account(&mut self, hub: &dyn Hub, counts: &Served) {
        let Some(readers) = &mut self.readers else { return };
        let (products, bytes) = readers.account(hub);
        counts.products.fetch_add(products, Ordering::Relaxed);
        counts.bytes.fetch_add(bytes, Ordering::Relaxed);
        counts.gone.fetch_add(std::mem::take(&mut readers.gone), Ordering::Relaxed);
        counts.too_old.fetch_add(std::mem::take(&mut readers.too_old), Ordering::Relaxed);
        counts.too_large.fetch_add(std::mem::take(&mut readers.too_large), Ordering::Relaxed);
    }
}
