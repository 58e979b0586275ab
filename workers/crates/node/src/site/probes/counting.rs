//! A step that a site counts, with its seconds.
use std::sync::Arc;
use std::time::Duration;

use downburst_probe::Figures;
use downburst_session::{PathProbed, ProbeSaid};
use tokio::sync::{mpsc, oneshot};

use crate::probing::Way;

/// A step that the site counts.
pub(super) struct Counting {
    pub(super) way: Arc<Way>,
    pub(super) run: u32,
    pub(super) step: u16,
    pub(super) say: mpsc::UnboundedSender<PathProbed>,
}

impl Counting {
    pub(super) async fn until(self, mut all_sent: oneshot::Receiver<u64>) {
        let mut tick = tokio::time::interval(SECOND);
        tick.tick().await;
        let mut second = 0;
        let sent = loop {
            tokio::select! {
                sent = &mut all_sent => break sent,
                _ = tick.tick() => self.say_second(second, self.way.counter().second()),
            }
            second += 1;
        };
        let Ok(sent) = sent else { return };
        self.way.counter().settle(sent).await;
        let rest = self.way.counter().second();
        if rest.sent > 0 || rest.received > 0 {
            self.say_second(second, rest);
        }
        let figures = self.way.counter().finish(sent);
        self.answer(ProbeSaid::Arrived { step: self.step, figures });
    }

    fn say_second(&self, second: u64, figures: Figures) {
        self.answer(ProbeSaid::Second { step: self.step, second, figures });
    }

    fn answer(&self, said: ProbeSaid) {
        let _ = self.say.send(PathProbed { run: self.run, said });
    }
}

const SECOND: Duration = Duration::from_secs(1);
