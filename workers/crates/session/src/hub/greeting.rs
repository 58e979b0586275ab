use super::{HubSession, State};
use crate::{Hello, HubOutput, RefusalCode, Refused};

impl HubSession {
    /// Chooses the version, and has the site's proof checked.
    pub(super) fn take_hello(&mut self, hello: Hello) {
        let Some(version) =
            hello.versions.iter().copied().find(|version| self.terms.versions.contains(version))
        else {
            let versions: Vec<String> = self.terms.versions.iter().map(u16::to_string).collect();
            return self.refuse(Refused {
                code: RefusalCode::Version,
                sentence: format!(
                    "this hub speaks version {} of the session; install a node that does",
                    versions.join(" and ")
                ),
            });
        };
        self.terms.version = version;
        self.terms.one_node = hello.one_node == Some(true);
        self.outputs.push_back(HubOutput::Authenticate(hello.proof.clone()));
        self.state = State::Authenticating(Box::new(hello));
    }
}
