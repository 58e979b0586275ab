//! Files of latency figures for the agent, which loads each of them once.
use std::fs;

use downburst_hub::is_batch_name;

use crate::disk;
use crate::hub::{Hub, lock};
use crate::lines::Event;

impl Hub {
    /// Writes the gathered figures as a batch file and reports its name to the agent.
    pub(in crate::hub) fn write_batch(&self) {
        let Some(batch) = lock(&self.figures.batches).take() else { return };
        let path = self.start.batch_dir.join(format!("{}.json", batch.batch));
        let aside = path.with_extension("tmp");
        let written = serde_json::to_vec(&batch)
            .map_err(std::io::Error::from)
            .and_then(|bytes| fs::write(&aside, bytes))
            .and_then(|()| fs::rename(&aside, &path));
        match written {
            Ok(()) => self.event(&Event::Batch { batch: batch.batch, path }),
            Err(error) => {
                let sentence = format!(
                    "latency figures could not be written to {}: {error}; {}",
                    path.display(),
                    disk::remedy(&error)
                );
                self.fault(sentence, None);
            }
        }
    }

    /// Removes a batch file that the agent has loaded.
    pub(in crate::hub) fn batch_loaded(&self, batch: &str) {
        if is_batch_name(batch) {
            let _ = fs::remove_file(self.start.batch_dir.join(format!("{batch}.json")));
        }
    }
}
