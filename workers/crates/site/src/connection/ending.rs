//! The end of a connection: after a failure, with further attempts, or because it is no longer needed.
use downburst_model::{Machine as _, Micros, Now};
use downburst_session::SiteInput;

use super::{Connection, CredentialsOrder, Link, News, Output, Reconnect, Role};

impl Connection {
    pub(super) fn closed(&mut self, now: Now, reason: &str) {
        match self.link {
            Link::Up => {
                tracing::info!("{reason}");
                self.attempts.hang_up = true;
            }
            // The last receipts can't be sent any more.
            Link::Settling { was_up: true } => {
                self.link = Link::Settling { was_up: false };
                self.disconnect(now);
            }
            _ => {}
        }
    }

    /// Changes the role; a new role begins with a new connection.
    pub(super) fn take_role(&mut self, role: Role) {
        if role == self.role || !(self.is_working() || self.attempts.moves) {
            return;
        }
        self.role = role;
        match role {
            // The next connection is about to have it.
            Role::Serve | Role::StandBy if self.attempts.moves => {}
            Role::Leave if self.attempts.moves => self.attempts.moves = false,
            Role::Serve | Role::StandBy => {
                (self.attempts.resting, self.attempts.reconnect) = (false, Reconnect::default());
                self.attempts.hang_up = self.link != Link::HangingUp;
            }
            Role::Leave => self.link = Link::Settling { was_up: self.link == Link::Up },
            Role::End => {
                self.attempts.moves = false;
                self.link = Link::Ending;
                self.outputs.push_back(Output::HangUp);
            }
        }
    }

    /// Ends the session for another way, without loss: what was received is stored and reported first.
    pub(super) fn take_move(&mut self) {
        if self.link == Link::Up {
            self.attempts.moves = true;
            self.link = Link::Settling { was_up: true };
        }
    }

    pub(super) fn hang_up(&mut self, now: Now) {
        self.disconnect(now);
        let silent = std::mem::take(&mut self.attempts.silent);
        let sentence = format!("there is no connection to the hub at {}", self.settings.address);
        self.news(News::Away { sentence, silent });
        self.credentials.end();
        self.outputs.extend([Output::Credentials(CredentialsOrder::EndTurn), Output::HangUp]);
        self.attempts.hang_up = false;
        self.link = Link::HangingUp;
    }

    pub(super) fn hung_up(&mut self, now: Now, random: f64) {
        match self.link {
            Link::HangingUp => {
                let until = now.monotonic.plus(self.attempts.pause(now.monotonic, random));
                self.link = if self.attempts.resting { Link::Resting } else { Link::Waiting { until } };
            }
            Link::Farewell { .. } | Link::Ending => self.finish(now),
            _ => {}
        }
    }

    /// Goes on at once by the other way. The owner hears nothing of it unless that fails.
    fn go_on(&mut self, now: Now) {
        self.disconnect(now);
        self.credentials.end();
        self.outputs.push_back(Output::Credentials(CredentialsOrder::EndTurn));
        let attempts = &mut self.attempts;
        (attempts.moves, attempts.hang_up, attempts.silent, attempts.welcomed) = (false, false, false, None);
        self.link = Link::Waiting { until: now.monotonic };
    }

    /// Reports the last receipts after everything received is settled, over this connection if it is up: no other
    /// node knows these products.
    pub(super) fn say_farewell(&mut self, now: Now, was_up: bool) {
        if !was_up {
            return self.finish(now);
        }
        self.tell(now, SiteInput::Leave);
        self.drain(now);
        self.outputs.push_back(Output::Farewell);
        self.link = Link::Farewell { until: now.monotonic.plus(FAREWELL_PATIENCE) };
    }

    /// Ends the connection and returns unreported receipts, unless the site itself ends: the next hello reports its
    /// position.
    pub(super) fn finish(&mut self, now: Now) {
        if self.attempts.moves {
            return self.go_on(now);
        }
        let unsaid = if self.role == Role::Leave { self.session.take_unsaid() } else { Vec::new() };
        self.disconnect(now);
        self.outputs.push_back(Output::Over(unsaid));
        self.link = Link::Over;
    }

    fn disconnect(&mut self, now: Now) {
        self.tell(now, SiteInput::Disconnected);
        self.drain(now);
    }

    fn drain(&mut self, now: Now) {
        while let Some(output) = self.session.poll(now) {
            self.take(now, output);
        }
    }
}

/// Longest wait for the node to close. The feeds' next connection waits for it, and a silent node sends nothing more.
const FAREWELL_PATIENCE: Micros = Micros::from_secs(1);
