use crate::{ActionFailed, LinkedSpace};

/// The state of local software with a feed, as the driver reports it.
#[derive(Debug, Default)]
pub(crate) struct LocalState {
    /// The newest failed action.
    pub(super) action_failed: Option<ActionFailed>,
    /// Space that products take after they left the site's log.
    pub(super) linked: Option<LinkedSpace>,
}

impl LocalState {
    /// Takes a failed action, or `None` if no failure is left; true if that is new.
    pub(crate) fn acts(&mut self, failed: Option<ActionFailed>) -> bool {
        let is_new = self.action_failed != failed;
        self.action_failed = failed;
        is_new
    }

    /// Takes the space of linked files; true if that is new.
    pub(crate) fn links(&mut self, space: Option<LinkedSpace>) -> bool {
        std::mem::replace(&mut self.linked, space) != space
    }
}
