//! The messages of a site, field by field.
use downburst_probe::{Control, Delays, Excess, Figures, FlowFigures, Sent, SentByTcp};
use downburst_session::{
    ActionFailed, Attach, CircuitFault, CircuitHeard, CircuitProbed, CircuitRate, CircuitReach, CircuitState,
    ClockOffset, ClockRequest, CredentialOffered, CredentialShown, FeedPosition, Filed, Fingerprint, Forged,
    Frontier, HeartbeatOut, Hello, HostReading, KeyTaken, Late, LegJoined, LegLeft, LineReading, LinkedSpace,
    Marked, Nak, PathProbed, ProbeSaid, Proof, Receipt, Receipts, ReceiveBuffer, Reception, ReferralEnded,
    RelayLegFailed, RelayLegOpen, RelayReport, RelayedLeg, ResentEnded, ResentFailed, Segment, SiblingFault,
    SiblingPort, SiteClock, StreamEnded, Taken, TunnelFacts, VERSIONS, Want,
};
use downburst_vcmtp::{Losses, SymbolsHeard};

use crate::absurd::{Absurd, absurd};
use crate::frames::Liar;

absurd! {
    Hello { versions = versions, software, proof, feeds, stand_by = seldom, one_node = seldom }
    FeedPosition { feed, epoch, settled, newest_stored }
    LegJoined { leg, leg_epoch = leg_epoch, after, reception }
    Reception { buffer_bytes, path, advice }
    LegLeft { leg, known_to, reason, too_slow }
    Nak { leg, leg_epoch = leg_epoch, packets, heard, symbols, unanswered, losses }
    SymbolsHeard { block, made }
    Losses { missed, of }
    Want { feed, epoch, sequences }
    Receipts { clock, items }
    Filed { items }
    ClockOffset { offset_us, bound_us, round_trip_us }
    Receipt {
        key, outcome, lane, leg, transport, class, size, created, hub_stored, last_byte, site_stored, repaired,
        action_done,
    }
    ClockRequest { sent }
    Frontier { feed, epoch, settled_to, pending, trouble = rarely, action_failed = rarely, linked = rarely }
    LinkedSpace { bytes, free_bytes }
    ActionFailed { rule, exit, last_error, product, sequence, epoch, count, others }
    ResentEnded { resend = resend, key, outcome, size }
    ResentFailed { resend = resend, sequences }
    Late { feed, products }
    KeyTaken { leg, leg_epoch = leg_epoch, key_id }
    CircuitState { lease = lease, fault }
    CircuitHeard { lease = lease, fault }
    CircuitProbed { lease = lease, run, reach, rate }
    PathProbed { run, said }
    Figures {
        sent, received, lost, reordered, duplicated, bytes, elapsed_us, delay, jitter_us, losses, excess,
        dropped_here,
    }
    Delays { min, median, p99, max }
    Excess { at_us, lost, excess_us, recovery_us, peak_bps, backlog_bytes, predicted_us }
    Sent { packets, elapsed_us, lag_us, tcp }
    SentByTcp { control, retransmits }
    FlowFigures { received_bytes, elapsed_us, retransmits, least_round_trip_us, mean_round_trip_us, held_us }
    CircuitReach { sent, received, round_trip_us = spread }
    CircuitRate {
        sent, received, offered_bps, received_bps, bins_bps, sent_bins_bps, lost_ppm_by_bin, delay_rise_us = rise,
        longest_loss_run, burst = burst, others_bps,
    }
    RelayLegOpen { leg, source = address, mtu_bytes }
    RelayLegFailed { leg, sentence }
    CircuitFault { step, sentence, remedy }
    Forged { leg, leg_epoch = leg_epoch }
    Marked { number }
    Attach { ticket }
    StreamEnded { stream = stream, reason }
    Taken { stream = stream, transfers }
    HeartbeatOut { key, at }
    CredentialOffered { sha256 = spare_sha256 }
    CredentialShown { secret = spare_secret }
    RelayReport { tunnels, legs, refused }
    SiteClock { synchronised, error_us, estimated_error_us, daemon }
    HostReading { leg, dropped, buffer, priority, standing, demotions, line }
    LineReading { arrived_bps, offered_bps, packets, lost, windows }
    ReceiveBuffer { asked_bytes, granted_bytes, needed_bytes, limit_bytes }
    RelayedLeg { leg, datagrams, bytes, dropped }
    TunnelFacts {
        site_side, hub_side, target, seconds, bytes_from_hub, bytes_from_site, rate_from_hub_bps, near, onward, ended,
    }
    Segment { round_trip_us, loss_ppm, congestion, rate_bps }
    SiblingPort { port, fingerprint }
    ReferralEnded { number, missing, fault }
}

