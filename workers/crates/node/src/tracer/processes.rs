//! The sockets of chosen processes, by `/proc`.
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use downburst_model::Micros;

/// Processes by id or name, and the sockets that they have.
pub(super) struct Processes {
    wanted: Vec<Process>,
    /// Numbers of their sockets.
    sockets: BTreeSet<u32>,
    /// Numbers of all sockets that were open when `/proc` was read.
    judged: BTreeSet<u32>,
    read_at: Micros,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Process {
    Id(u32),
    /// As in `/proc/…/comm`.
    Name(String),
}

/// The result of a look into `/proc`.
#[derive(Default)]
struct Found {
    sockets: BTreeSet<u32>,
    processes: usize,
    /// A process whose files this one may not see.
    hidden: Option<(String, io::Error)>,
}

impl Processes {
    /// Reads `/proc` for the first time.
    ///
    /// # Errors
    /// A sentence: a process does not exist, or no sockets of it can be seen.
    pub(super) fn begin(wanted: Vec<Process>, now: Micros) -> Result<Self, String> {
        for process in &wanted {
            let found = process.find();
            match (process, found.processes, found.hidden) {
                (_, 0, Some((id, error))) => {
                    return Err(format!(
                        "the sockets of process {id} can't be seen: {error}; run this as root, or as the user of that \
                         process"
                    ));
                }
                (Process::Id(id), 0, None) => {
                    return Err(format!("no process has the id {id}; look for it with ps"));
                }
                (Process::Name(name), 0, None) => {
                    tracing::warn!(
                        "no process is named {name} yet; its connections are recorded once it begins"
                    );
                }
                _ => {}
            }
        }
        Ok(Self { wanted, sockets: BTreeSet::new(), judged: BTreeSet::new(), read_at: now })
    }

    /// The sockets of these processes. `open` are the numbers of all open ones: `/proc` is read again for a new one,
    /// and once a second, as a socket may be handed on.
    pub(super) fn sockets(&mut self, open: BTreeSet<u32>, now: Micros) -> &BTreeSet<u32> {
        if !open.is_subset(&self.judged) || now.since(self.read_at) >= READ_AGAIN {
            self.sockets = self.wanted.iter().flat_map(|process| process.find().sockets).collect();
            (self.judged, self.read_at) = (open, now);
        }
        &self.sockets
    }
}

impl Process {
    pub(super) fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Name(text.chars().take(64).collect()), Self::Id)
    }

    fn find(&self) -> Found {
        let mut found = Found::default();
        match self {
            Self::Id(id) => found.add(&id.to_string()),
            Self::Name(name) => named(name).iter().for_each(|id| found.add(id)),
        }
        found
    }
}

impl Found {
    fn add(&mut self, id: &str) {
        match sockets_of(&Path::new("/proc").join(id).join("fd")) {
            Ok(sockets) => {
                self.processes += 1;
                self.sockets.extend(sockets);
            }
            // It has ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.hidden = Some((id.to_owned(), error)),
        }
    }
}

/// The ids of the processes with a name, of which the kernel keeps the first bytes.
fn named(name: &str) -> Vec<String> {
    let kept = name.as_bytes().get(..NAME_BYTES).unwrap_or(name.as_bytes());
    let is_it = |id: &String| {
        let own = fs::read(Path::new("/proc").join(id).join("comm")).unwrap_or_default();
        own.strip_suffix(b"\n") == Some(kept)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(is_it).collect()
}

fn sockets_of(files: &Path) -> io::Result<Vec<u32>> {
    let targets = fs::read_dir(files)?.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    Ok(targets.filter_map(|target| number(target.to_str()?)).collect())
}

/// The number in `socket:[4711]`.
fn number(target: &str) -> Option<u32> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// `TASK_COMM_LEN` without the last zero.
const NAME_BYTES: usize = 15;

const READ_AGAIN: Micros = Micros::from_secs(1);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd as _;

    use super::*;

    fn number_of(socket: &TcpListener) -> u32 {
        let target = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        number(target.to_str().unwrap()).unwrap()
    }

    #[test]
    fn sockets_of_this_process_are_found_by_id_and_by_name_and_new_ones_too() {
        let kept = fs::read_to_string("/proc/self/comm").unwrap().trim_end().to_owned();
        // The kernel keeps the beginning of a longer name.
        let name = if kept.len() == NAME_BYTES { kept + "-longer" } else { kept };
        for wanted in [std::process::id().to_string(), name] {
            let mut processes = Processes::begin(vec![Process::parse(&wanted)], Micros(0)).unwrap();
            let first = TcpListener::bind("127.0.0.1:0").unwrap();
            let open = BTreeSet::from([number_of(&first)]);
            assert!(processes.sockets(open.clone(), Micros(1)).contains(&number_of(&first)), "{wanted}");
            let second = TcpListener::bind("127.0.0.1:0").unwrap();
            assert!(!processes.sockets(open.clone(), Micros(2)).contains(&number_of(&second)));
            let both = open.iter().copied().chain([number_of(&second)]).collect();
            assert!(processes.sockets(both, Micros(3)).contains(&number_of(&second)));
            let third = TcpListener::bind("127.0.0.1:0").unwrap();
            assert!(processes.sockets(open, Micros::from_secs(2)).contains(&number_of(&third)));
        }
    }

    #[test]
    fn a_process_that_does_not_exist_is_named() {
        let sentence = Processes::begin(vec![Process::Id(u32::MAX)], Micros(0)).err().unwrap();
        assert!(sentence.contains("4294967295") && sentence.contains("ps"), "{sentence}");
        assert!(
            Processes::begin(vec![Process::parse("no such name")], Micros(0)).is_ok(),
            "it may begin later"
        );
    }

    #[test]
    fn targets_that_are_no_sockets_have_no_number() {
        assert_eq!(number("socket:[4711]"), Some(4711));
        for other in ["", "socket:[", "socket:[x]", "pipe:[7]", "/dev/null", "socket:[99999999999]"] {
            assert_eq!(number(other), None);
        }
    }
}
