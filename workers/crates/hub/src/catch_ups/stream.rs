//! One stream: its range, its members, and its end.
use downburst_model::{FeedName, LegId, Micros, Sequence, SiteName};

use super::api::{CatchUpFacts, CatchUpReport, CatchUpStep, Progress, StreamStart, over};
use super::pricing::{self, Price};
use super::{CatchUpLine, Lacking};

/// A stream that was decided.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) feed: FeedName,
    live: LegId,
    after: u64,
    to: u64,
    members: Vec<Member>,
    began: Micros,
    /// The time at which its products began to leave.
    went: Option<Micros>,
    /// The time at which all products had been sent once.
    sent: Option<Micros>,
    /// The bytes of repairs at the last look that found more of them, and the time.
    moved: (u64, Micros),
    price: Price,
    over: bool,
}

#[derive(Debug)]
struct Member {
    site: SiteName,
    session: u64,
    /// The part of the range that it lacked at the beginning, in bytes.
    lacked_bytes: u64,
    state: State,
    offered: Micros,
    /// It received the stream at some time.
    has_heard: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Offered,
    Hears,
    Leaving(Micros),
    Left,
}

impl Stream {
    pub(super) fn begin(
        now: Micros,
        (feed, live): (FeedName, LegId),
        (after, to): (u64, u64),
        lacking: Vec<Lacking>,
        facts: &dyn CatchUpFacts,
    ) -> Self {
        let part = |one: &Lacking| facts.bytes(&feed, after.max(one.settled_to), to);
        let members: Vec<Member> = lacking.iter().map(|one| Member::new(now, one, part(one))).collect();
        let price = Price {
            bytes: facts.bytes(&feed, after, to),
            lacked_bytes: members.iter().map(|member| member.lacked_bytes).sum(),
            sites: members.len(),
            rate_bps: facts.rate_bps(live),
        };
        let (went, sent, moved) = (None, None, (0, now));
        Self { feed, live, after, to, members, began: now, went, sent, moved, price, over: false }
    }

    pub(super) fn start(&self, line: &CatchUpLine) -> StreamStart {
        let (after, to) = (Sequence(self.after), Sequence(self.to));
        StreamStart { line: line.clone(), feed: self.feed.clone(), live: self.live, after, to }
    }

    /// The first steps: the offers to all members, and the report.
    pub(super) fn offers(&self, leg: LegId, steps: &mut Vec<CatchUpStep>) {
        steps.extend(self.members.iter().map(|member| self.offer(leg, member)));
        let sites = self.members.iter().map(|member| member.site.clone()).collect();
        let report = self.report(leg, ("began", sites), (0, 0), self.price.begun(&self.feed));
        steps.push(CatchUpStep::Report(report));
    }

    /// Takes the sites that still lack enough of the rest as members; returns them.
    pub(super) fn admit(
        &mut self,
        now: Micros,
        leg: LegId,
        lacking: Vec<Lacking>,
        least_bytes: u64,
        facts: &dyn CatchUpFacts,
        steps: &mut Vec<CatchUpStep>,
    ) -> Vec<SiteName> {
        let progress = facts.progress(leg).unwrap_or_default();
        let from = self.after.max(progress.sent_to);
        let mut admitted = Vec::new();
        for one in lacking.into_iter().filter(|one| one.covered_after >= self.to) {
            let bytes = facts.bytes(&self.feed, from.max(one.settled_to), self.to);
            if bytes < least_bytes.max(1) || self.is_ending() {
                continue;
            }
            self.members.retain(|member| member.site != one.site);
            let member = Member::new(now, &one, bytes);
            steps.push(self.offer(leg, &member));
            self.members.push(member);
            admitted.push(one.site);
        }
        admitted
    }

    pub(super) fn heard(&mut self, session: u64, hears: bool) {
        for member in self.members.iter_mut().filter(|member| member.session == session) {
            member.has_heard |= hears;
            member.state = match (hears, member.state) {
                (true, State::Offered) => State::Hears,
                (true, state) => state,
                (false, _) => State::Left,
            };
        }
    }

    pub(super) fn gone(&mut self, session: u64) {
        let of = self.members.iter_mut().filter(|member| member.session == session);
        of.for_each(|member| member.state = State::Left);
    }

    pub(super) fn member(&self, session: u64) -> (bool, bool) {
        let member = self.members.iter().find(|member| member.session == session);
        member.map_or((false, false), |member| {
            (matches!(member.state, State::Offered | State::Hears), member.state == State::Hears)
        })
    }

