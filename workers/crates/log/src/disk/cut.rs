//! The states of a directory that a power cut can leave.
//!
//! Until a file is synchronised, each of its blocks may have any of the contents it had since the last
//! synchronisation, independently of the others, and so may its length. Until a directory is synchronised,
//! each change of its names may have happened or not. A renamed file has one of the two names, also between
//! directories, as journalling file systems keep it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use super::trace::{Change, Name, NodeId, Origin, ROOT, Step, Trace};

/// Random choices from a seed, so that a failure can be replayed.
#[derive(Clone, Debug)]
pub struct Chances(u64);

/// The fate of changes that were not synchronised.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// All are lost or all are kept, decided separately for names and for contents.
    Same { names: bool, contents: bool },
    /// Names as of one moment, contents as of another.
    Moment { names: usize, contents: u64 },
    /// Decided for each change separately.
    Each,
}

impl Chances {
    /// Choices that are the same for the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds must not begin alike, and zero would stay zero.
        Self((seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1)
    }

    /// A number in `0..count`; 0 if the range is empty.
    pub fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16).checked_rem(count).unwrap_or_default()
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 1
    }
}

impl Trace {
    /// Builds, in an empty directory, the state after a power cut before the step `at`. Returns a digest of
    /// it.
    ///
    /// # Errors
    /// Those of writing it.
    pub fn cut(&self, at: usize, chances: &mut Chances, into: &Path) -> io::Result<[u8; 32]> {
        let cut =
            Cut { trace: self, steps: self.steps.get(..at).unwrap_or(&self.steps), fate: fate(at, chances) };
        let names = cut.names(chances);
        let mut state = State::default();
        cut.write(ROOT, &names, chances, into, &mut state)?;
        Ok(*state.digest.finalize().as_bytes())
    }

    /// Builds, in an empty directory, the state in which nothing is lost.
    ///
    /// # Errors
    /// Those of writing it.
    pub fn replay(&self, into: &Path) -> io::Result<()> {
        let cut = Cut { trace: self, steps: &self.steps, fate: Fate::Same { names: true, contents: true } };
        let chances = &mut Chances::new(0);
        let names = cut.names(chances);
        cut.write(ROOT, &names, chances, into, &mut State::default())
    }
}

struct Cut<'a> {
    trace: &'a Trace,
    steps: &'a [Step],
    fate: Fate,
}

/// The state of a directory as far as it is built.
#[derive(Default)]
struct State {
    digest: blake3::Hasher,
    /// A name of each file: a further one is a link to it.
    files: BTreeMap<NodeId, PathBuf>,
}

