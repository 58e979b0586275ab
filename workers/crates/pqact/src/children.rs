//! A program started by an action: it has its own process group and limits, and its output goes to the log.
use std::io::{self, BufRead as _, BufReader, ErrorKind, PipeReader, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::os::fd::AsFd as _;

use super::failure::{Failure, Then};
use super::stop::Stop;

/// A running program. Dropping this ends the program with everything it started.
pub(super) struct Child {
    name: String,
    process: std::process::Child,
    input: Option<ChildStdin>,
    said: Arc<Said>,
    ended: Option<ExitStatus>,
}

/// The last line of a program's standard output and error, and whether the output has ended.
#[derive(Default)]
struct Said {
    words: Mutex<(String, bool)>,
    changed: Condvar,
}

impl Child {
    /// Starts a program in a directory, with a pipe to its standard input if `input` is true.
    pub(super) fn start(command: &[String], directory: &Path, input: bool) -> Result<Self, Failure> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(Failure::new(Then::GiveUp, "there is no program to start"));
        };
        let (said, child) = spawn(program, arguments, directory, input).map_err(|error| {
            let then = match error.kind() {
                ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::InvalidInput => Then::GiveUp,
                _ => Then::Again,
            };
            Failure::new(then, format!("{program} can't be started: {error}; check its path and rights"))
        })?;
        let mut child = Self {
            name: program.rsplit('/').next().unwrap_or(program).to_owned(),
            process: child,
            input: None,
            said: listen(said, program),
            ended: None,
        };
        child.input = child.process.stdin.take();
        if let Some(input) = &child.input {
            let set = fcntl(input, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
            set.map_err(|error| {
                Failure::new(Then::Again, format!("{program} can't be written to: {error}"))
            })?;
        }
        Ok(child)
    }

    /// Writes all bytes, as fast as the program reads.
    pub(super) fn write(&mut self, bytes: &[u8], deadline: Instant, stop: &Stop) -> Result<(), Failure> {
        let mut left = bytes;
        while !left.is_empty() {
            let Some(input) = &self.input else {
                return Err(Failure::new(Then::Again, format!("{} takes no more input", self.name)));
            };
            match nix::unistd::write(input, left) {
                Ok(written) => left = left.get(written..).unwrap_or_default(),
                Err(nix::errno::Errno::EINTR) => {}
                Err(nix::errno::Errno::EAGAIN) => self.wait_writable(deadline, stop)?,
                Err(_) => return Err(self.broken()),
            }
        }
        Ok(())
    }

    fn wait_writable(&mut self, deadline: Instant, stop: &Stop) -> Result<(), Failure> {
        let Some(input) = &self.input else { return Ok(()) };
        let left = stop.bound(deadline).saturating_duration_since(Instant::now());
        if left.is_zero() {
            let asked = stop.is_asked();
            self.end();
            return Err(if asked { Failure::stopped() } else { self.too_slow("took no input") });
        }
        let slice = left.min(LOOK_INTERVAL);
        let timeout = PollTimeout::try_from(slice).unwrap_or(PollTimeout::ZERO);
        let _ = poll(&mut [PollFd::new(input.as_fd(), PollFlags::POLLOUT)], timeout);
        Ok(())
    }

    /// The program stopped reading.
    fn broken(&mut self) -> Failure {
        self.input = None;
        let patience = Instant::now() + GOODBYE;
        while self.look().is_none() && Instant::now() < patience {
            std::thread::sleep(SHORT);
        }
        match self.ended {
            Some(status) => self.failure(status, "before it had read everything"),
            None => {
                self.end();
                Failure::new(
                    Then::Again,
                    format!("{} closed its input before it had read everything", self.name),
                )
            }
        }
    }

    /// Closes the program's input.
    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    /// The exit status, if the program has ended.
    pub(super) fn look(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.process.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Waits for the program's end; a status other than 0 is a failure.
    pub(super) fn wait(&mut self, deadline: Instant, stop: &Stop) -> Result<(), Failure> {
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(result) = self.result(deadline, stop) {
                return result;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(SHORT);
        }
    }

    /// The outcome, once the program has ended or its time is up.
    pub(super) fn result(&mut self, deadline: Instant, stop: &Stop) -> Option<Result<(), Failure>> {
        if let Some(status) = self.look() {
            return Some(if status.success() { Ok(()) } else { Err(self.failure(status, "")) });
        }
        if Instant::now() < stop.bound(deadline) {
            return None;
        }
        let asked = stop.is_asked();
        self.end();
        Some(Err(if asked { Failure::stopped() } else { self.too_slow("was at work") }))
    }

    /// Ends the program with everything it started, unless it has ended already.
    pub(super) fn end(&mut self) {
        self.input = None;
        if self.look().is_some() {
            return;
        }
        let group = Pid::from_raw(i32::try_from(self.process.id()).unwrap_or(i32::MAX));
        let _ = killpg(group, Signal::SIGTERM);
        let patience = Instant::now() + GOODBYE;
        while self.look().is_none() && Instant::now() < patience {
            std::thread::sleep(SHORT);
        }
        let _ = killpg(group, Signal::SIGKILL);
        if self.ended.is_none() {
            self.ended = self.process.wait().ok();
        }
    }

    fn too_slow(&self, what: &str) -> Failure {
        let last = self.said.last(Duration::ZERO);
        Failure::new(Then::Again, format!("{} {what} beyond its time limit and was ended{last}", self.name))
    }

    fn failure(&self, status: ExitStatus, when: &str) -> Failure {
        let (exit, how) = match (status.code(), status.signal()) {
            (Some(code), _) => (Some(code), format!("ended with status {code}")),
            (None, Some(signal)) => (Some(-signal), format!("was ended by signal {signal}")),
            (None, None) => (None, "ended".to_owned()),
        };
        let space = if when.is_empty() { "" } else { " " };
        let last = self.said.last(LAST_WORDS);
        Failure { exit, sentence: format!("{} {how}{space}{when}{last}", self.name), then: Then::Again }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}

impl Said {
    /// The last line of output, as a clause of an error message; waits up to `patience` for the end of the output.
    fn last(&self, patience: Duration) -> String {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(words, patience, |(_, ended)| !*ended);
        let words = waited.unwrap_or_else(PoisonError::into_inner).0;
        if words.0.is_empty() { String::new() } else { format!("; its output: {}", words.0) }
    }
}

fn spawn(
    program: &str,
    arguments: &[String],
    directory: &Path,
    input: bool,
) -> io::Result<(PipeReader, std::process::Child)> {
    let (reader, writer) = io::pipe()?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(directory)
        .process_group(0)
        .stdin(if input { Stdio::piped() } else { Stdio::null() })
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let child = command.spawn()?;
    Ok((reader, child))
}

/// Starts a thread that logs the output, until the last process that holds the output closes it.
fn listen(reader: PipeReader, program: &str) -> Arc<Said> {
    let said = Arc::<Said>::default();
    let (to, program) = (Arc::clone(&said), program.to_owned());
    let thread = std::thread::Builder::new().name("words".to_owned()).spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while matches!(reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line), Ok(1..)) {
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            line.clear();
            if !text.is_empty() {
                tracing::info!(program, "{text}");
                let mut words = to.words.lock().unwrap_or_else(PoisonError::into_inner);
                words.0 = text.chars().take(KEPT_CHARS).collect();
            }
        }
        to.words.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        to.changed.notify_all();
    });
    if let Err(error) = thread {
        tracing::warn!(%error, "a program's error output can't be read");
    }
    said
}

