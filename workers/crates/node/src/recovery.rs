//! What opening a log found, as a sentence.
use downburst_log::Recovery;

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
    for path in &recovery.quarantined {
        parts.push(format!("{} was set aside because it can't be read", path.display()));
    }
    match (recovery.clean, parts.is_empty()) {
        (true, true) => None,
        (false, true) => Some("the log was not closed cleanly; everything acknowledged is there".to_owned()),
        (_, false) => Some(format!("the log was repaired: {}; everything else is there", parts.join("; "))),
    }
}
