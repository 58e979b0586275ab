//! Products written to long-running programs.
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::children::Child;
use super::failure::{Failure, Then};
use super::stop::Stop;
use super::task::{Task, Work};

/// The programs that one line of actions writes to, by their commands.
pub(super) struct Pipes {
    directory: PathBuf,
    /// Ordered by last use, the latest last.
    open: Vec<(Vec<String>, Child)>,
    /// Programs that received their last product, with the deadline for their exit.
    leaving: Vec<(Child, Instant)>,
}

impl Pipes {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), open: Vec::new(), leaving: Vec::new() }
    }

    /// Writes the bytes of a product, and with `close` ends the program's input and waits for its exit.
    pub(super) fn write(&mut self, task: &Task, bytes: &[u8], stop: &Stop) -> Result<(), Failure> {
        let Work::Pipe { command, close } = &task.work else {
            return Err(Failure::new(Then::GiveUp, "this is no pipe"));
        };
        self.let_go();
        let deadline = Instant::now() + task.limit();
        let mut written = self.write_once(command, bytes, deadline, stop);
        if let Err((failure, true)) = &written
            && failure.then == Then::Again
        {
            // It ended between two products, as decoders do that were idle for a while.
            tracing::info!("{}; it is restarted", failure.sentence);
            written = self.write_once(command, bytes, deadline, stop);
        }
        written.map_err(|(failure, _)| failure)?;
        let ends = close.then(|| self.open.pop()).flatten();
        ends.map_or(Ok(()), |(_, mut child)| {
            child.close_input();
            child.wait(deadline, stop)
        })
    }

    /// The error is paired with true if the program had been started for an earlier product.
    fn write_once(
        &mut self,
        command: &[String],
        bytes: &[u8],
        deadline: Instant,
        stop: &Stop,
    ) -> Result<(), (Failure, bool)> {
        let known = self.open.iter().position(|(words, _)| words == command);
        let known = known.map(|at| self.open.remove(at).1).and_then(still_there);
        let was_there = known.is_some();
        let mut child = match known {
            Some(child) => child,
            None => Child::start(command, &self.directory, true).map_err(|failure| (failure, false))?,
        };
        child.write(bytes, deadline, stop).map_err(|failure| (failure, was_there))?;
        if self.open.len() >= MOST_OPEN {
            self.leave_first();
        }
        self.open.push((command.to_vec(), child));
        Ok(())
    }

    /// Closes the input of the least recently used program.
    fn leave_first(&mut self) {
        let (_, mut child) = self.open.remove(0);
        child.close_input();
        if self.leaving.len() >= MOST_OPEN {
            self.leaving.remove(0);
        }
        self.leaving.push((child, Instant::now() + LEAVE));
    }

    /// Reaps leaving programs that have ended, and ends those past their deadline.
    pub(super) fn let_go(&mut self) {
        let now = Instant::now();
        self.leaving.retain_mut(|(child, deadline)| child.look().is_none() && now < *deadline);
    }

    /// Ends all programs: closes their inputs, and gives them time to exit.
    pub(super) fn close(&mut self, stop: &Stop) {
        for (_, child) in &mut self.open {
            child.close_input();
        }
        let leaving = self.leaving.drain(..).map(|(child, _)| child);
        let children: Vec<Child> = self.open.drain(..).map(|(_, child)| child).chain(leaving).collect();
        let deadline = Instant::now() + LEAVE;
        for mut child in children {
            if let Err(failure) = child.wait(deadline, stop) {
                tracing::info!("{}", failure.sentence);
            }
        }
    }
}

/// The program, unless it has ended by itself.
fn still_there(mut child: Child) -> Option<Child> {
    match child.look() {
        Some(status) if !status.success() => {
            tracing::warn!("a program that receives products ended: {status}; it is restarted");
            None
        }
        Some(_) => None,
        None => Some(child),
    }
}

/// Limit of open programs of one line of actions.
const MOST_OPEN: usize = 32;
/// The time for a program's exit after the end of its input.
const LEAVE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::super::task::Shaping;
    use super::*;

    fn task(script: &str, close: bool) -> Task {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let work = Work::Pipe { command, close };
        Task { rule: "a:1".to_owned(), work, shape: Shaping::default(), limit_s: 60, attempts: 1 }
    }

    fn lines(path: &Path) -> Vec<String> {
        std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    #[test]
    fn one_program_takes_all_products_until_it_is_closed() {
        let root = tempfile::tempdir().unwrap();
        let (mut pipes, stop) = (Pipes::new(root.path()), Stop::default());
        let staying = task("echo begin >> log; cat >> log", false);
        pipes.write(&staying, b"one\n", &stop).unwrap();
        pipes.write(&staying, b"two\n", &stop).unwrap();
        pipes.close(&stop);
        assert_eq!(lines(&root.path().join("log")), ["begin", "one", "two"]);
    }

    #[test]
    fn a_program_that_ended_between_products_is_started_anew() {
        let root = tempfile::tempdir().unwrap();
        let (mut pipes, stop) = (Pipes::new(root.path()), Stop::default());
        let once = task("read line; echo $line >> log", false);
        for word in ["one", "two", "three"] {
            pipes.write(&once, format!("{word}\n").as_bytes(), &stop).unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            while pipes.open.last_mut().unwrap().1.look().is_none() {
                assert!(Instant::now() < deadline);
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        assert_eq!(lines(&root.path().join("log")), ["one", "two", "three"]);
    }

    #[test]
    fn with_close_the_exit_status_counts() {
        let root = tempfile::tempdir().unwrap();
        let (mut pipes, stop) = (Pipes::new(root.path()), Stop::default());
        pipes.write(&task("cat > got", true), b"all", &stop).unwrap();
        assert_eq!(std::fs::read(root.path().join("got")).unwrap(), b"all");
        let failure = pipes.write(&task("cat > /dev/null; exit 7", true), b"x", &stop).unwrap_err();
        assert_eq!(failure.exit, Some(7));
        assert!(pipes.open.is_empty());
    }

    #[test]
    fn the_one_used_longest_ago_makes_room() {
        let root = tempfile::tempdir().unwrap();
        let (mut pipes, stop) = (Pipes::new(root.path()), Stop::default());
        for number in 0..=MOST_OPEN {
            pipes.write(&task(&format!("cat > out{number}"), false), b"x", &stop).unwrap();
        }
        assert_eq!((pipes.open.len(), pipes.leaving.len()), (MOST_OPEN, 1));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !pipes.leaving.is_empty() {
            pipes.let_go();
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(std::fs::read(root.path().join("out0")).unwrap(), b"x");
        pipes.close(&stop);
    }
}
