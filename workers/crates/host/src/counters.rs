//! Counters of a host, from the texts of `/proc`: the load of processors, of a disk and of interfaces.
//!
//! Pure: the texts are arguments. A row describes the time between two looks (the fields are those of proc(5) and of
//! the kernel's `Documentation/admin-guide/iostats.rst`).
use std::fmt::Write as _;

/// The texts of one look.
#[derive(Clone, Copy, Debug)]
pub struct ProcTexts<'a> {
    /// `/proc/stat`.
    pub stat: &'a str,
    /// `/proc/diskstats`.
    pub diskstats: &'a str,
    /// `/proc/net/dev`.
    pub net_dev: &'a str,
    /// `/proc/loadavg`.
    pub loadavg: &'a str,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostLook {
    ticks: Ticks,
    disk_busy_ms: Option<u64>,
    in_bytes: u64,
    out_bytes: u64,
    load: f64,
}

/// Ticks of all processors together since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    all: u64,
    idle: u64,
    iowait: u64,
}

/// The counters of a host between two looks, valid from the first one on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterRow {
    cpu_busy: f64,
    cpu_iowait: f64,
    disk_busy: Option<f64>,
    in_bytes: u64,
    out_bytes: u64,
    load: f64,
}

impl HostLook {
    /// Reads the texts; `disk` is the device, major and minor number, whose use counts.
    ///
    /// # Errors
    /// A part of a sentence that names the text.
    pub fn read(texts: &ProcTexts<'_>, disk: Option<(u32, u32)>) -> Result<Self, &'static str> {
        let (in_bytes, out_bytes) = interfaces(texts.net_dev);
        Ok(Self {
            ticks: ticks(texts.stat).ok_or("/proc/stat has no line of all processors")?,
            disk_busy_ms: disk.and_then(|device| disk_busy_ms(texts.diskstats, device)),
            in_bytes,
            out_bytes,
            load: load(texts.loadavg).ok_or("/proc/loadavg does not begin with a load")?,
        })
    }

    /// True if the disk was found.
    pub fn has_disk(&self) -> bool {
        self.disk_busy_ms.is_some()
    }
}

impl CounterRow {
    /// The row of the time from one look to the next, `elapsed_us` later.
    pub fn between(before: &HostLook, after: &HostLook, elapsed_us: u64) -> Self {
        let all = grown(before.ticks.all, after.ticks.all);
        let idle = share(grown(before.ticks.idle, after.ticks.idle), all);
        let iowait = share(grown(before.ticks.iowait, after.ticks.iowait), all);
        let busy_ms = before.disk_busy_ms.zip(after.disk_busy_ms).map(|(was, is)| grown(was, is));
        Self {
            cpu_busy: if all == 0 { 0.0 } else { (1.0 - idle - iowait).max(0.0) },
            cpu_iowait: iowait,
            disk_busy: busy_ms.map(|busy_ms| share(busy_ms.saturating_mul(1_000), elapsed_us)),
            in_bytes: before.in_bytes,
            out_bytes: before.out_bytes,
            load: before.load,
        }
    }

    /// The first line of a file of rows.
    pub fn header(with_disk: bool) -> String {
        let disk = if with_disk { "disk_busy," } else { "" };
        format!("time_us,host,cpu_busy,cpu_iowait,{disk}net_in_bytes_total,net_out_bytes_total,load\n")
    }

    /// The row as a line under a [`header`](Self::header) with or without the disk.
    pub fn line(&self, at_us: i64, host: &str, with_disk: bool) -> String {
        let mut line = format!("{at_us},{},{:.4},{:.4},", plain(host), self.cpu_busy, self.cpu_iowait);
        if with_disk {
            // Writing to a text does not fail.
            let _ = write!(line, "{:.4},", self.disk_busy.unwrap_or(0.0));
        }
        let _ = writeln!(line, "{},{},{:.2}", self.in_bytes, self.out_bytes, self.load);
        line
    }
}

/// The columns of `cpu` are user, nice, system, idle, iowait, irq, softirq and steal; time of guests is in user.
fn ticks(stat: &str) -> Option<Ticks> {
    let line = stat.lines().take(LINES_MAX).find_map(|line| line.strip_prefix("cpu "))?;
    let counts: Vec<u64> = line.split_ascii_whitespace().take(8).map_while(|it| it.parse().ok()).collect();
    let all = counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
    Some(Ticks { all, idle: *counts.get(3)?, iowait: *counts.get(4)? })
}

/// The milliseconds in which the device had requests under way: the tenth count behind its name.
fn disk_busy_ms(diskstats: &str, (major, minor): (u32, u32)) -> Option<u64> {
    diskstats.lines().take(LINES_MAX).find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let device = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        if device == (major, minor) { words.nth(10)?.parse().ok() } else { None }
    })
}

/// Bytes in and out of all interfaces but the loopback.
fn interfaces(net_dev: &str) -> (u64, u64) {
    let counts = net_dev.lines().take(LINES_MAX).filter_map(|line| {
        let (name, counts) = line.split_once(':')?;
        let mut counts = counts.split_ascii_whitespace();
        let (received, sent) = (counts.next()?.parse().ok()?, counts.nth(7)?.parse().ok()?);
        (name.trim() != "lo").then_some((received, sent))
    });
    counts.fold((0_u64, 0_u64), |(to, from), (received, sent): (u64, u64)| {
        (to.saturating_add(received), from.saturating_add(sent))
    })
}

