//! The figures of a relay, in its log and in a file.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use downburst_amt::RelayCounts;

use super::{REPORT_INTERVAL, Shared, lock};

/// Counts of datagrams.
#[derive(Default)]
pub(super) struct Figures {
    datagrams: AtomicU64,
    copies: AtomicU64,
    copied_bytes: AtomicU64,
    unsent: AtomicU64,
    unusable: AtomicU64,
}

/// A moment of a relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Moment {
    tunnels: usize,
    groups: usize,
    datagrams: u64,
    copies: u64,
    copied_bytes: u64,
    unsent: u64,
    unusable: u64,
    messages: RelayCounts,
}

/// Reports the figures until it is dropped.
pub(super) struct Reporter {
    shared: Arc<Shared>,
    file: Option<PathBuf>,
}

impl Figures {
    pub(super) fn datagrams(&self, count: usize) {
        add(&self.datagrams, count);
    }

    pub(super) fn copies(&self, count: usize, unsent: usize, bytes: usize) {
        add(&self.copies, count - unsent.min(count));
        add(&self.unsent, unsent);
        add(&self.copied_bytes, bytes);
    }

    pub(super) fn unusable(&self) {
        add(&self.unusable, 1);
    }
}

impl Reporter {
    pub(super) fn new(shared: Arc<Shared>, file: Option<PathBuf>) -> Self {
        Self { shared, file }
    }

    pub(super) async fn run(self) {
        let mut logged = Moment::default();
        for round in 0_u64.. {
            let moment = self.moment();
            if round.is_multiple_of(ROUNDS_PER_LINE) && moment != logged {
                moment.log();
                logged = moment.clone();
            }
            if let Some(Err(error)) = self.file.as_deref().map(|file| write(file, &moment.text())) {
                tracing::warn!(%error, "the figures can't be written");
            }
            tokio::time::sleep(REPORT_INTERVAL).await;
        }
    }

    fn moment(&self) -> Moment {
        let figures = &self.shared.figures;
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let relay = lock(&self.shared.relay);
        Moment {
            tunnels: relay.tunnels(),
            groups: relay.channels(),
            datagrams: load(&figures.datagrams),
            copies: load(&figures.copies),
            copied_bytes: load(&figures.copied_bytes),
            unsent: load(&figures.unsent),
            unusable: load(&figures.unusable),
            messages: relay.counts(),
        }
    }
}

impl Moment {
    fn log(&self) {
        tracing::info!(
            tunnels = self.tunnels,
            groups = self.groups,
            datagrams = self.datagrams,
            copies = self.copies,
            unsent = self.unsent,
            refused = self.messages.refused(),
            "AMT relay goes on"
        );
    }

    /// In Prometheus' text format.
    fn text(&self) -> String {
        let RelayCounts { malformed, too_frequent, not_authentic, no_room, not_carried, .. } = self.messages;
        let number = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
        let plain = [
            ("tunnels", "gauge", "Gateways that receive a group.", number(self.tunnels)),
            ("groups", "gauge", "Groups and sources that are joined.", number(self.groups)),
            ("datagrams_total", "counter", "Datagrams of these groups.", self.datagrams),
            ("copies_total", "counter", "Copies sent to gateways.", self.copies),
            ("copied_bytes_total", "counter", "Bytes of these copies.", self.copied_bytes),
            ("unsent_copies_total", "counter", "Copies for which there was no room or no way.", self.unsent),
            (
                "unusable_datagrams_total",
                "counter",
                "Datagrams with a wrong checksum or no hop left.",
                self.unusable,
            ),
            ("queries_total", "counter", "Requests answered, each with one query.", self.messages.queried),
        ];
        let mut text = String::new();
        for (name, kind, help, value) in plain {
            let name = format!("downburst_amt_{name}");
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        let refused = [
            ("malformed", malformed),
            ("too-frequent", too_frequent),
            ("not-authentic", not_authentic),
            ("no-room", no_room),
            ("not-carried", not_carried),
        ];
        text.push_str("# HELP downburst_amt_refused_total Messages refused.\n");
        text.push_str("# TYPE downburst_amt_refused_total counter\n");
        for (reason, value) in refused {
            let _ = writeln!(text, "downburst_amt_refused_total{{reason=\"{reason}\"}} {value}");
        }
        text
    }
}

/// A reader never sees half a file.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    std::fs::write(&part, text)?;
    std::fs::rename(&part, file)
}

fn add(count: &AtomicU64, more: usize) {
    count.fetch_add(u64::try_from(more).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// A line of the log every minute, if anything has changed.
const ROUNDS_PER_LINE: u64 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_every_figure_with_its_help() {
        let messages = RelayCounts { not_authentic: 4, queried: 9, ..RelayCounts::default() };
        let text = Moment { tunnels: 2, copies: 7, messages, ..Moment::default() }.text();
        for line in [
            "downburst_amt_tunnels 2",
            "downburst_amt_copies_total 7",
            "# TYPE downburst_amt_queries_total counter",
            "downburst_amt_queries_total 9",
            "downburst_amt_refused_total{reason=\"not-authentic\"} 4",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}");
        }
        assert!(text.lines().all(|line| line.contains("downburst_amt_")), "{text}");
    }

    #[test]
    fn the_file_is_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("amt.prom");
        write(&file, "old").unwrap();
        write(&file, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
