//! The list of a hub's nodes, stored so that a site that starts while the hub's own node is away finds the others.
use std::path::{Path, PathBuf};

use downburst_log::disk::{self, Checked};
use downburst_session::Nodes;

/// The stored list; empty for a site that is new at the hub.
pub(in crate::site) fn load(state: &Path, is_new: bool) -> Nodes {
    let path = path(state);
    match disk::read_checked(&path, MAGIC) {
        Ok(Checked::Whole(known)) if !is_new => known,
        Ok(Checked::Damaged | Checked::Newer(_)) => {
            tracing::error!(path = %path.display(), "the list of nodes that serve the site is damaged or of \
                another release; its hub sends it again");
            Nodes::default()
        }
        _ => Nodes::default(),
    }
}

/// Writes the list atomically.
pub(in crate::site) fn keep(state: &Path, nodes: &Nodes) -> Result<(), String> {
    let path = path(state);
    disk::write_checked(&path, MAGIC, nodes).map_err(|error| {
        format!("{} can't be written: {error}; free space or correct permissions", path.display())
    })
}

fn path(state: &Path) -> PathBuf {
    state.join("nodes.cbor")
}

const MAGIC: &[u8; 8] = b"DBNODES\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_kept_but_not_for_a_site_that_is_enrolled_anew() {
        let directory = tempfile::tempdir().unwrap();
        let nodes = Nodes { version: 5, items: Vec::new() };
        assert_eq!(load(directory.path(), false), Nodes::default());
        keep(directory.path(), &nodes).unwrap();
        assert_eq!(load(directory.path(), false), nodes);
        assert_eq!(load(directory.path(), true), Nodes::default());
        std::fs::write(path(directory.path()), b"rubbish").unwrap();
        assert_eq!(load(directory.path(), false), Nodes::default());
    }
}