/// The load of the last minute.
fn load(loadavg: &str) -> Option<f64> {
    let load: f64 = loadavg.split_ascii_whitespace().next()?.parse().ok()?;
    (0.0..=LOAD_MAX).contains(&load).then_some(load)
}

/// Counters of the kernel may begin anew: no growth then.
fn grown(before: u64, after: u64) -> u64 {
    after.saturating_sub(before)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}

/// A name without characters that have a meaning in CSV.
fn plain(host: &str) -> String {
    host.chars()
        .map(|letter| if letter == ',' || letter == '"' || letter.is_control() { '_' } else { letter })
        .collect()
}

/// Of each text; a host has fewer processors, disks and interfaces.
const LINES_MAX: usize = 10_000;

const LOAD_MAX: f64 = 1e9;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DISK: (u32, u32) = (259, 2);
    const TEXTS: ProcTexts<'_> = ProcTexts {
        stat: "cpu  100 5 45 700 150 0 0 0 90 0\ncpu0 100 5 45 700 150 0 0 0 90 0\nintr 5\n",
        diskstats: " 259  1 nvme0n1 1 2 3 4 5 6 7 8 0 900 11\n 259  2 nvme0n1p1 1 2 3 4 5 6 7 8 0 400 11\n",
        net_dev: "Inter-|   Receive   |  Transmit\n face |bytes packets|bytes packets\n    \
                  lo: 999 1 0 0 0 0 0 0 999 1 0 0\n  \
                  eth0: 1000 9 0 0 0 0 0 0 2000 9 0 0\n  eth1:5 1 0 0 0 0 0 0 7 1 0 0\n",
        loadavg: "0.75 0.50 0.25 1/200 4711\n",
    };

    fn look(texts: &ProcTexts<'_>) -> HostLook {
        HostLook::read(texts, Some(DISK)).unwrap()
    }

    #[test]
    fn a_row_has_the_shares_of_its_second_and_the_totals_of_its_beginning() {
        let after = ProcTexts {
            stat: "cpu  110 5 55 760 170 0 0 0 95 0\n",
            diskstats: " 259 2 nvme0n1p1 1 2 3 4 5 6 7 8 0 650 11\n",
            ..TEXTS
        };
        let row = CounterRow::between(&look(&TEXTS), &look(&after), 1_000_000);
        assert_eq!(
            row.line(1_767_225_600_000_000, "hub", true),
            "1767225600000000,hub,0.2000,0.2000,0.2500,1005,2007,0.75\n"
        );
        assert_eq!(row.line(7, "unl.edu", false), "7,unl.edu,0.2000,0.2000,1005,2007,0.75\n");
        for with_disk in [true, false] {
            let columns = |text: &str| text.split(',').count();
            assert_eq!(columns(&CounterRow::header(with_disk)), columns(&row.line(7, "a,\"b\n", with_disk)));
        }
    }

    #[test]
    fn a_disk_that_is_not_listed_is_none() {
        assert!(look(&TEXTS).has_disk());
        assert!(!HostLook::read(&TEXTS, Some((0, 41))).unwrap().has_disk());
        assert!(!HostLook::read(&TEXTS, None).unwrap().has_disk());
    }

    #[test]
    fn counters_that_begin_anew_and_looks_at_the_same_moment_make_no_share() {
        let anew =
            ProcTexts { stat: "cpu 0 0 0 0 0\n", diskstats: " 259 2 d 1 2 3 4 5 6 7 8 0 0 11\n", ..TEXTS };
        for (before, after) in [(&TEXTS, &anew), (&TEXTS, &TEXTS)] {
            let line = CounterRow::between(&look(before), &look(after), 0).line(0, "hub", true);
            assert_eq!(line, "0,hub,0.0000,0.0000,0.0000,1005,2007,0.75\n");
        }
    }

    #[test]
    fn texts_without_their_counters_are_named() {
        for stat in ["", "cpu0 1 2 3 4 5\n", "cpu  1 2 3\n", "cpu  1 2 x 4 5\n"] {
            let read = HostLook::read(&ProcTexts { stat, ..TEXTS }, None);
            assert_eq!(read, Err("/proc/stat has no line of all processors"), "{stat}");
        }
        for loadavg in ["", "high", "-1 0", "NaN", "inf"] {
            let read = HostLook::read(&ProcTexts { loadavg, ..TEXTS }, None);
            assert_eq!(read, Err("/proc/loadavg does not begin with a load"), "{loadavg}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            stat in "(cpu )?[0-9x \\n]{0,200}",
            diskstats in "[0-9a-z \\n]{0,200}",
            net_dev in "([a-z]{0,4}:? ?[0-9]{0,25} {0,3}\\n?){0,40}",
            loadavg in "\\PC{0,20}",
            elapsed_us in any::<u64>(),
        ) {
            let texts = ProcTexts { stat: &stat, diskstats: &diskstats, net_dev: &net_dev, loadavg: &loadavg };
            let calm = look(&TEXTS);
            let read = HostLook::read(&texts, Some(DISK)).unwrap_or(calm);
            for (before, after) in [(&calm, &read), (&read, &calm), (&read, &read)] {
                let line = CounterRow::between(before, after, elapsed_us).line(i64::MIN, &loadavg, true);
                prop_assert_eq!(line.split(',').count(), 8);
                let shares = line.split(',').skip(2).take(3).map(|it| it.parse::<f64>().unwrap());
                prop_assert!(shares.into_iter().all(|share| (0.0..=1.0).contains(&share)));
            }
        }
    }
}
