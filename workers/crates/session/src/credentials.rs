/// The secrets by which a site proves itself to one hub: which of them it shows, and how one takes the place
/// of another, without files, hashes and randomness. The driver keeps it on disk *before* it sends the
/// message that follows from [`Secrets::offer`] or [`Secrets::kept`], so that a crash at any point leaves a
/// secret there that the hub accepts.
///
/// | event | becomes | says |
/// |---|---|---|
/// | the hub wants another for `current` | `next` is drawn, unless there is one | the hash of `next` |
/// | ... for `former` | unchanged | the hash of `current` |
/// | the hub keeps `next` | `next` becomes `current`, `current` becomes `former` | the new `current` |
/// | the hub refuses the one shown | the next attempts show `next`, `former`, `current` again | |
/// | the hub admits the site with `next` | as if it had confirmed that it keeps it | |
/// | ... with `former` | `current` and `former` change places | |
///
/// The hub admits the site with `next` where its answer was lost, and with `former` where the hub itself was
/// restored from a backup. It forgets a former credential once the site shows the one that took its place, so
/// that keeping it here opens nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secrets {
    current: String,
    next: Option<String>,
    former: Option<String>,
    /// What this attempt shows.
    shown: Shown,
    /// The session that stands was made with the former one.
    behind: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Current,
    Next,
    Former,
    /// The current one after the others: the first refusal ended an established session, or the hub was
    /// restored in between.
    Again,
}

impl Secrets {
    /// A site that has one, or knows of others since an earlier change.
    pub fn new(current: String, next: Option<String>, former: Option<String>) -> Self {
        Self { current, next, former, shown: Shown::Current, behind: false }
    }

    /// What the site shows unless it is refused.
    pub fn current(&self) -> &str {
        &self.current
    }

    /// What was made to take its place.
    pub fn next(&self) -> Option<&str> {
        self.next.as_deref()
    }

    /// What it took the place of.
    pub fn former(&self) -> Option<&str> {
        self.former.as_deref()
    }

    /// What this attempt shows.
    pub fn shown(&self) -> &str {
        let other = match self.shown {
            Shown::Current | Shown::Again => None,
            Shown::Next => self.next.as_deref(),
            Shown::Former => self.former.as_deref(),
        };
        other.unwrap_or(&self.current)
    }

    /// The hub refuses the credential shown. True if the next attempt has another one to show; else all were
    /// tried, and the next attempt begins with the first again.
    pub fn refused(&mut self) -> bool {
        // The session that ended was the former one's. Of the current one the hub has said nothing yet.
        if std::mem::take(&mut self.behind) {
            return true;
        }
        self.shown = match self.shown {
            Shown::Current if self.next.is_some() => Shown::Next,
            Shown::Current | Shown::Next if self.former.is_some() => Shown::Former,
            Shown::Next | Shown::Former => Shown::Again,
            Shown::Current | Shown::Again => Shown::Current,
        };
        self.shown != Shown::Current
    }

    /// The hub let the site in. True if that changed what has to be on the disk.
    pub fn let_in(&mut self) -> bool {
        self.behind = false;
        match std::mem::replace(&mut self.shown, Shown::Current) {
            Shown::Current | Shown::Again => return false,
            Shown::Next => self.take_next(),
            Shown::Former => {
                if let Some(former) = self.former.take() {
                    self.former = Some(std::mem::replace(&mut self.current, former));
                }
            }
        }
        true
    }

    /// The hub wants another credential in the place of the one that `is_it` identifies: the secret whose
    /// hash matches. `draw` makes a fresh one.
    ///
    /// # Errors
    ///
    /// What `draw` says.
    pub fn offer<E>(
        &mut self,
        is_it: impl Fn(&str) -> bool,
        draw: impl FnOnce() -> Result<String, E>,
    ) -> Result<&str, E> {
        // The hub may not have noticed that there is a new one already. Once it has, the session is the new one's.
        self.behind = self.behind && !is_it(&self.current);
        if self.behind {
            return Ok(&self.current);
        }
        let next = match self.next.take() {
            Some(next) => next,
            None => draw()?,
        };
        Ok(self.next.insert(next))
    }

    /// The hub keeps an offered credential, the one that `is_it` identifies: the site shows its secret from
    /// here on. `None`: no offered credential matches.
    pub fn kept(&mut self, is_it: impl Fn(&str) -> bool) -> Option<&str> {
        if self.next.as_deref().is_some_and(&is_it) {
            self.take_next();
            self.behind = true;
        }
        (self.behind && is_it(&self.current)).then_some(self.current.as_str())
    }

    fn take_next(&mut self) {
        if let Some(next) = self.next.take() {
            self.former = Some(std::mem::replace(&mut self.current, next));
        }
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets(shows {:?})", self.shown)
    }
}

#[cfg(test)]
mod tests;
