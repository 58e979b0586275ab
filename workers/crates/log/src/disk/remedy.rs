//! Sentences for operators about files that can't be written, with the remedy.
use std::io::{self, ErrorKind};
use std::path::Path;

/// A sentence for operators: the file, the error and the remedy.
pub fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("{} can't be written: {error}; {}", path.display(), remedy(error))
}

/// The remedy, in words that follow the error.
pub fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free space there",
        ErrorKind::ReadOnlyFilesystem => {
            "the disk is read-only: look for its failures in the kernel's log (`dmesg`) and mount it writable"
        }
        ErrorKind::PermissionDenied => "correct the permissions there",
        _ => "check the disk and the directory",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_goes_with_the_error() {
        let said = |kind: ErrorKind| unwritable(Path::new("/data/x"), &kind.into());
        assert_eq!(
            said(ErrorKind::StorageFull),
            "/data/x can't be written: no storage space; free space there"
        );
        assert!(said(ErrorKind::ReadOnlyFilesystem).contains("; the disk is read-only: "));
        assert!(said(ErrorKind::PermissionDenied).ends_with("permissions there"));
    }
}
