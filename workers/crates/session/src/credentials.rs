/// The secrets by which a site authenticates to one hub: the choice of the one to show and the replacement of
/// one by another, without files, hashes and randomness. The driver writes them to disk *before* it sends the
/// message that follows from [`Secrets::offer`] or [`Secrets::kept`], so that a crash at any point leaves a
/// secret there that the hub accepts.
///
/// | event | change | sent |
/// |---|---|---|
/// | the hub requests a replacement of `current` | `next` is generated, unless there is one | the hash of `next` |
/// | ... for `former` | unchanged | the hash of `current` |
/// | the hub stores `next` | `next` becomes `current`, `current` becomes `former` | the new `current` |
/// | the hub refuses the one shown | the next attempts show `next`, `former`, then `current` again | |
/// | the hub admits the site with `next` | as if it had confirmed that it stored it | |
/// | ... with `former` | `current` and `former` are swapped | |
///
/// The hub admits the site with `next` if its answer was lost, and with `former` if the hub itself was restored
/// from a backup. It forgets a former credential once the site shows its replacement, so a copy kept here gives
/// no access.
#[derive(Clone, PartialEq, Eq)]
pub struct Secrets {
    current: String,
    next: Option<String>,
    former: Option<String>,
    /// The secret that this attempt shows.
    shown: Shown,
    /// The present session was authenticated with the former one.
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
    /// Makes the secrets of a site: the current one, and those of an earlier change, if any.
    pub fn new(current: String, next: Option<String>, former: Option<String>) -> Self {
        Self { current, next, former, shown: Shown::Current, behind: false }
    }

    /// The secret that the site shows first.
    pub fn current(&self) -> &str {
        &self.current
    }

    /// The replacement of the current secret, if one was generated.
    pub fn next(&self) -> Option<&str> {
        self.next.as_deref()
    }

    /// The secret that the current one replaced.
    pub fn former(&self) -> Option<&str> {
        self.former.as_deref()
    }

    /// The secret that this attempt shows.
    pub fn shown(&self) -> &str {
        let other = match self.shown {
            Shown::Current | Shown::Again => None,
            Shown::Next => self.next.as_deref(),
            Shown::Former => self.former.as_deref(),
        };
        other.unwrap_or(&self.current)
    }

    /// The hub refuses the credential shown. True if the next attempt has another one to show; otherwise all
    /// were tried, and the next attempt starts again with the first.
    pub fn refused(&mut self) -> bool {
        // The ended session was authenticated with the former one. The hub has not judged the current one yet.
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

    /// The hub admitted the site. True if the secrets on disk have to be rewritten.
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

    /// The hub requests a replacement for the credential that `is_it` identifies by its hash. `draw` generates
    /// a new secret.
    ///
    /// # Errors
    ///
    /// The error of `draw`.
    pub fn offer<E>(
        &mut self,
        is_it: impl Fn(&str) -> bool,
        draw: impl FnOnce() -> Result<String, E>,
    ) -> Result<&str, E> {
        // The hub may not have noticed yet that there is a new one. Once it has, the session belongs to the new
        // one.
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

    /// The hub stored an offered credential, which `is_it` identifies: the site shows its secret from here on.
    /// `None`: no offered credential matches.
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