impl Cut<'_> {
    fn names(&self, chances: &mut Chances) -> BTreeMap<Name, NodeId> {
        let mut names = self.trace.first_names.clone();
        for (at, step) in self.steps.iter().enumerate() {
            match step {
                Step::Bind { name, node } if self.happened(at, &[name.0], chances) => match node {
                    Some(node) => drop(names.insert(name.clone(), *node)),
                    None => drop(names.remove(name)),
                },
                Step::Move { from, to, node } if self.happened(at, &[from.0, to.0], chances) => {
                    if names.get(from) == Some(node) {
                        names.remove(from);
                    }
                    names.insert(to.clone(), *node);
                }
                _ => {}
            }
        }
        names
    }

    /// True if a change of a name survives: one of its directories was synchronised after it, or chance keeps it.
    fn happened(&self, at: usize, directories: &[NodeId], chances: &mut Chances) -> bool {
        let synced = directories.iter().any(|directory| at < self.synced_to(*directory));
        let lucky = match self.fate {
            Fate::Same { names, .. } => names,
            Fate::Moment { names, .. } => at < names,
            Fate::Each => chances.coin(),
        };
        synced || lucky
    }

    /// Steps before this one are durable for a file or a directory.
    fn synced_to(&self, node: NodeId) -> usize {
        let is_sync = |step: &Step| match step {
            Step::Sync(synced) | Step::SyncDirectory(synced) => *synced == node,
            Step::SyncEverything => true,
            _ => false,
        };
        self.steps.iter().rposition(is_sync).unwrap_or_default()
    }

    fn write(
        &self,
        directory: NodeId,
        names: &BTreeMap<Name, NodeId>,
        chances: &mut Chances,
        into: &Path,
        state: &mut State,
    ) -> io::Result<()> {
        fs::create_dir_all(into)?;
        for ((_, name), node) in names.iter().filter(|((of, _), _)| *of == directory) {
            state.digest.update(name.as_encoded_bytes()).update(b"/");
            let path = into.join(name);
            match self.trace.nodes.get(*node) {
                Some(Origin::Directory) => self.write(*node, names, chances, &path, state)?,
                Some(Origin::File(first)) => {
                    if let Some(other) = state.files.get(node) {
                        fs::hard_link(other, &path)?;
                        continue;
                    }
                    let contents = self.contents(*node, first, chances);
                    state.digest.update(&(contents.len() as u64).to_le_bytes()).update(&contents);
                    fs::write(&path, contents)?;
                    state.files.insert(*node, path);
                }
                None => {}
            }
        }
        state.digest.update(b".");
        Ok(())
    }

    fn contents(&self, node: NodeId, first: &[u8], chances: &mut Chances) -> Vec<u8> {
        let (durable, pending) = self.changes(node);
        let mut whole = first.to_vec();
        durable.iter().for_each(|change| apply(&mut whole, change));
        let count = pending.len() as u64;
        let fate = |chances: &mut Chances| match self.fate {
            Fate::Same { contents, .. } => {
                if contents {
                    count
                } else {
                    0
                }
            }
            Fate::Moment { contents, .. } => contents.min(count),
            Fate::Each => chances.below(count + 1),
        };
        let length_at = fate(chances);
        let blocks: BTreeSet<u64> = pending.iter().flat_map(|change| touched(change)).collect();
        let versions: Vec<(u64, u64)> = blocks.into_iter().map(|block| (block, fate(chances))).collect();
        let (mut found, mut length) = (whole.clone(), whole.len());
        for (version, change) in (1..).zip(pending) {
            apply(&mut whole, change);
            if version == length_at {
                length = whole.len();
            }
            for (block, _) in versions.iter().filter(|(_, wanted)| *wanted == version) {
                copy_block(&whole, &mut found, *block);
            }
        }
        found.resize(length, 0);
        found
    }

    /// Changes of a file that are durable, and those that are not.
    fn changes(&self, node: NodeId) -> (Vec<&Change>, Vec<&Change>) {
        let synced_to = self.synced_to(node);
        let (mut durable, mut pending) = (Vec::new(), Vec::new());
        for (at, step) in self.steps.iter().enumerate() {
            if let Step::Change { node: of, change } = step
                && *of == node
            {
                if at < synced_to { durable.push(change) } else { pending.push(change) }
            }
        }
        (durable, pending)
    }
}

fn fate(at: usize, chances: &mut Chances) -> Fate {
    match chances.below(8) {
        0 => Fate::Same { names: chances.coin(), contents: chances.coin() },
        1 | 2 => Fate::Moment {
            names: chances.below(at as u64 + 1) as usize,
            contents: chances.below(at as u64 + 1),
        },
        _ => Fate::Each,
    }
}

fn apply(contents: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { at, bytes } => {
            let (from, to) = (*at as usize, *at as usize + bytes.len());
            contents.resize(contents.len().max(to), 0);
            if let Some(place) = contents.get_mut(from..to) {
                place.copy_from_slice(bytes);
            }
        }
        Change::Length(bytes) => contents.resize(*bytes as usize, 0),
        Change::Zeros { from, to } => {
            let to = (*to as usize).min(contents.len());
            if let Some(place) = contents.get_mut(*from as usize..to) {
                place.fill(0);
            }
        }
    }
}

/// The blocks that a change may alter. Blocks removed by a shorter length are covered by the length.
fn touched(change: &Change) -> std::ops::Range<u64> {
    let blocks = |from: u64, to: u64| from / BLOCK_BYTES..to.div_ceil(BLOCK_BYTES);
    match change {
        Change::Write { at, bytes } => blocks(*at, *at + bytes.len() as u64),
        Change::Length(_) => 0..0,
        Change::Zeros { from, to } => blocks(*from, *to),
    }
}

fn copy_block(from: &[u8], to: &mut Vec<u8>, block: u64) {
    let begin = (block * BLOCK_BYTES) as usize;
    let end = (begin + BLOCK_BYTES as usize).min(from.len());
    if begin < end {
        to.resize(to.len().max(end), 0);
        if let (Some(place), Some(bytes)) = (to.get_mut(begin..end), from.get(begin..end)) {
            place.copy_from_slice(bytes);
        }
    }
}

/// The unit that a disk writes as a whole; smaller than a file system's, so that records are torn in more ways.
const BLOCK_BYTES: u64 = 512;
