//! Looks at the sockets of this host, and records those that are chosen.
use std::collections::BTreeSet;
use std::path::Path;
use std::pin::pin;

use downburst_host::{Family, Sockets, TcpSocket};
use downburst_model::{Micros, WallMicros};
use downburst_tracer::{Connection, Recorder, Role, Sample, Selection, Standing, TracerAnswer, Wanted};

use super::file::RingFile;
use super::processes::Processes;
use super::ticks::Ticks;
use super::{Lines, Stop, Task, reading};
use crate::clock::Clock;

/// Records until the time is over or a signal comes, then judges what was recorded.
pub(super) async fn record(task: Task) -> Result<TracerAnswer, Stop> {
    let clock = Clock::start(0);
    let mut looking = Looking::begin(&task, clock)?;
    let lines = task.csv.map(Lines::begin).transpose()?;
    let mut recording =
        Recording { ring: RingFile::open_own(&task.ring, task.room).map_err(Stop::Failed)?, lines };
    let from = clock.wall();
    if task.seconds.is_none() {
        tracing::info!("samples go to {} until Ctrl-C", task.ring.display());
    }
    let ends_after = task.seconds.map_or(Micros(u64::MAX), |seconds| Micros((seconds * 1e6) as u64));
    let (mut ticks, mut missed_ticks) = (Ticks::begin(clock, Micros::from_millis(task.every_ms)), 0);
    let mut ended = pin!(crate::signals::ended());
    while ticks.passed() < ends_after {
        tokio::select! {
            () = &mut ended => break,
            () = tokio::time::sleep(ticks.pause()) => {}
        }
        let (connections, worth) = looking.look()?;
        recording.write(worth, &task.ring)?;
        missed_ticks += ticks.looked(connections);
    }
    let Task { selection, points, variables, .. } = task;
    let wanted = Wanted { selection, from, to: WallMicros(i64::MAX), points, variables };
    reading::gather(&recording.ring, wanted, None, Standing { unable: None, missed_ticks })
}

/// The sockets, and the choice of them.
struct Looking {
    clock: Clock,
    sockets: Sockets,
    selection: Selection,
    processes: Option<Processes>,
    recorder: Recorder,
}

impl Looking {
    fn begin(task: &Task, clock: Clock) -> Result<Self, Stop> {
        let chosen = (!task.processes.is_empty()).then(|| task.processes.clone());
        let processes = chosen.map(|chosen| Processes::begin(chosen, clock.monotonic())).transpose();
        Ok(Self {
            clock,
            sockets: Sockets::open().map_err(|error| unable(&error))?,
            selection: task.selection.clone(),
            processes: processes.map_err(Stop::Failed)?,
            recorder: Recorder::default(),
        })
    }

    /// The number of open connections that are chosen, and their samples that are worth a record.
    fn look(&mut self) -> Result<(usize, Vec<(Connection, Sample)>), Stop> {
        let mut open = Vec::new();
        // IPv4 connections of a socket that listens on an IPv6 address are found among the latter.
        for family in [Family::V4, Family::V6] {
            open.extend(self.sockets.tcp(family, None).map_err(|error| unable(&error))?);
        }
        let now = self.clock.now();
        open.retain(|it| self.selection.takes_ends(it.local, it.peer));
        if let Some(processes) = &mut self.processes {
            let numbers: BTreeSet<u32> = open.iter().map(|it| it.inode).collect();
            let own = processes.sockets(numbers, now.monotonic);
            open.retain(|it| own.contains(&it.inode));
        }
        let samples = open.iter().map(|it| (connection(it), Sample::read(now.wall, &it.info)));
        Ok((open.len(), self.recorder.worth(now.monotonic, samples)))
    }
}

/// The output of looks.
struct Recording {
    ring: RingFile,
    lines: Option<Lines>,
}

impl Recording {
    fn write(&mut self, samples: Vec<(Connection, Sample)>, path: &Path) -> Result<(), Stop> {
        if let Some(lines) = &mut self.lines {
            samples.iter().try_for_each(|(connection, sample)| lines.add(connection, sample))?;
            lines.out.flush()?;
        }
        let unwritable = |error| {
            let path = path.display();
            Stop::Failed(format!("{path} can't be written: {error}; free some space, or look at the disk"))
        };
        self.ring.write(samples).map_err(unwritable)
    }
}

fn connection(socket: &TcpSocket) -> Connection {
    Connection { local: socket.local, peer: socket.peer, site: None, role: Role::Other }
}

fn unable(error: &dyn std::fmt::Display) -> Stop {
    Stop::Failed(super::no_report(error))
}
