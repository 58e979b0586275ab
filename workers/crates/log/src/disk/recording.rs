//! Recordings: the recorded directories and the input of their traces.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::trace::{NodeId, Planted, Trace};

/// A recording of all operations below a directory, until it is dropped. For tests.
#[derive(Debug)]
pub struct Recording(Arc<Recorded>);

#[derive(Debug)]
struct Recorded {
    root: PathBuf,
    trace: Mutex<Trace>,
}

/// An open file in a trace.
#[derive(Clone, Debug)]
pub(super) struct Node {
    recorded: Arc<Recorded>,
    id: NodeId,
}

impl Recording {
    /// Begins a recording; the current contents of the directory count as durable.
    ///
    /// # Errors
    /// Those of reading these contents.
    pub fn begin(root: &Path, planted: Planted) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let recorded = Arc::new(Recorded { trace: Mutex::new(Trace::of(&root, planted)?), root });
        RECORDINGS.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&recorded));
        COUNT.fetch_add(1, Ordering::SeqCst);
        Ok(Self(recorded))
    }

    /// Records a moment at which something was acknowledged or shown.
    pub fn mark(&self, label: u64) {
        self.0.trace().mark(label);
    }

    /// The trace so far.
    #[must_use]
    pub fn trace(&self) -> Trace {
        self.0.trace().clone()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::SeqCst);
        let mut all = RECORDINGS.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| !Arc::ptr_eq(one, &self.0));
    }
}

impl Recorded {
    fn trace(&self) -> MutexGuard<'_, Trace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Performs an operation on the file and records it if it was done.
    pub(super) fn note(
        &self,
        note: impl FnOnce(&mut Trace, NodeId),
        act: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut trace = self.recorded.trace();
        act()?;
        note(&mut trace, self.id);
        Ok(())
    }
}

/// Performs an operation on names and records it if it was done.
pub(super) fn traced(
    path: &Path,
    note: impl FnOnce(&mut Trace),
    act: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let Some(recorded) = recorded(path) else { return act() };
    let mut trace = recorded.trace();
    act()?;
    note(&mut trace);
    Ok(())
}

/// Opens a file and adds it to the trace of its directory.
pub(super) fn on_open(
    path: &Path,
    open: impl FnOnce() -> io::Result<fs::File>,
) -> io::Result<(fs::File, Option<Node>)> {
    let Some(recorded) = recorded(path) else { return Ok((open()?, None)) };
    let mut trace = recorded.trace();
    let file = open()?;
    let id = trace.open(path, file.metadata()?.len());
    drop(trace);
    Ok((file, Some(Node { recorded, id })))
}

fn recorded(path: &Path) -> Option<Arc<Recorded>> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let all = RECORDINGS.read().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|one| path.starts_with(&one.root)).cloned()
}

static COUNT: AtomicUsize = AtomicUsize::new(0);
static RECORDINGS: RwLock<Vec<Arc<Recorded>>> = RwLock::new(Vec::new());
