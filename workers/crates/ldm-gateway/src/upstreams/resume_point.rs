//! The resume point of a request after a restart: the last product stored from that upstream.
use std::fs;
use std::path::PathBuf;

use downburst_ldm6::Signature;
use downburst_model::{Micros, file_names};

/// A file of one line for each upstream of a source.
pub(super) struct ResumePoint {
    path: PathBuf,
    /// The text of the request: a different one starts afresh.
    request: String,
    kept: Option<Signature>,
    latest: Option<Signature>,
    kept_at: Micros,
}

impl ResumePoint {
    pub(super) fn open(directory: PathBuf, upstream: &str, request: String) -> Self {
        let path = directory.join(file_names::encode(upstream));
        let kept = fs::read_to_string(&path).ok().and_then(|text| read(&text, &request));
        Self { path, request, kept, latest: kept, kept_at: Micros(0) }
    }

    pub(super) fn signature(&self) -> Option<Signature> {
        self.latest
    }

    /// Records the last stored product; the file is updated later.
    pub(super) fn is_behind(&mut self, now: Micros, signature: Signature) {
        self.latest = Some(signature);
        if now >= self.kept_at.plus(KEPT_EACH) {
            self.keep(now);
        }
    }

    /// Updates the file. A stale file only causes some products to be sent again.
    pub(super) fn keep(&mut self, now: Micros) {
        let Some(latest) = self.latest.filter(|_| self.latest != self.kept) else { return };
        self.kept_at = now;
        let aside = self.path.with_extension("aside");
        let written = self
            .path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&aside, format!("{latest} {}\n", self.request)))
            .and_then(|()| fs::rename(&aside, &self.path));
        match written {
            Ok(()) => self.kept = Some(latest),
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "the position of an LDM can't be stored")
            }
        }
    }

    /// The time of the next update, if the file is out of date.
    pub(super) fn due(&self) -> Option<Micros> {
        (self.latest != self.kept).then(|| self.kept_at.plus(KEPT_EACH))
    }
}

fn read(text: &str, request: &str) -> Option<Signature> {
    let (signature, kept) = text.trim_end().split_once(' ')?;
    signature.parse().ok().filter(|_| kept == request)
}

/// Interval between updates. After a crash the hub requests the products since the last one again.
const KEPT_EACH: Micros = Micros::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_goes_on_where_it_was_and_another_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let open = |request: &str| ResumePoint::open(dir.path().join("a"), "[::1]:388", request.to_owned());
        let mut point = open("NGRID .*");
        assert_eq!((point.signature(), point.due()), (None, None));
        point.is_behind(Micros::from_secs(5), Signature([1; 16]));
        assert_eq!(open("NGRID .*").signature(), Some(Signature([1; 16])));
        point.is_behind(Micros::from_secs(5), Signature([2; 16]));
        assert_eq!(point.due(), Some(Micros::from_secs(6)), "not each product is written");
        assert_eq!(open("NGRID .*").signature(), Some(Signature([1; 16])));
        point.keep(Micros::from_secs(6));
        assert_eq!((open("NGRID .*").signature(), point.due()), (Some(Signature([2; 16])), None));
        assert_eq!(open("NGRID ^A").signature(), None);
    }
}
