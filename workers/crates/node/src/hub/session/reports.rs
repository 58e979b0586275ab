//! Reports of a session to the rest of the hub.
use downburst_hub::{Event, LegReport, Noted, NotedReceipt, Report, Returned, StatusChange, live_waits};
use downburst_session::{ClockOffset, Receipt};

use super::Task;
use crate::hub::lock;
use crate::hub::receipts::Row;

impl Task {
    pub(super) fn report(&mut self, report: Report) {
        match report {
            Report::Sent { feed, leg, products, bytes } => {
                self.hub.counters.sent(&feed, leg, products, bytes);
            }
            Report::Receipts { clock, items } => self.receipts(clock, items),
            Report::Status(change) => self.change(change),
            Report::Frontier(frontier) => {
                let Some(site) = self.session.site() else { return };
                lock(&self.hub.figures.batches).frontier(site, &frontier);
                self.change(StatusChange::Stands(frontier));
            }
            Report::Settled(feed, epoch, settled) => {
                if let Some(site) = self.session.site() {
                    lock(&self.hub.sessions.siblings).stands(site, &feed, (epoch, &settled));
                    self.hub.figures.backlogs.stands(site, &feed, (epoch, settled));
                }
            }
            Report::LateSent(bytes) => {
                if let Some(member) = &self.member {
                    let (now, serial) = (self.hub.clock.monotonic(), member.handle.serial);
                    self.hub.sessions.late_share.sent(now, serial, bytes);
                }
            }
            Report::Filed(items) => self.filed(items),
            Report::CatchUp { leg, hears } => {
                if let Some(member) = &self.member {
                    lock(&self.hub.legs.catch_ups).heard(leg, member.handle.serial, hears);
                }
            }
            Report::Recheck(keys) => self.hub.recheck(&keys),
            Report::Connected => self.tell_session("connected", None),
            report => self.tell_people(&report),
        }
    }

    pub(super) fn tell_session(&self, state: &'static str, reason: Option<&str>) {
        self.hub.event(&Event::Session {
            site: self.session.site().cloned(),
            state,
            peer: self.peer.to_string(),
            reason: reason.map(str::to_owned),
            software: self.session.software().map(str::to_owned),
            stand_by: self.session.stands_by(),
            renews: self.member.is_some(),
        });
    }

    fn change(&self, change: StatusChange) {
        let Some(member) = &self.member else { return };
        let mut status = lock(&member.handle.status);
        if let (StatusChange::Planned(count, reason), Some(site)) = (&change, self.session.site())
            && status.streams.planned != *count
        {
            tracing::info!(site = site.as_str(), count, "data connections: {}", reason);
        }
        status.apply(change);
    }

    fn receipts(&mut self, clock: Option<ClockOffset>, items: Vec<NotedReceipt>) {
        let (Some(site), Some(member)) = (self.session.site(), &self.member) else { return };
        let (hub, now) = (&self.hub, self.hub.clock.now());
        if let Some(clock) = clock {
            hub.sessions.late_share.arrived(now.monotonic, member.handle.serial, live_waits(clock, &items));
            hub.counters.transfers(site, clock, &items);
        }
        let noted: Vec<Noted<'_>> = items.iter().map(NotedReceipt::as_noted).collect();
        let passed_over = lock(&hub.figures.batches).receipts(site, &noted, clock, now.wall);
        drop(noted);
        if lock(&hub.figures.batches).is_large() {
            hub.write_batch();
        }
        let row = |noted: NotedReceipt| Row::new(noted.receipt, noted.first_byte);
        hub.figures.receipts.record(site, clock, items.into_iter().map(row).collect());
        if passed_over > 0 {
            self.tell(downburst_hub::SessionInput::PassedOver(passed_over));
        }
    }

    fn filed(&self, items: Vec<Receipt>) {
        let Some(site) = self.session.site() else { return };
        lock(&self.hub.figures.batches).filed(site, &items, self.hub.clock.wall());
        self.hub.figures.receipts.record(site, None, items.into_iter().map(Row::of_late_file).collect());
    }

    /// A site that receives its leg from here on may lack what others lack.
    fn returned(&self, report: &LegReport) {
        let (Some(site), Some(member), Some(after)) = (self.session.site(), &self.member, report.after)
        else {
            return;
        };
        if report.state == "joined" {
            let (feed, session) = (report.feed.clone(), member.handle.serial);
            let live = report.leg;
            self.hub.site_returned(Returned {
                site: site.clone(),
                session,
                feed,
                live,
                covered_after: after,
            });
        }
    }

    fn tell_people(&self, report: &Report) {
        let Some(site) = self.session.site() else { return };
        match report {
            Report::Leg(report) => self.returned(report),
            Report::Violation { sentence, ends: false } => tracing::warn!(%site, "{sentence}"),
            Report::Fault { sentence, .. } => tracing::warn!("{sentence}"),
            Report::Ride { to, feeds, begins: true } => {
                tracing::info!(site = site.as_str(), to, feeds, "products go by a circuit");
            }
            Report::Ride { to, feeds, begins: false } => {
                tracing::info!(site = site.as_str(), to, feeds, "products leave a circuit");
            }
            Report::StreamEnded { stream, reason } => {
                tracing::info!(site = site.as_str(), stream = stream.0, "a data connection ended: {reason}");
            }
            _ => {}
        }
        if let Some(event) = Event::of_report(site, report) {
            self.hub.event(&event);
        }
    }
}
