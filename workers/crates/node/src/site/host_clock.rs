//! The state of this host's clock, for the hub: the kernel's word, and the daemon that disciplines it.
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use downburst_clock::KernelStanding;
use downburst_session::SiteClock;
use tokio::sync::{Notify, mpsc, oneshot};

/// Reports of this host's clock for one connection.
pub(super) struct HostClock {
    read: mpsc::UnboundedReceiver<SiteClock>,
    ask: Arc<Notify>,
}

impl HostClock {
    /// Starts a task that ends with the connection.
    pub(super) fn start() -> Self {
        let (say, read) = mpsc::unbounded_channel();
        let ask = Arc::new(Notify::new());
        tokio::spawn(report(say, Arc::clone(&ask)));
        Self { read, ask }
    }

    /// Reads the clock now: a session has begun.
    pub(super) fn refresh(&self) {
        self.ask.notify_one();
    }

    /// The next report; cancelling the wait loses nothing.
    pub(super) async fn next(&mut self) -> SiteClock {
        match self.read.recv().await {
            Some(clock) => clock,
            None => std::future::pending().await,
        }
    }
}

async fn report(say: mpsc::UnboundedSender<SiteClock>, ask: Arc<Notify>) {
    loop {
        tokio::select! {
            () = say.closed() => return,
            () = ask.notified() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
        if let Some(clock) = read_apart().await {
            let _ = say.send(clock);
        }
    }
}

/// Reads on a thread of its own, which ends: a thread of the runtime's pool would stay, and be woken.
async fn read_apart() -> Option<SiteClock> {
    let (done, clock) = oneshot::channel();
    let thread = std::thread::Builder::new().name("host-clock".to_owned());
    if let Err(error) = thread.spawn(move || done.send(read())) {
        tracing::warn!("no thread to read the host's clock: {error}");
    }
    clock.await.ok().flatten()
}

/// `None`: the kernel does not answer.
fn read() -> Option<SiteClock> {
    let KernelStanding { synchronized: synchronised, error_us, estimated_error_us } = KernelStanding::read()?;
    let daemon = daemon(Path::new("/proc")).map(str::to_owned);
    Some(SiteClock { synchronised, error_us, estimated_error_us, daemon })
}

/// The daemon that disciplines the clock, by the processes that this one sees. In a container, that of the host is not
/// among them.
fn daemon(processes: &Path) -> Option<&'static str> {
    let found = fs::read_dir(processes).ok()?.flatten().take(MOST_PROCESSES);
    let ranks = found.filter_map(|entry| {
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        DAEMONS.iter().position(|(program, _)| *program == name.trim_end())
    });
    ranks.min().and_then(|rank| DAEMONS.get(rank)).map(|(_, name)| *name)
}

/// Programs as the kernel names them (15 bytes at most), and their names in reports. Of several, the first counts:
/// timemaster starts chronyd and ptp4l, and phc2sys steers the wall clock while ptp4l steers the clock of a network
/// card.
const DAEMONS: [(&str, &str); 6] = [
    ("timemaster", "timemaster"),
    ("phc2sys", "ptp"),
    ("chronyd", "chrony"),
    ("ntpd", "ntpd"),
    ("ptp4l", "ptp"),
    ("systemd-timesyn", "timesyncd"),
];
/// The limit of a search.
const MOST_PROCESSES: usize = 65_536;
const INTERVAL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn found(programs: &[&str]) -> Option<&'static str> {
        let processes = tempfile::tempdir().unwrap();
        for (number, program) in programs.iter().enumerate() {
            let process = processes.path().join(number.to_string());
            fs::create_dir(&process).unwrap();
            fs::write(process.join("comm"), format!("{program}\n")).unwrap();
        }
        fs::write(processes.path().join("uptime"), "1").unwrap();
        daemon(processes.path())
    }

    #[test]
    fn the_daemon_that_steers_the_wall_clock_is_named() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&["bash", "my-chronyd"]), None);
        assert_eq!(found(&["bash", "chronyd"]), Some("chrony"));
        assert_eq!(
            found(&["ptp4l", "chronyd"]),
            Some("chrony"),
            "ptp4l may serve as a reference clock of chronyd"
        );
        assert_eq!(found(&["ptp4l", "phc2sys"]), Some("ptp"));
        assert_eq!(found(&["chronyd", "ptp4l", "timemaster"]), Some("timemaster"));
        assert_eq!(found(&["systemd-timesyn"]), Some("timesyncd"));
        assert_eq!(daemon(Path::new("/no/such/directory")), None);
    }

    #[tokio::test]
    async fn each_session_gets_a_report_when_it_begins() {
        let mut clock = HostClock::start();
        for _ in 0..2 {
            clock.refresh();
            let report = clock.next().await;
            assert!(report.error_us > 0, "the kernel's largest error is never zero: {report:?}");
        }
    }
}