    pub(super) fn hearing(&self) -> u64 {
        self.members.iter().filter(|member| member.state == State::Hears).count() as u64
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Takes the steps that are due.
    pub(super) fn look(
        &mut self,
        now: Micros,
        leg: LegId,
        facts: &dyn CatchUpFacts,
        steps: &mut Vec<CatchUpStep>,
    ) {
        let progress = facts.progress(leg);
        self.note(now, progress);
        if self.went.is_none() && self.is_gathered(now) {
            self.went = Some(now);
            steps.push(CatchUpStep::Go(leg));
        }
        let ends = progress.is_none() || self.is_done(now) || facts.line(&self.feed, self.live).is_none();
        let turn = now.0 / TURN.0;
        for (place, member) in (0_u64..).zip(&mut self.members) {
            // Rights and plans change seldom, and a look at them for each of a thousand sites takes its time.
            let is_looked_at = turn.wrapping_add(place) % TURNS == 0;
            let may_stay = !is_looked_at || facts.settled_to(&member.site, &self.feed, self.live).is_some();
            let has_all = || facts.has(&member.site, &self.feed, self.after, self.to);
            let never_heard = member.state == State::Offered && now.since(member.offered) >= JOIN_LIMIT;
            let stays = !ends && may_stay && !never_heard && (self.sent.is_none() || !has_all());
            member.look(now, leg, stays, steps);
        }
        if self.members.iter().all(|member| member.state == State::Left) {
            self.over = true;
            steps.push(CatchUpStep::Stop(leg));
            steps.push(CatchUpStep::Report(self.ended(now, leg, progress.unwrap_or_default())));
        }
    }

    fn note(&mut self, now: Micros, progress: Option<Progress>) {
        let Some(Progress { sent_to, repair_bytes, .. }) = progress else { return };
        if repair_bytes != self.moved.0 {
            self.moved = (repair_bytes, now);
        }
        if self.sent.is_none() && sent_to >= self.to {
            self.sent = Some(now);
        }
    }

    /// True once every member receives the stream, or those that do have waited long enough.
    fn is_gathered(&self, now: Micros) -> bool {
        !self.members.iter().any(|member| member.state == State::Offered)
            || (now.since(self.began) >= GATHER && self.hearing() > 0)
    }

    /// True once all was sent, and no repair left for a while.
    fn is_done(&self, now: Micros) -> bool {
        over(now, self.sent, QUIET)
            && (now.since(self.moved.1) >= QUIET || over(now, self.sent, REPAIR_LIMIT))
    }

    fn is_ending(&self) -> bool {
        self.sent.is_some()
    }

    fn offer(&self, leg: LegId, member: &Member) -> CatchUpStep {
        let (site, session) = (member.site.clone(), member.session);
        CatchUpStep::Offer { leg, site, session, feed: self.feed.clone(), to: Sequence(self.to) }
    }

    fn ended(&self, now: Micros, leg: LegId, progress: Progress) -> CatchUpReport {
        let heard: Vec<&Member> = self.members.iter().filter(|member| member.has_heard).collect();
        let lacked: u64 = heard.iter().map(|member| member.lacked_bytes).sum();
        let once = progress.bytes.saturating_sub(progress.repair_bytes);
        let got: u64 = heard.iter().map(|member| member.lacked_bytes.min(once)).sum();
        let saved_bytes = got.saturating_sub(progress.bytes);
        let millis = now.since(self.began).0 / 1_000;
        let sentence = pricing::ended(&self.feed, (heard.len(), progress.bytes, saved_bytes), millis);
        let sites = heard.iter().map(|member| member.site.clone()).collect();
        let report = self.report(leg, ("ended", sites), (progress.bytes, saved_bytes), sentence);
        CatchUpReport { lacked_bytes: lacked, ..report }
    }

    fn report(
        &self,
        leg: LegId,
        (state, sites): (&'static str, Vec<SiteName>),
        (sent_bytes, saved_bytes): (u64, u64),
        sentence: String,
    ) -> CatchUpReport {
        CatchUpReport {
            feed: self.feed.clone(),
            leg,
            live_leg: self.live,
            state,
            sites,
            from: Sequence(self.after.saturating_add(1)),
            to: Sequence(self.to),
            lacked_bytes: self.price.lacked_bytes,
            sent_bytes,
            saved_bytes,
            sentence,
        }
    }
}

impl Member {
    fn new(now: Micros, lacking: &Lacking, lacked_bytes: u64) -> Self {
        let (site, session) = (lacking.site.clone(), lacking.session);
        Self { site, session, lacked_bytes, state: State::Offered, offered: now, has_heard: false }
    }

    fn look(&mut self, now: Micros, leg: LegId, stays: bool, steps: &mut Vec<CatchUpStep>) {
        match self.state {
            State::Offered | State::Hears if !stays => {
                self.state = State::Leaving(now);
                steps.push(CatchUpStep::Leave { leg, site: self.site.clone(), session: self.session });
            }
            State::Leaving(since) if now.since(since) >= LEAVE_LIMIT => self.state = State::Left,
            _ => {}
        }
    }
}

/// The range that two or more sites lack, if it has enough bytes: behind the second-lowest end of what they have, and
/// up to the second-highest number that a live leg does not cover. The rest is lacked by one site alone.
pub(super) fn shared(
    lacking: &[Lacking],
    least_bytes: u64,
    bytes: impl Fn(u64, u64) -> u64,
) -> Option<(u64, u64)> {
    let mut starts: Vec<u64> = lacking.iter().map(|one| one.settled_to).collect();
    let mut ends: Vec<u64> = lacking.iter().map(|one| one.covered_after).collect();
    starts.sort_unstable();
    ends.sort_unstable_by_key(|end| std::cmp::Reverse(*end));
    let (after, to) = (*starts.get(1)?, *ends.get(1)?);
    (after < to && bytes(after, to) >= least_bytes.max(1)).then_some((after, to))
}

/// Each member's rights are looked at once in this number of turns.
const TURNS: u64 = 10;
const TURN: Micros = Micros::from_millis(100);

/// The longest wait of a stream for its members: a join takes some round trips.
const GATHER: Micros = Micros::from_millis(1_500);

/// A site that receives nothing of the group in this time gets its products by its session.
const JOIN_LIMIT: Micros = Micros::from_secs(6);

/// The time without a repair after which none is under way.
const QUIET: Micros = Micros::from_secs(3);

/// The longest time for repairs after the last product.
const REPAIR_LIMIT: Micros = Micros::from_secs(30);

/// The time for a site's answer to the request to leave.
const LEAVE_LIMIT: Micros = Micros::from_secs(5);
