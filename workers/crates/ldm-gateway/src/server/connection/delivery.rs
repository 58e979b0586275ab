//! What a peer gets: the products behind its positions, and how far it acknowledged them.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use downburst_ldm6::ProductInfo;
use tokio::sync::Notify;

use super::super::peers::Served;
use super::super::positions::Positions;
use super::super::readers::Readers;
use crate::hub::Hub;

#[derive(Default)]
pub(super) struct Delivery {
    /// None before the peer asked for products.
    pub(super) readers: Option<Readers>,
    /// What is left of the product that is being sent.
    current: Option<Bytes>,
    is_begun: bool,
    /// The peer waits for a product that is not there yet.
    is_awaited: bool,
    /// Products that were sent before the peer was asked.
    sent_at_question: u64,
}

impl Delivery {
    /// The next product; without one the peer waits.
    pub(super) fn next(&mut self, hub: &dyn Hub) -> Option<ProductInfo> {
        let next = self.readers.as_mut().and_then(|readers| readers.next(hub));
        let Some(next) = next else {
            self.is_awaited = true;
            return None;
        };
        (self.current, self.is_begun, self.is_awaited) = (Some(next.bytes), false, false);
        Some(next.info)
    }

    /// Further bytes of that product; `None`: there are none left.
    pub(super) fn piece(&mut self, most: u32) -> Option<Bytes> {
        let current = self.current.as_mut().filter(|current| !current.is_empty())?;
        let piece = current.split_to(current.len().min(most as usize));
        if let Some(readers) = &mut self.readers {
            readers.sends(piece.len() as u64, !std::mem::replace(&mut self.is_begun, true));
        }
        Some(piece)
    }

    /// What says that the logs have grown, if the peer waits for it.
    pub(super) fn awaited(&self) -> Option<Arc<Notify>> {
        self.readers.as_ref().filter(|_| self.is_awaited).map(|readers| Arc::clone(&readers.news))
    }

    /// The peer is asked behind everything that went out.
    pub(super) fn asked(&mut self, counts: &Served) {
        self.sent_at_question = counts.products.load(Ordering::Relaxed);
        if let Some(readers) = &mut self.readers {
            readers.asked();
        }
    }

    /// It answered.
    pub(super) fn answered(&mut self, counts: &Served, now_us: u64, positions: &Positions) {
        counts.answered.store(self.sent_at_question, Ordering::Relaxed);
        counts.answered_at.store(now_us, Ordering::Relaxed);
        if let Some(readers) = &mut self.readers {
            readers.answered(positions);
        }
    }

    /// Enters what was sent in the accounts.
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
