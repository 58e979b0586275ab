//! A link for tests.
use std::cell::RefCell;
use std::rc::Rc;

use super::SessionLink;
use crate::session::SessionStatus;

/// The status of a session, shared by the link's clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestLink(Rc<RefCell<SessionStatus>>);

impl TestLink {
    /// The link to a session with this status.
    pub(crate) fn new(status: SessionStatus) -> Self {
        Self(Rc::new(RefCell::new(status)))
    }

    /// True if both lead to the same session.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl SessionLink for TestLink {
    fn with_status<T>(&self, look: impl FnOnce(&mut SessionStatus) -> T) -> T {
        look(&mut self.0.borrow_mut())
    }
}
