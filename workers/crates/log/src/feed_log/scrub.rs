//! Reading everything of a log that is open, to find what is damaged before somebody needs it.

use std::sync::Weak;

use downburst_model::Sequence;

use crate::{Copied, FeedLog, Finding, Flaw, LogError, LogReader, Verified, files::identity::Identity};

impl FeedLog {
    /// Reads every file of the log once. `pace` gets the number of bytes read and may wait; `report` gets the
    /// damage.
    ///
    /// A damaged product is not handed out any more, and its source may bring it again. `identity` and
    /// `sequence` are rewritten from the knowledge of the open log. A log that is closed in between is let
    /// go.
    pub fn scrub(
        log: &Weak<Self>,
        pace: &mut dyn FnMut(u64),
        report: &mut dyn FnMut(Flaw),
    ) -> Result<Verified, LogError> {
        let Some((reader, repaired)) = log.upgrade().map(|log| log.prepare(report)).transpose()? else {
            return Ok(Verified::default());
        };
        let mut hear = |finding: Finding| match finding {
            Finding::Read(bytes) => pace(bytes),
            Finding::Flaw(flaw) => {
                if let (Some(sequence), Some(log)) = (flaw.sequence, log.upgrade()) {
                    log.look_again_at(sequence);
                }
                report(flaw);
            }
        };
        let mut verified = reader.verify(&mut hear)?;
        verified.flaws += repaired;
        Ok(verified)
    }

    /// A reader, which needs what is repaired before.
    fn prepare(&self, report: &mut dyn FnMut(Flaw)) -> Result<(LogReader, u64), LogError> {
        let repaired = self.repair_small_files(report)?;
        Ok((LogReader::open(&self.dir)?, repaired))
    }

    /// Those that the open log can write anew; how many it did.
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

    /// Looks at the product again, so that its bytes are not handed out if they are damaged.
    fn look_again_at(&self, sequence: Sequence) {
        match self.examine(sequence) {
            Ok(Copied::Damaged(_) | Copied::Gone | Copied::Intact) => {}
            Err(error) => {
                let feed = &self.identity.feed;
                tracing::error!(%feed, sequence = sequence.0, %error, "a damaged product can't be checked again");
            }
        }
    }
}
