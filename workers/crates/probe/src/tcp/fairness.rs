//! The fairness of flows beside each other.

/// Jain's fairness index of rates, (Σx)² / (n Σx²): 1 where all are equal, 1/n where one has all (Jain, Chiu and Hawe,
/// DEC-TR-301, 1984). `None` for fewer than two, or where nothing arrived.
pub fn fairness(rates_bps: &[u64]) -> Option<f64> {
    if rates_bps.len() < 2 {
        return None;
    }
    let rates = || rates_bps.iter().map(|rate| *rate as f64);
    let (sum, squares) = (rates().sum::<f64>(), rates().map(|rate| rate * rate).sum::<f64>());
    (squares > 0.0).then(|| sum * sum / (rates_bps.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_shares_are_fair_and_a_single_winner_is_not() {
        assert_eq!(fairness(&[7, 7, 7]), Some(1.0));
        assert_eq!(fairness(&[9, 0]), Some(0.5));
        assert_eq!((fairness(&[]), fairness(&[5]), fairness(&[0, 0])), (None, None, None));
        assert!((fairness(&[3, 1]).unwrap() - 0.8).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn the_index_lies_between_one_winner_and_equality(rates: Vec<u64>) {
            if let Some(index) = fairness(&rates) {
                let least = 1.0 / rates.len() as f64;
                prop_assert!(index >= least - 1e-9 && index <= 1.0 + 1e-9, "{index}");
            }
        }
    }
}
