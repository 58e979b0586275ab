//! The counters of this host, each second as a row of CSV in the node's directory: a study of transfers takes them as
//! possible causes of differences in throughput (`downburst analyze`).
//!
//! One thread reads `/proc`. Its failures are logged once and concern nothing else.
mod file;

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use downburst_host::{CounterRow, HostLook, ProcTexts};
use downburst_model::{Micros, Now};

use crate::clock::Clock;
use crate::tracer::ticks::Ticks;
use file::RowsFile;

/// The name of the host among the hosts of a study; `None` while it is not known.
pub(crate) type HostName = Box<dyn Fn() -> Option<String> + Send>;

/// The recording of this host's counters; it ends when this is dropped.
pub(crate) struct Counters(#[expect(dead_code, reason = "its end is the sign")] Sender<()>);

impl Counters {
    /// Starts to record in `counters/` of the node's directory; without a thread for it, there are no counters.
    pub(crate) fn start(directory: &Path, host: HostName, clock: Clock) -> Self {
        let (ends, ended) = bounded(0);
        let sampler = Sampler::new(directory, PathBuf::from("/proc"), host);
        let run = move || sampler.run(clock, &ended);
        if let Err(error) = std::thread::Builder::new().name("counters".to_owned()).spawn(run) {
            tracing::warn!("the counters of this host are not recorded: there is no thread for it: {error}");
        }
        Self(ends)
    }
}

struct Sampler {
    proc: PathBuf,
    directory: PathBuf,
    disk: Option<(u32, u32)>,
    host: HostName,
    before: Option<(Now, HostLook)>,
    file: Option<RowsFile>,
    /// The reason why no row was written, as logged.
    unable: Option<String>,
}

impl Sampler {
    fn new(directory: &Path, proc: PathBuf, host: HostName) -> Self {
        let disk =
            fs::metadata(directory).ok().map(|found| (libc::major(found.dev()), libc::minor(found.dev())));
        let directory = directory.join(DIRECTORY);
        Self { proc, directory, disk, host, before: None, file: None, unable: None }
    }

    fn run(mut self, clock: Clock, ended: &Receiver<()>) {
        let mut ticks = Ticks::begin(clock, SECOND);
        while ended.recv_timeout(ticks.pause()) == Err(RecvTimeoutError::Timeout) {
            let looked = self.look(clock.now());
            self.tell(looked.err());
            ticks.looked(0);
        }
    }

    /// Reads the counters, and writes the row of the time since the look before. The error is a sentence.
    fn look(&mut self, now: Now) -> Result<(), String> {
        let look = self.read()?;
        let Some((then, before)) = self.before.replace((now, look)) else { return Ok(()) };
        let Some(host) = (self.host)() else { return Ok(()) };
        let elapsed = now.monotonic.since(then.monotonic);
        let with_disk = before.has_disk() && look.has_disk();
        let row = CounterRow::between(&before, &look, elapsed.0);
        let file = match self.file.take().filter(|file| file.has_disk() == with_disk) {
            Some(file) => file,
            None => RowsFile::open(&self.directory, with_disk).map_err(|error| self.unwritable(&error))?,
        };
        let written = file.write(then.wall, &row.line(then.wall.0, &host, with_disk));
        self.file = Some(written.map_err(|error| self.unwritable(&error))?);
        Ok(())
    }

    fn read(&mut self) -> Result<HostLook, String> {
        let texts = ["stat", "diskstats", "net/dev", "loadavg"].map(|name| self.text(name));
        let [stat, diskstats, net_dev, loadavg] = texts;
        // A host without disks of its own has no such text.
        let (stat, diskstats) = (stat?, diskstats.unwrap_or_default());
        let (net_dev, loadavg) = (net_dev?, loadavg?);
        let texts = ProcTexts { stat: &stat, diskstats: &diskstats, net_dev: &net_dev, loadavg: &loadavg };
        HostLook::read(&texts, self.disk).map_err(|what| {
            self.before = None;
            what.to_owned()
        })
    }

    fn text(&self, name: &str) -> Result<String, String> {
        let path = self.proc.join(name);
        let read = || {
            let mut bytes = Vec::new();
            fs::File::open(&path)?.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().map_err(|error: io::Error| format!("{} can't be read: {error}", path.display()))
    }

    fn unwritable(&self, error: &io::Error) -> String {
        let path = self.directory.display();
        format!("{path} can't be written: {error}; {}", crate::disk::remedy(error))
    }

    /// Logs whether rows are written, each change once.
    fn tell(&mut self, sentence: Option<String>) {
        if self.unable == sentence {
            return;
        }
        match &sentence {
            Some(sentence) => tracing::warn!("the counters of this host are not recorded: {sentence}"),
            None => tracing::info!("the counters of this host are recorded again"),
        }
        self.unable = sentence;
    }
}

/// In the node's directory.
const DIRECTORY: &str = "counters";

const SECOND: Micros = Micros::from_secs(1);

/// Of each text; a host with a thousand processors writes a third of it.
const TEXT_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use downburst_model::WallMicros;

    use super::*;

    /// The `/proc` of a host whose processors are busy for a quarter of each second, after so many.
    fn proc_of(directory: &Path, seconds: u64) {
        fs::create_dir_all(directory.join("net")).unwrap();
        let text = |name: &str, text: String| fs::write(directory.join(name), text).unwrap();
        text("stat", format!("cpu  {} 0 0 {} 0 0 0 0\n", 25 * seconds, 75 * seconds));
        text("net/dev", format!("eth0: {} 0 0 0 0 0 0 0 {} 0\n", 9 * seconds, 18 * seconds));
        text("loadavg", "0.50 0 0\n".to_owned());
    }

    fn at(second: u64) -> Now {
        let micros = second * SECOND.0;
        Now { monotonic: Micros(micros), wall: WallMicros(micros.cast_signed()) }
    }

    fn sampler(home: &Path, host: HostName) -> Sampler {
        Sampler::new(home, home.join("proc"), host)
    }

    fn rows(home: &Path) -> Vec<String> {
        let text = fs::read_to_string(home.join("counters/newest.csv")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn each_look_but_the_first_writes_the_row_of_the_second_before_it() {
        let home = tempfile::tempdir().unwrap();
        let mut sampler = sampler(home.path(), Box::new(|| Some("hub".to_owned())));
        for second in 1..=3 {
            proc_of(&home.path().join("proc"), second);
            sampler.look(at(second)).unwrap();
        }
        let expected = [
            "time_us,host,cpu_busy,cpu_iowait,net_in_bytes_total,net_out_bytes_total,load",
            "1000000,hub,0.2500,0.0000,9,18,0.50",
            "2000000,hub,0.2500,0.0000,18,36,0.50",
        ];
        assert_eq!(rows(home.path()), expected);
    }

    #[test]
    fn a_host_without_a_name_waits_and_one_without_counters_says_so_once() {
        let home = tempfile::tempdir().unwrap();
        let mut nameless = sampler(home.path(), Box::new(|| None));
        let proc = home.path().join("proc");
        assert!(nameless.look(at(1)).unwrap_err().contains("proc/stat can't be read"));
        proc_of(&proc, 1);
        (2..5).for_each(|second| nameless.look(at(second)).unwrap());
        assert!(!home.path().join("counters").exists());
        fs::write(proc.join("stat"), "nothing").unwrap();
        let sentence = nameless.look(at(5)).unwrap_err();
        assert_eq!(sentence, "/proc/stat has no line of all processors");
        nameless.tell(Some(sentence.clone()));
        assert_eq!(nameless.unable, Some(sentence));
        nameless.tell(None);
        assert_eq!((nameless.unable, nameless.before), (None, None));
    }

    #[test]
    fn a_place_that_can_not_be_written_is_named_and_tried_again() {
        let home = tempfile::tempdir().unwrap();
        proc_of(&home.path().join("proc"), 1);
        fs::write(home.path().join("counters"), "a file in place of the directory").unwrap();
        let mut sampler = sampler(home.path(), Box::new(|| Some("hub".to_owned())));
        sampler.look(at(1)).unwrap();
        assert!(sampler.look(at(2)).unwrap_err().contains("counters can't be written"));
        fs::remove_file(home.path().join("counters")).unwrap();
        sampler.look(at(3)).unwrap();
        assert_eq!(rows(home.path()).len(), 2);
    }

    #[test]
    fn the_thread_records_this_host_until_it_is_dropped() {
        let home = tempfile::tempdir().unwrap();
        let counters = Counters::start(home.path(), Box::new(|| Some("hub".to_owned())), Clock::start(0));
        while rows(home.path()).len() < 3 {
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(counters);
        assert!(rows(home.path())[1].contains(",hub,"));
    }
}
