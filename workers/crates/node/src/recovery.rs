//! The findings at the opening of a log, as a sentence.
use downburst_log::Recovery;

/// True if nothing was cut, skipped or set aside, so that an unclean end needs no action.
pub(crate) fn is_whole(recovery: &Recovery) -> bool {
    let Recovery { cut_bytes, damaged, lost, quarantined, sequence_lost, .. } = recovery;
    *cut_bytes == 0 && damaged.is_empty() && lost.is_empty() && quarantined.is_empty() && !sequence_lost
}

/// One sentence for an operator, or `None` after a clean stop.
pub(crate) fn sentence(recovery: &Recovery) -> Option<String> {
    let mut parts = Vec::new();
    if recovery.cut_bytes > 0 {
        parts.push(format!("{} bytes of unfinished products were cut", recovery.cut_bytes));
    }
    for damage in &recovery.damaged {
        parts.push(format!(
            "{} bytes at {} of {} can't be read and were stepped over",
            damage.bytes,
            damage.offset,
            damage.segment.display()
        ));
    }
    for lost in &recovery.lost {
        let (first, last) = lost.sequences;
        parts.push(format!(
            "{} products (numbers {} to {}) are lost with bytes of {}",
            lost.products,
            first.0,
            last.0,
            lost.segment.display()
        ));
    }
    for path in &recovery.quarantined {
        parts.push(format!("{} was set aside because it can't be read", path.display()));
    }
    if recovery.sequence_lost {
        parts.push(SEQUENCE_LOST.to_owned());
    }
    let rest = if recovery.sequence_lost { UNREAD } else { "everything else is there" };
    match (recovery.clean, parts.is_empty()) {
        (true, true) => None,
        (false, true) => Some("the log was not closed cleanly; its end was read and is whole".to_owned()),
        (_, false) => Some(format!("the log was repaired: {}; {rest}", parts.join("; "))),
    }
}

const SEQUENCE_LOST: &str = "its file `sequence` was missing or damaged, so numbering resumes 1,000,000,000 above \
    the last number found";
const UNREAD: &str = "sealed segments were not read yet: the scrub reads them now and lists the damage";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_19_without_its_sequence_file_no_log_is_said_to_be_whole() {
        let recovery = Recovery { sequence_lost: true, ..Recovery::default() };
        let sentence = sentence(&recovery).unwrap();
        assert!(
            sentence.contains("`sequence` was missing") && sentence.contains("were not read yet"),
            "{sentence}"
        );
        assert!(!sentence.contains("is there"), "{sentence}");
        assert!(!is_whole(&recovery));
    }

    #[test]
    fn an_end_that_was_not_clean_is_whole_until_bytes_were_cut() {
        let killed = Recovery::default();
        assert!(is_whole(&killed) && sentence(&killed).unwrap().ends_with("its end was read and is whole"));
        let cut = Recovery { cut_bytes: 7, ..killed };
        assert!(
            !is_whole(&cut) && sentence(&cut).unwrap().contains("7 bytes of unfinished products were cut")
        );
    }
}
