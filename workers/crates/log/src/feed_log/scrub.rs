//! Reading an open log as a whole, to find damage before the data is needed.

use std::sync::Weak;

use downburst_model::{ProductKey, Sequence};

use crate::{Copied, FeedLog, Finding, Flaw, LogError, LogReader, Verified, files::identity::Identity};

impl FeedLog {
    /// Reads every file of the log once. `pace` receives the number of bytes read and may wait; `report` receives
    /// the damage, and `lost` each product found damaged for the first time, by its name at its source.
    ///
    /// A damaged product is no longer served, and its source may deliver it again. `identity` and `sequence` are
    /// rewritten from the state of the open log. The scrub releases a log that is closed in between.
    pub fn scrub(
        log: &Weak<Self>,
        pace: &mut dyn FnMut(u64),
        report: &mut dyn FnMut(Flaw),
        lost: &mut dyn FnMut(ProductKey),
    ) -> Result<Verified, LogError> {
        let Some((reader, repaired)) = log.upgrade().map(|log| log.prepare(report)).transpose()? else {
            return Ok(Verified::default());
        };
        let mut hear = |finding: Finding| match finding {
            Finding::Read(bytes) => pace(bytes),
            Finding::Flaw(flaw) => {
                if let (Some(sequence), Some(log)) = (flaw.sequence, log.upgrade()) {
                    log.look_again_at(sequence).into_iter().for_each(&mut *lost);
                }
                report(flaw);
            }
        };
        let mut verified = reader.verify(&mut hear)?;
        verified.flaws += repaired;
        Ok(verified)
    }

    /// Returns a reader, after the repairs that it needs.
    fn prepare(&self, report: &mut dyn FnMut(Flaw)) -> Result<(LogReader, u64), LogError> {
        let repaired = self.repair_small_files(report)?;
        Ok((LogReader::open(&self.dir)?, repaired))
    }

    /// Rewrites the damaged files that the open log can restore; returns their number.
    fn repair_small_files(&self, report: &mut dyn FnMut(Flaw)) -> Result<u64, LogError> {
        let mut repaired = 0;
        if Identity::read(&self.dir)?.is_none() {
            self.identity.write(&self.dir)?;
            repaired += self.repaired("identity", report);
        }
        let mut reservation = self.reservation();
        if !reservation.is_whole()? {
            reservation.write_again()?;
            repaired += self.repaired("sequence", report);
        }
        Ok(repaired)
    }

    fn repaired(&self, name: &str, report: &mut dyn FnMut(Flaw)) -> u64 {
        let sentence = "the file was damaged or missing; it was rewritten from the open log".to_owned();
        report(Flaw { path: self.dir.join(name), offset: 0, sequence: None, sentence });
        1
    }

    /// Examines the product again, so that damaged bytes are not served. Returns its name at its source if it has one
    /// and was served until now.
    fn look_again_at(&self, sequence: Sequence) -> Option<ProductKey> {
        match self.examine(sequence) {
            Ok(Copied::Damaged(_)) => Some(self.read_entry(sequence).ok()??.source?.key),
            Ok(Copied::Gone | Copied::Intact) => None,
            Err(error) => {
                let feed = &self.identity.feed;
                tracing::error!(%feed, sequence = sequence.0, %error, "a damaged product can't be checked again");
                None
            }
        }
    }
}
