use downburst_model::{Micros, Sequence};

/// The times at which an idle leg announces its head: soon after the last data, because that shows a lost
/// tail, then at growing intervals.
#[derive(Debug)]
pub(crate) struct HeadSchedule {
    head: Sequence,
    due: Micros,
    step: Micros,
    interval: Micros,
    /// The number of further announcements at the shortest interval, for sites that are about to listen.
    prompt: u8,
}

impl HeadSchedule {
    /// The first announcement is due without delay: receivers join by it.
    pub(crate) fn new(head: Sequence, interval: Micros) -> Self {
        let interval = interval.max(SHORTEST);
        Self { head, due: Micros(0), step: interval, interval, prompt: 0 }
    }

    pub(crate) fn due(&self) -> Micros {
        self.due
    }

    /// The head to announce when everything up to `announced` is announced.
    pub(crate) fn head(&self, announced: Sequence) -> Sequence {
        self.head.max(announced)
    }

    pub(crate) fn moved(&mut self, now: Micros, head: Sequence) {
        if head > self.head {
            self.head = head;
            self.due = self.due.min(now.plus(SHORTEST));
        }
    }

    pub(crate) fn data_sent(&mut self, now: Micros) {
        self.step = SHORTEST;
        self.due = now.plus(SHORTEST);
    }

    /// A site is about to listen; the time at which its kernel and the switches are ready is unknown.
    pub(crate) fn expected(&mut self, now: Micros) {
        self.prompt = PROMPT;
        self.due = self.due.min(now.plus(SHORTEST));
    }

    pub(crate) fn said(&mut self, now: Micros) {
        if let Some(prompt) = self.prompt.checked_sub(1) {
            self.prompt = prompt;
            self.step = SHORTEST;
            self.due = now.plus(SHORTEST);
            return;
        }
        self.step = Micros(self.step.0.saturating_mul(2)).min(self.interval);
        self.due = now.plus(self.step);
    }
}

/// A tenth of a second: a joining takes half a round trip and the time that the switches need.
const PROMPT: u8 = 10;

/// From the last data to the first head.
const SHORTEST: Micros = Micros::from_millis(10);