const LOOK_INTERVAL: Duration = Duration::from_millis(200);
const SHORT: Duration = Duration::from_millis(10);
/// The time a program has to end by itself, or after SIGTERM.
const GOODBYE: Duration = Duration::from_secs(2);
/// The last output may arrive shortly after the exit; a process that holds the output for longer is not awaited.
const LAST_WORDS: Duration = Duration::from_secs(3);
const LONGEST_LINE: u64 = 4_096;
const KEPT_CHARS: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn start(words: &[&str], input: bool) -> Result<Child, Failure> {
        let command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Child::start(&command, Path::new("/"), input)
    }

    fn late() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn a_failure_tells_status_and_last_words() {
        let mut child = start(&["sh", "-c", "echo first; echo no such station >&2; exit 3"], false).unwrap();
        let failure = child.wait(late(), &Stop::default()).unwrap_err();
        assert_eq!((failure.exit, failure.then), (Some(3), Then::Again));
        assert!(failure.sentence.contains("status 3") && failure.sentence.contains("no such station"));
        let mut killed = start(&["sh", "-c", "kill -9 $$"], false).unwrap();
        assert_eq!(killed.wait(late(), &Stop::default()).unwrap_err().exit, Some(-9));
    }

    #[test]
    fn a_program_that_is_not_there_is_given_up() {
        let failure = start(&["/no/such/decoder"], false).err().unwrap();
        assert_eq!(failure.then, Then::GiveUp);
        assert!(failure.sentence.contains("/no/such/decoder"), "{}", failure.sentence);
    }

    #[test]
    fn beyond_its_limit_it_is_ended_with_all_that_it_started() {
        let root = tempfile::tempdir().unwrap();
        let pid = root.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; wait", pid.display());
        let mut child = start(&["sh", "-c", &script], false).unwrap();
        let grandchild = loop {
            match std::fs::read_to_string(&pid).unwrap_or_default().trim().parse::<i32>() {
                Ok(pid) => break pid,
                Err(_) => std::thread::sleep(SHORT),
            }
        };
        let failure = child.wait(Instant::now(), &Stop::default()).unwrap_err();
        assert!(failure.sentence.contains("time limit"), "{}", failure.sentence);
        let deadline = late();
        let alive = || {
            let state = std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
            state.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
        };
        while alive() {
            assert!(Instant::now() < deadline, "what it started goes on");
            std::thread::sleep(SHORT);
        }
    }

    #[test]
    fn what_is_written_arrives_and_a_reader_that_goes_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let copy = root.path().join("copy");
        let bytes = vec![7u8; 1 << 20];
        let mut child = start(&["sh", "-c", &format!("cat > {}", copy.display())], true).unwrap();
        child.write(&bytes, late(), &Stop::default()).unwrap();
        child.close_input();
        child.wait(late(), &Stop::default()).unwrap();
        assert!(std::fs::read(copy).unwrap() == bytes);
        let mut gone = start(&["sh", "-c", "exit 4"], true).unwrap();
        let failure = gone.write(&bytes, late(), &Stop::default()).unwrap_err();
        assert_eq!((failure.exit, failure.then), (Some(4), Then::Again));
    }

    #[test]
    fn a_reader_that_stands_still_is_ended_at_its_limit() {
        let mut child = start(&["sleep", "600"], true).unwrap();
        let soon = Instant::now() + Duration::from_millis(50);
        let failure = child.write(&vec![0; 1 << 20], soon, &Stop::default()).unwrap_err();
        assert!(failure.sentence.contains("took no input"), "{}", failure.sentence);
        assert!(child.look().is_some());
    }

    #[test]
    fn a_stop_is_no_failure_of_the_product() {
        let stop = Stop::default();
        let mut child = start(&["sleep", "600"], false).unwrap();
        stop.ask(&super::super::notifier::Notifier::default());
        assert_eq!(child.wait(late(), &stop).unwrap_err().then, Then::Stop);
    }
}
