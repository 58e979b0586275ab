//! Fields of packets at fixed places.

/// Writes a field; a place outside the packet stays as it is.
pub(crate) fn put<const N: usize>(octets: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = octets.get_mut(at..at.saturating_add(N)) {
        place.copy_from_slice(&value);
    }
}

/// Reads a field; `None`: the packet ends before it.
pub(crate) fn take<const N: usize>(octets: &[u8], at: usize) -> Option<[u8; N]> {
    octets.get(at..)?.first_chunk().copied()
}
