//! The series of traffic reports.
use downburst_model::WallMicros;

/// The facts that one traffic report leaves for the next one.
#[derive(Debug, Default)]
pub struct TrafficReports {
    last_at: Option<WallMicros>,
    number: u64,
    control_bytes: u64,
}

impl TrafficReports {
    /// Begins a report; returns the beginning of its period: the last report, or the start of the node.
    pub fn begin(&mut self, now: WallMicros, started_at: WallMicros) -> WallMicros {
        self.last_at.replace(now).unwrap_or(started_at)
    }

    /// The turn of this report: the sessions of each turn are reported even without news.
    pub fn turn(&mut self) -> u64 {
        let turn = self.number % TURNS;
        self.number = self.number.wrapping_add(1);
        turn
    }

    /// Bytes of control messages since the last report, from totals since the start: all bytes written, and those of
    /// them that are attributed to legs.
    pub fn control_bytes(&mut self, written_bytes: u64, attributed_bytes: u64) -> u64 {
        let known_bytes = attributed_bytes.saturating_add(self.control_bytes);
        // Bytes are attributed to a leg when they are queued, a moment before they are written.
        let control_bytes = written_bytes.saturating_sub(known_bytes);
        self.control_bytes = self.control_bytes.saturating_add(control_bytes);
        control_bytes
    }
}

/// True if it is the turn of the session with this number.
pub(super) fn has_turn(serial: u64, turn: u64) -> bool {
    serial % TURNS == turn
}

/// Each session is reported at least once in this many reports: this makes up for reports that the agent missed,
/// and spreads the work.
const TURNS: u64 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_join_each_other_from_the_start_on() {
        let mut reports = TrafficReports::default();
        let started = WallMicros(5);
        assert_eq!(reports.begin(WallMicros(10), started), started);
        assert_eq!(reports.begin(WallMicros(20), started), WallMicros(10));
        assert_eq!(reports.begin(WallMicros(30), started), WallMicros(20));
    }

    #[test]
    fn each_session_has_its_turn_once_in_a_round() {
        let mut reports = TrafficReports::default();
        for serial in [1, TURNS, TURNS + 7] {
            let turns = (0..TURNS).filter(|_| has_turn(serial, reports.turn()));
            assert_eq!(turns.count(), 1);
        }
    }

    #[test]
    fn control_bytes_are_the_written_ones_that_belong_to_no_leg() {
        let mut reports = TrafficReports::default();
        assert_eq!(reports.control_bytes(100, 60), 40);
        assert_eq!(reports.control_bytes(100, 60), 0, "they are reported once");
        assert_eq!(reports.control_bytes(150, 200), 0, "some are queued and not written yet");
        assert_eq!(reports.control_bytes(260, 200), 20);
    }
}
