//! The division of a block's repair between coded symbols for the group and packets for single sites.

/// The number of symbols for the group when sites lack `lacks` packets of a block of `packets`, among
/// `members` that hear the group.
///
/// A symbol for the group costs one copy on the sender's link and one on each member's; a packet for one site
/// costs one on the sender's link and one on that site's. With the members' links weighed by their number, so
/// that the whole group counts as much as the sender, the cost of `r` symbols is
///
/// ```text
/// r  +  sum of max(0, lack - r)  +  mean over the members of max(0, r - lack)
/// ```
///
/// which falls as long as two sites lack more than `r`: the group gets the lack of the second worst site, and
/// the worst gets the rest alone. Sites that lack far more than is usual don't count: they would fill the
/// links of all others with packets that only they need.
pub(crate) fn symbols_for_group(packets: u64, members: u64, lacks: &[u64]) -> u64 {
    let mut sorted: Vec<u64> = lacks.iter().copied().filter(|lack| *lack > 0).collect();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let members = usize::try_from(members).unwrap_or(usize::MAX).max(sorted.len());
    let median = sorted.get(members / 2).copied().unwrap_or(0);
    let usual = median.saturating_mul(FAR_ABOVE).max(usual_lack(packets));
    let largest_usual = sorted.iter().find(|lack| **lack <= usual);
    sorted.get(1).min(largest_usual).copied().unwrap_or(0)
}

/// The same where requests are suppressed, from the sites and their losses. Only a handful of many ask, so
/// the site in the middle is not known. Instead sites that lack much of every block, while few others do, are
/// left out: other sites ask for common losses each time.
pub(crate) fn symbols_for_large_group(
    packets: u64,
    members: u64,
    lacks: &[(u64, u64)],
    is_usual: impl Fn(u64) -> bool,
) -> u64 {
    let loud = |lack: u64| lack > usual_lack(packets);
    let few = lacks.iter().filter(|(_, lack)| loud(*lack)).count() as u64 <= members / FEW_PART;
    let counts = lacks.iter().filter(|(site, lack)| !few || !loud(*lack) || is_usual(*site));
    let mut sorted: Vec<u64> = counts.map(|(_, lack)| *lack).collect();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    sorted.get(1).copied().unwrap_or(0)
}

/// The lack up to which no site is left out: on good networks the middle site lacks nothing.
pub(crate) fn usual_lack(packets: u64) -> u64 {
    packets.div_ceil(ALWAYS_PART)
}

/// Up to this part of the members may be left out. Of more, chosen at random, each would ask for too few
/// blocks to become known.
const FEW_PART: u64 = 8;

/// A site that lacks more than this many times what the middle site lacks is served alone.
const FAR_ABOVE: u64 = 4;

/// A site that lacks at most this part of a block (1 %) is never far above.
const ALWAYS_PART: u64 = 100;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cost(members: u64, lacks: &[u64], r: u64) -> f64 {
        let alone: u64 = lacks.iter().map(|lack| lack.saturating_sub(r)).sum();
        let idle = r * (members - lacks.len() as u64);
        let waste: u64 = lacks.iter().map(|lack| r.saturating_sub(*lack)).sum::<u64>() + idle;
        r as f64 + alone as f64 + waste as f64 / members as f64
    }

    proptest! {
        #[test]
        fn no_other_number_of_symbols_costs_less_where_losses_are_alike(
            lacks in prop::collection::vec(8u64..30, 1..12), quiet in 0u64..3,
        ) {
            let members = lacks.len() as u64 + quiet;
            prop_assume!(quiet < lacks.len() as u64);
            let chosen = symbols_for_group(1_024, members, &lacks);
            let least = (0..40).map(|r| cost(members, &lacks, r)).fold(f64::MAX, f64::min);
            prop_assert!(cost(members, &lacks, chosen) < least + 1e-9, "{chosen} costs more than {least}");
        }
    }

    #[test]
    fn one_site_alone_costs_the_group_nothing() {
        assert_eq!(symbols_for_group(1_024, 7, &[50]), 0);
        assert_eq!(symbols_for_group(1_024, 1, &[500]), 0);
        assert_eq!(symbols_for_group(1_024, 7, &[]), 0);
    }

    #[test]
    fn the_second_worst_site_decides() {
        assert_eq!(symbols_for_group(1_024, 7, &[10, 14, 9, 12, 8, 11, 17]), 14);
        assert_eq!(symbols_for_group(1_024, 3, &[4, 4, 4]), 4);
    }

    #[test]
    fn sites_far_above_the_middle_are_served_alone() {
        assert_eq!(symbols_for_group(1_024, 7, &[9, 10, 11, 10, 12, 500, 400]), 12);
        assert_eq!(symbols_for_group(1_024, 7, &[50, 51]), 0, "five sites lack nothing");
        assert_eq!(symbols_for_group(1_024, 7, &[11, 10]), 10, "about one in a hundred is usual");
    }
}
