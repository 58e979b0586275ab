//! The operations on a directory, in order: enough to rebuild it as of any moment, or as a power cut leaves it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

pub(super) type NodeId = usize;

/// A name in a directory.
pub(super) type Name = (NodeId, OsString);

/// All operations below a directory since its recording began.
#[derive(Clone, Debug)]
pub struct Trace {
    root: PathBuf,
    pub(super) nodes: Vec<Origin>,
    /// As at the beginning.
    pub(super) first_names: BTreeMap<Name, NodeId>,
    names: BTreeMap<Name, NodeId>,
    lengths: BTreeMap<NodeId, u64>,
    pub(super) steps: Vec<Step>,
    planted: Planted,
    file_syncs: usize,
    directory_syncs: usize,
}

/// A fault planted in the program under test, which a checker has to find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    /// None.
    #[default]
    Nothing,
    /// The n-th synchronisation of a file, from 0 on, is left out.
    FileSync(usize),
    /// The n-th synchronisation of a directory, from 0 on, is left out.
    DirectorySync(usize),
}

/// The state of a node when it entered the trace.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Directory,
    /// With these durable contents.
    File(Vec<u8>),
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A name was bound to a node or removed.
    Bind {
        name: Name,
        node: Option<NodeId>,
    },
    /// A node was renamed atomically.
    Move {
        from: Name,
        to: Name,
        node: NodeId,
    },
    Change {
        node: NodeId,
        change: Change,
    },
    Sync(NodeId),
    SyncDirectory(NodeId),
    SyncEverything,
    Mark(u64),
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { at: u64, bytes: Vec<u8> },
    Length(u64),
    Zeros { from: u64, to: u64 },
}

impl Trace {
    /// The number of steps. A cut may be before the first, after the last, or anywhere between.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// The labels of the moments before a cut.
    #[must_use]
    pub fn marks_before(&self, cut: usize) -> Vec<u64> {
        let label = |step: &Step| if let Step::Mark(label) = step { Some(*label) } else { None };
        self.steps.iter().take(cut).filter_map(label).collect()
    }

    /// The numbers of file and of directory synchronisations, including those left out.
    #[must_use]
    pub fn syncs(&self) -> (usize, usize) {
        (self.file_syncs, self.directory_syncs)
    }

    pub(super) fn of(root: &Path, planted: Planted) -> io::Result<Self> {
        let mut trace = Self {
            root: root.to_owned(),
            nodes: vec![Origin::Directory],
            first_names: BTreeMap::new(),
            names: BTreeMap::new(),
            lengths: BTreeMap::new(),
            steps: Vec::new(),
            planted,
            file_syncs: 0,
            directory_syncs: 0,
        };
        trace.take_in(root, ROOT)?;
        trace.names.clone_from(&trace.first_names);
        Ok(trace)
    }

    /// Finds an opened file, or adds it as a new one.
    pub(super) fn open(&mut self, path: &Path, length: u64) -> NodeId {
        let name = self.name(path);
        if let Some(node) = self.names.get(&name).copied() {
            if self.length(node) != length {
                self.set_length(node, length);
            }
            return node;
        }
        let node = self.bind_new(name, Origin::File(Vec::new()));
        if length > 0 {
            let bytes = fs::read(path).unwrap_or_default();
            self.write(node, 0, &bytes);
        }
        node
    }

    pub(super) fn make_directory(&mut self, path: &Path) {
        self.directory(path);
    }

    pub(super) fn write(&mut self, node: NodeId, at: u64, bytes: &[u8]) {
        let end = at + bytes.len() as u64;
        self.lengths.insert(node, end.max(self.length(node)));
        self.change(node, Change::Write { at, bytes: bytes.to_vec() });
    }

    pub(super) fn set_length(&mut self, node: NodeId, bytes: u64) {
        self.lengths.insert(node, bytes);
        self.change(node, Change::Length(bytes));
    }

