//! Losses and reordering by direction, from a reflector that counts its answers.
use serde::Serialize;

/// The direction of losses, if it can be known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "known", rename_all = "kebab-case")]
pub enum Directions {
    /// The reflector counts, or nothing was lost.
    Yes(DirectionFigures),
    /// It can't be known.
    No {
        /// A sentence.
        reason: String,
    },
}

/// Packets by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DirectionFigures {
    /// Requests lost on their way, up to the last that has an answer.
    pub forward_lost: u64,
    /// Answers lost on their way, up to the last that arrived.
    pub backward_lost: u64,
    /// Requests after the last that has an answer: lost in either direction.
    pub either_lost: u64,
    /// Requests that reached the reflector after a later one.
    pub forward_reordered: u64,
    /// Answers that arrived after a later one.
    pub backward_reordered: u64,
}

impl Default for Directions {
    fn default() -> Self {
        Self::Yes(DirectionFigures::default())
    }
}

/// Judges pairs of a request's and its answer's sequence, in the order of arrival.
pub(crate) fn directions(sent: usize, pairs: &[(u32, u32)], stateful: bool) -> Directions {
    let sent = u64::try_from(sent).unwrap_or(u64::MAX);
    let answered = u64::try_from(pairs.len()).unwrap_or(u64::MAX);
    let counts = stateful || pairs.iter().any(|(request, answer)| request != answer);
    let last = |number: Option<u32>| number.map_or(0, |number| u64::from(number) + 1);
    let last_request = last(pairs.iter().map(|(request, _)| *request).max());
    let at_reflector = last(pairs.iter().map(|(_, answer)| *answer).max());
    if !counts && answered < sent {
        return no(
            "the answers have the numbers of their requests: the reflector does not count, or lost none",
        );
    }
    if at_reflector > last_request || at_reflector < answered {
        return no(
            "the reflector's count does not fit to this run; it began before, or requests were doubled",
        );
    }
    Directions::Yes(DirectionFigures {
        forward_lost: last_request - at_reflector,
        backward_lost: at_reflector - answered,
        either_lost: sent.saturating_sub(last_request),
        forward_reordered: if counts { forward_reordered(pairs) } else { 0 },
        backward_reordered: late_arrivals(pairs.iter().map(|(_, answer)| *answer)),
    })
}

/// The numbers that come after a larger one (RFC 4737, section 3.3).
pub(crate) fn late_arrivals(numbers: impl Iterator<Item = u32>) -> u64 {
    let mut most = None;
    let mut late = 0;
    for number in numbers {
        late += u64::from(Some(number) < most);
        most = most.max(Some(number));
    }
    late
}

fn forward_reordered(pairs: &[(u32, u32)]) -> u64 {
    let mut by_answer = pairs.to_vec();
    by_answer.sort_unstable_by_key(|(_, answer)| *answer);
    late_arrivals(by_answer.into_iter().map(|(request, _)| request))
}

fn no(reason: &str) -> Directions {
    Directions::No { reason: reason.to_owned() }
}
