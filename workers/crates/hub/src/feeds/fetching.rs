//! Products that the copy of a shared log no longer holds, for the sites that request them.
use bytes::Bytes;
use downburst_model::{Content, ProductInfo, Sequence, WallMicros};

/// True if the bytes of a product have to be fetched: the copy lacks them, the feed still keeps them, and a site
/// wants them.
pub fn lacking(
    info: &ProductInfo,
    has_bytes: bool,
    kept_since: WallMicros,
    is_wanted: impl Fn(&str) -> bool,
) -> bool {
    !has_bytes && info.stored >= kept_since && !info.id.is_heartbeat() && is_wanted(info.id.as_str())
}

/// Hands out fetched bytes to the entries that asked for them, in order. The store may return fewer than were asked
/// for; the read then ends before the first product without an answer, and this returns its new end. Each entry is its
/// sequence and the place of its bytes.
pub fn fill_in<E>(
    entries: &mut Vec<E>,
    asked: impl Iterator<Item = Sequence> + Clone,
    fetched: Vec<Option<Bytes>>,
    parts: impl Fn(&mut E) -> (Sequence, &mut Option<Content>),
) -> Option<Sequence> {
    let unanswered = asked.clone().nth(fetched.len());
    if let Some(unanswered) = unanswered {
        entries.retain_mut(|entry| parts(entry).0 < unanswered);
    }
    let mut answers = asked.zip(fetched).peekable();
    for entry in entries {
        let (sequence, bytes) = parts(entry);
        if let Some((_, answer)) = answers.next_if(|(asked, _)| *asked == sequence) {
            *bytes = answer.map(Content::from);
        }
    }
    unanswered.map(|unanswered| Sequence(unanswered.0.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::product;

    type Entry = (Sequence, Option<Content>);

    fn bytes(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    fn filled(asked: &[u64], fetched: Vec<Option<Bytes>>) -> (Vec<Entry>, Option<Sequence>) {
        let mut entries: Vec<Entry> = [(1, None), (2, bytes("own").map(Content::from)), (3, None), (4, None)]
            .map(|(number, bytes)| (Sequence(number), bytes))
            .into();
        let asked = asked.iter().copied().map(Sequence);
        let end = fill_in(&mut entries, asked, fetched, |entry| (entry.0, &mut entry.1));
        (entries, end)
    }

    #[test]
    fn only_what_a_site_wants_and_the_feed_keeps_is_fetched() {
        let info = product(5, "SA", 90);
        let is_lacking = |has_bytes, since| lacking(&info, has_bytes, WallMicros(since), |id| id == "SA");
        assert!(is_lacking(false, 90));
        assert!(!is_lacking(true, 90) && !is_lacking(false, 91));
        assert!(!lacking(&info, false, WallMicros(0), |_| false));
        let heartbeat = product(6, "downburst:heartbeat:9", 90);
        assert!(!lacking(&heartbeat, false, WallMicros(0), |_| true));
    }

    #[test]
    fn fetched_bytes_go_to_their_products() {
        let (entries, end) = filled(&[1, 4], vec![bytes("one"), None]);
        let found: Vec<Option<Content>> = entries.into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(found, [bytes("one"), bytes("own"), None, None].map(|it| it.map(Content::from)));
        assert_eq!(end, None, "the store has answered all");
    }

    #[test]
    fn a_read_ends_before_the_first_product_without_an_answer() {
        let (entries, end) = filled(&[1, 3, 4], vec![bytes("one")]);
        let left =
            [(1, "one"), (2, "own")].map(|(number, text)| (Sequence(number), bytes(text).map(Content::from)));
        assert_eq!(entries, left);
        assert_eq!(end, Some(Sequence(2)));
    }
}