    pub(super) fn release(&mut self, node: NodeId, from: u64, to: u64) {
        self.change(node, Change::Zeros { from, to });
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        let (from, to) = (self.name(from), self.name(to));
        if let Some(node) = self.names.remove(&from) {
            self.names.insert(to.clone(), node);
            self.steps.push(Step::Move { from, to, node });
        }
    }

    /// Binds a second name to a file; one from outside the recorded directory counts as new.
    pub(super) fn link(&mut self, from: &Path, to: &Path) {
        let (from_name, to_name) = (self.name(from), self.name(to));
        match self.names.get(&from_name).copied() {
            Some(node) => {
                self.names.insert(to_name.clone(), node);
                self.steps.push(Step::Bind { name: to_name, node: Some(node) });
            }
            None => {
                let length = fs::metadata(to).map(|it| it.len()).unwrap_or_default();
                self.open(to, length);
            }
        }
    }

    /// Removes a name; a directory goes with its contents, the deepest first.
    pub(super) fn remove(&mut self, path: &Path) {
        let name = self.name(path);
        self.remove_name(&name);
    }

    pub(super) fn sync(&mut self, node: NodeId) {
        let left_out = self.planted == Planted::FileSync(self.file_syncs);
        self.file_syncs += 1;
        if !left_out {
            self.steps.push(Step::Sync(node));
        }
    }

    pub(super) fn sync_directory(&mut self, path: &Path) {
        let directory = self.directory(path);
        let left_out = self.planted == Planted::DirectorySync(self.directory_syncs);
        self.directory_syncs += 1;
        if !left_out {
            self.steps.push(Step::SyncDirectory(directory));
        }
    }

    pub(super) fn sync_everything(&mut self) {
        self.steps.push(Step::SyncEverything);
    }

    pub(super) fn mark(&mut self, label: u64) {
        self.steps.push(Step::Mark(label));
    }

    fn take_in(&mut self, path: &Path, directory: NodeId) -> io::Result<()> {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let node = self.nodes.len();
            self.first_names.insert((directory, entry.file_name()), node);
            if entry.file_type()?.is_dir() {
                self.nodes.push(Origin::Directory);
                self.take_in(&entry.path(), node)?;
            } else {
                let contents = fs::read(entry.path())?;
                self.lengths.insert(node, contents.len() as u64);
                self.nodes.push(Origin::File(contents));
            }
        }
        Ok(())
    }

    fn change(&mut self, node: NodeId, change: Change) {
        self.steps.push(Step::Change { node, change });
    }

    fn length(&self, node: NodeId) -> u64 {
        self.lengths.get(&node).copied().unwrap_or_default()
    }

    fn bind_new(&mut self, name: Name, origin: Origin) -> NodeId {
        let node = self.nodes.len();
        self.nodes.push(origin);
        self.names.insert(name.clone(), node);
        self.steps.push(Step::Bind { name, node: Some(node) });
        node
    }

    fn remove_name(&mut self, name: &Name) {
        let Some(node) = self.names.get(name).copied() else { return };
        let inside: Vec<Name> =
            self.names.keys().filter(|(directory, _)| *directory == node).cloned().collect();
        inside.iter().for_each(|name| self.remove_name(name));
        self.names.remove(name);
        self.steps.push(Step::Bind { name: name.clone(), node: None });
    }

    fn name(&mut self, path: &Path) -> Name {
        let directory = path.parent().map_or(ROOT, |parent| self.directory(parent));
        (directory, path.file_name().unwrap_or_default().to_owned())
    }

    /// The node of a directory. One created outside the layer counts as created now.
    fn directory(&mut self, path: &Path) -> NodeId {
        let inside = path.strip_prefix(&self.root).unwrap_or(path).to_owned();
        let mut at = ROOT;
        for part in &inside {
            let name = (at, part.to_owned());
            at = match self.names.get(&name) {
                Some(node) => *node,
                None => self.bind_new(name, Origin::Directory),
            };
        }
        at
    }
}

pub(super) const ROOT: NodeId = 0;
