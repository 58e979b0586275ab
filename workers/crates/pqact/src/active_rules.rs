//! The rules in force, read from their files.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downburst_actions::{Kind, Problem, Read, Rules, pqact, yaml};

/// The rules of all files.
#[derive(Debug, Default)]
pub(super) struct ActiveRules {
    pub(super) files: Vec<Rules>,
    /// The rules of each line.
    pub(super) lines: BTreeMap<String, Arc<Vec<Rules>>>,
    /// True if a rule writes files: programs start on a product after its files are written.
    pub(super) has_files: bool,
    /// Malformed rules.
    pub(super) set_aside: Vec<Problem>,
}

/// The line of all file actions.
pub(super) const FILE_LINE: &str = "file";

impl ActiveRules {
    /// Reads the files, and logs notes. The error has a line for each reason that files can't be used.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self, String> {
        let (mut files, mut wrong, mut aside) = (Vec::new(), Vec::new(), Vec::new());
        for path in paths {
            match read_rules(path) {
                Ok(Read { found, errors, set_aside, notes }) => {
                    notes.iter().for_each(|note| tracing::warn!("{note}"));
                    wrong.extend(errors.iter().map(Problem::to_string));
                    aside.extend(set_aside);
                    files.push(found);
                }
                Err(sentence) => wrong.push(sentence),
            }
        }
        if wrong.is_empty() { Ok(Self::of(files, aside)) } else { Err(wrong.join("\n")) }
    }

    /// Returns the rules if none is set aside: fewer rules must not replace those in force. The error lists all
    /// faults.
    pub(super) fn without_set_aside(self) -> Result<Self, String> {
        let wrong: Vec<String> = self.set_aside.iter().map(Problem::to_string).collect();
        if wrong.is_empty() { Ok(self) } else { Err(wrong.join("\n")) }
    }

    /// Logs the rules that do not work.
    pub(super) fn tell_of_set_aside(&self) {
        say_set_aside(&self.set_aside);
    }

    fn of(files: Vec<Rules>, set_aside: Vec<Problem>) -> Self {
        let mut lines: BTreeSet<String> = files.iter().flat_map(Rules::lines).collect();
        // It keeps a position in feeds that have no rules yet.
        lines.insert(FILE_LINE.to_owned());
        let only = |line: String| {
            let rules = files.iter().map(|rules| rules.only(&line)).collect();
            (line, Arc::new(rules))
        };
        let lines = lines.into_iter().map(only).collect();
        let mut actions = files.iter().flat_map(|rules| &rules.rules).flat_map(|rule| &rule.actions);
        let has_files = actions.any(|action| matches!(action.kind, Kind::File(_)));
        Self { files, lines, has_files, set_aside }
    }
}

/// Logs the rules that do not work.
pub(super) fn say_set_aside(problems: &[Problem]) {
    problems.iter().for_each(|problem| tracing::error!("{problem} (the rule is set aside, the others work)"));
}

/// Reads a file in the format given by its name: YAML, or else LDM's.
pub(super) fn read_rules(path: &Path) -> Result<Read<Rules>, String> {
    let (name, text) = (path.display().to_string(), text_of(path)?);
    if is_yaml(path) {
        return Ok(yaml::read(&name, &text).map(|document| document.actions));
    }
    let directory = path.parent().unwrap_or(Path::new("")).to_owned();
    let mut load = |included: &str| {
        let path = directory.join(included);
        text_of(&path).map(|text| (path.display().to_string(), text))
    };
    Ok(pqact::read(&name, &text, &mut load))
}

/// True if the extension is that of YAML.
pub(super) fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// The text of a file; the error is a sentence. Bytes that are not UTF-8, as in old comments, become U+FFFD.
pub(super) fn text_of(path: &Path) -> Result<String, String> {
    let wrong = |error: &dyn std::fmt::Display| {
        format!("{} can't be read: {error}; check its path and rights", path.display())
    };
    let length = fs::metadata(path).map_err(|error| wrong(&error))?.len();
    if length > LONGEST_BYTES {
        return Err(wrong(&format!("it has {length} bytes, and rules have at most {LONGEST_BYTES}")));
    }
    let bytes = fs::read(path).map_err(|error| wrong(&error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const LONGEST_BYTES: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_all_that_is_wrong_is_said() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let ldm = path("pqact.conf", "INCLUDE \"more.conf\"\nANY\t.\tEXEC\ttrue\n");
        path("more.conf", "ANY\t.\tFILE\tx\n");
        let yaml = path("rules.yaml", "actions:\n  - do:\n      - exec: 'true'\n");
        let active_rules = ActiveRules::read(&[ldm.clone(), yaml]).unwrap();
        assert_eq!(
            (active_rules.files.len(), active_rules.lines.len(), active_rules.has_files),
            (2, 2, true)
        );
        let bad = path("bad.conf", "ANY\t(\tNOOP\nX\t.\tNOOP\nANY\t.\tFILE\ty\n");
        let active_rules = ActiveRules::read(&[ldm.clone(), bad]).unwrap();
        let aside: Vec<String> = active_rules.set_aside.iter().map(Problem::to_string).collect();
        assert!(aside[0].contains("bad.conf:1: ") && aside[1].contains("bad.conf:2: "), "{aside:?}");
        assert_eq!((aside.len(), active_rules.files[1].rules.len()), (2, 1));
        let broken = path("broken.yaml", "actions: [\n");
        let wrong = ActiveRules::read(&[ldm, broken, root.path().join("gone")]).unwrap_err();
        let lines: Vec<&str> = wrong.lines().collect();
        assert_eq!(lines.len(), 2, "{wrong}");
        assert!(lines[0].contains("broken.yaml:2: "), "{wrong}");
        assert!(lines[1].contains("gone can't be read"), "{wrong}");
    }

    #[test]
    fn old_files_are_not_always_utf_8() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("pqact.conf");
        fs::write(&path, b"# M\xfcnchen\nANY\t.\tFILE\tx\nANY\t.\tFILE\tM\xfcnchen\n").unwrap();
        let read = read_rules(&path).unwrap();
        assert_eq!((read.found.rules.len(), read.errors.len(), read.set_aside.len()), (1, 0, 1));
        assert!(read.set_aside[0].to_string().contains(":3: there are bytes in it that are not UTF-8"));
    }
}
