//! Reads a ring that was recorded before, or is being recorded.
use downburst_model::WallMicros;
use downburst_tracer::{Gathering, Standing, TracerAnswer, Wanted};

use super::file::RingFile;
use super::{Lines, Stop, Task};

/// The limits of the chosen connections; writes the lines of all their samples.
pub(super) fn read(task: Task) -> Result<TracerAnswer, Stop> {
    let (ring, found) = RingFile::look_into(&task.ring).map_err(Stop::Failed)?;
    let newest = found.span.map_or(WallMicros(0), |(_, newest)| newest);
    let from = task.seconds.map_or(i64::MIN, |seconds| newest.0.saturating_sub((seconds * 1e6) as i64));
    let Task { selection, points, variables, csv, .. } = task;
    let wanted = Wanted { selection, from: WallMicros(from), to: WallMicros(i64::MAX), points, variables };
    gather(&ring, wanted, csv.map(Lines::begin).transpose()?, Standing::default())
}

/// Reads a whole ring.
pub(super) fn gather(
    ring: &RingFile,
    wanted: Wanted,
    mut lines: Option<Lines>,
    standing: Standing,
) -> Result<TracerAnswer, Stop> {
    let (mut gathering, mut written) = (Gathering::new(wanted.clone()), Ok(()));
    let scan = ring.scan(|record| {
        if let Some(lines) = lines.as_mut().filter(|_| wanted.takes(&record) && written.is_ok()) {
            written = lines.add(&record.connection, &record.sample);
        }
        gathering.take(record);
    });
    let unreadable = |error| format!("the ring can't be read: {error}; look at its disk");
    let scan = scan.map_err(|error| Stop::Failed(unreadable(error)))?;
    written?;
    if let Some(lines) = &mut lines {
        lines.out.flush()?;
    }
    Ok(gathering.answer(standing, &scan))
}
