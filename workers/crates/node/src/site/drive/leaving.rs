//! How a connection ends that was wanted until now.
use std::time::Duration;

use downburst_session::{Receipt, SiteInput};
use tokio::io::AsyncWriteExt as _;

use super::Site;
use crate::site::link::Link;

impl Site {
    /// Ends with the site itself.
    pub(super) async fn close(mut self) -> Vec<Receipt> {
        self.tell(SiteInput::Disconnected);
        self.perform();
        self.circuits.close().await;
        drop(self.complete);
        // What is on its way to the log gets there; its position follows with the next hello.
        let _ = self.store_thread.join();
        Vec::new()
    }

    /// Ends because other connections bring these feeds from here on. Products that came by it are settled
    /// first, and reported by it while it stands: no other node knows of them. Unreported ones are given
    /// back.
    pub(super) async fn leave(mut self, link: Option<Link>) -> Vec<Receipt> {
        self.settle_all().await;
        self.tell(SiteInput::Leave);
        self.perform();
        if let Some(link) = link {
            let _ = tokio::time::timeout(FAREWELL_PATIENCE, farewell(link, &self.out)).await;
        }
        let unsaid = self.machine.take_unsaid();
        self.close().await;
        unsaid
    }

    /// Waits until the log has what is on its way there.
    async fn settle_all(&mut self) {
        let (nobody, _) = crossbeam_channel::bounded(0);
        // The thread ends once it has stored what it was given.
        drop(std::mem::replace(&mut self.complete, nobody));
        while let Some(batch) = self.results.recv().await {
            self.stored_batch(batch);
            self.perform();
        }
    }
}

/// Ends a connection so that the hub knows that the site ended it: without this end it would look cut.
pub(super) async fn hang_up(link: Option<Link>) {
    if let Some(mut link) = link {
        // A connection that is broken already has nobody to tell.
        let _ = tokio::time::timeout(HANG_UP_PATIENCE, link.stream.shutdown()).await;
    }
}

/// Says the last words and waits until the node has heard them, which it shows by ending the connection too.
async fn farewell(mut link: Link, words: &[u8]) -> std::io::Result<()> {
    link.stream.write_all(words).await?;
    link.stream.shutdown().await?;
    tokio::io::copy(&mut link.stream, &mut tokio::io::sink()).await?;
    Ok(())
}

/// Feeds wait for it: a node that is silent brings nothing more.
const FAREWELL_PATIENCE: Duration = Duration::from_secs(1);

/// It is one record, which the socket's buffer takes unless the hub has long taken nothing.
const HANG_UP_PATIENCE: Duration = Duration::from_millis(200);