impl Absurd for Fingerprint {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        Self([liar.dice.throw() as u8; 32])
    }
}

impl Absurd for SiblingFault {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        let all = [Self::Unreachable, Self::Refused, Self::Lacking, Self::Slow, Self::Rubbish];
        liar.dice.pick(&all).copied().unwrap_or(Self::Rubbish)
    }
}

impl Absurd for Control {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        let names = ["cubic", "bbr", "a", "123456789012345"].map(Control::parse);
        liar.dice.pick(&names).copied().flatten().unwrap_or_else(|| Self::absurd(liar))
    }
}

impl Absurd for ProbeSaid {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        let step = Absurd::absurd(liar);
        match liar.dice.below(9) {
            0 => Self::Ready { step: Absurd::absurd(liar), tcp: Absurd::absurd(liar) },
            6 => Self::Listening { port: Absurd::absurd(liar) },
            7 => Self::Heard { ipv6: Absurd::absurd(liar) },
            1 => Self::Refused(Absurd::absurd(liar)),
            2 => Self::Sent { step, sent: Absurd::absurd(liar) },
            3 => Self::Second { step, second: Absurd::absurd(liar), figures: Absurd::absurd(liar) },
            4 => Self::TrialReady { trial: step, refusal: Absurd::absurd(liar) },
            5 => Self::TrialEnded { trial: step, flows: Absurd::absurd(liar) },
            _ => Self::Arrived { step, figures: Absurd::absurd(liar) },
        }
    }
}

impl Absurd for Proof {
    fn absurd(liar: &mut Liar<'_>) -> Self {
        match liar.dice.one_in(2) {
            true => Self::Token { secret: Absurd::absurd(liar), credential_sha256: spare_sha256(liar) },
            false => Self::Credential { site: Absurd::absurd(liar), secret: Absurd::absurd(liar) },
        }
    }
}

/// Versions that this release supports, and some that do not exist.
fn versions(liar: &mut Liar<'_>) -> Vec<u16> {
    let spoken = liar.dice.pick(&VERSIONS).copied().unwrap_or_default();
    match liar.dice.below(8) {
        0..4 => VERSIONS.to_vec(),
        4..7 => vec![u16::MAX, spoken, spoken, 0],
        _ => Absurd::absurd(liar),
    }
}

fn seldom(liar: &mut Liar<'_>) -> Option<bool> {
    liar.dice.one_in(20).then_some(true)
}

fn rarely<T: Absurd>(liar: &mut Liar<'_>) -> Option<T> {
    liar.dice.one_in(4).then(|| T::absurd(liar))
}

fn leg_epoch(liar: &mut Liar<'_>) -> u64 {
    if liar.is_wild() { u64::absurd(liar) } else { liar.focus.leg_epoch }
}

fn resend(liar: &mut Liar<'_>) -> u64 {
    let known = liar.dice.pick(&liar.scene.resends).copied();
    known.unwrap_or_else(|| u64::absurd(liar))
}

fn lease(liar: &mut Liar<'_>) -> u32 {
    let known = liar.dice.pick(&liar.scene.leases).copied();
    known.unwrap_or_else(|| u32::absurd(liar))
}

fn rise(liar: &mut Liar<'_>) -> (u64, u64, u64) {
    (Absurd::absurd(liar), Absurd::absurd(liar), Absurd::absurd(liar))
}

fn spread(liar: &mut Liar<'_>) -> Option<(u64, u64, u64)> {
    liar.dice.one_in(2).then(|| rise(liar))
}

fn burst(liar: &mut Liar<'_>) -> (u32, u32) {
    (Absurd::absurd(liar), Absurd::absurd(liar))
}

fn address(liar: &mut Liar<'_>) -> String {
    if liar.is_wild() { Absurd::absurd(liar) } else { "192.0.2.7".to_owned() }
}

fn stream(liar: &mut Liar<'_>) -> u32 {
    let known = liar.dice.pick(&liar.scene.streams).map(|(stream, _)| *stream);
    known.unwrap_or_else(|| u32::absurd(liar))
}

fn spare_sha256(liar: &mut Liar<'_>) -> String {
    if liar.is_wild() { Absurd::absurd(liar) } else { liar.scene.spare.1.clone() }
}

/// The true spare secret only if the hub keeps it, as it then becomes this site's credential.
fn spare_secret(liar: &mut Liar<'_>) -> String {
    if liar.scene.spare_is_kept { liar.scene.spare.0.clone() } else { Absurd::absurd(liar) }
}
