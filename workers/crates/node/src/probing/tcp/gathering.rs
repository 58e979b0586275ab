//! The node's end of a trial's connections: they come from the site.
use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};

use downburst_probe::Purpose;
use tokio::sync::Notify;

use super::entrance::{Entrance, Far};

/// Gathers the connections of one trial after the other.
pub(crate) struct Gathering {
    entrance: Entrance,
    expected: Arc<Expected>,
}

#[derive(Default)]
struct Expected {
    trial: Mutex<ExpectedTrial>,
    came: Notify,
}

#[derive(Default)]
struct ExpectedTrial {
    number: u16,
    flows: usize,
    /// By the number of the flow.
    came: BTreeMap<u8, TcpStream>,
}

impl Gathering {
    /// Opens a port of this node for a site.
    pub(crate) fn listen(far: Far) -> io::Result<Self> {
        let expected = Arc::<Expected>::default();
        let taking = Arc::clone(&expected);
        let entrance = Entrance::open(far, move |purpose, stream| taking.take(purpose, stream))?;
        Ok(Self { entrance, expected })
    }

    /// The number of the port.
    pub(crate) fn number(&self) -> u16 {
        self.entrance.number()
    }

    /// Expects so many flows of this trial, and forgets others.
    pub(crate) fn expect(&self, number: u16, flows: usize) {
        *self.expected.lock() = ExpectedTrial { number, flows, came: BTreeMap::new() };
    }

    /// Waits for all flows of the expected trial, in their order.
    pub(crate) async fn all(&self) -> Vec<TcpStream> {
        loop {
            let came = self.expected.came.notified();
            if let Some(all) = self.expected.lock().all() {
                return all;
            }
            came.await;
        }
    }
}

impl Expected {
    fn take(&self, purpose: Purpose, stream: TcpStream) {
        let Purpose::Flow { trial, flow } = purpose else { return };
        let mut expected = self.lock();
        if expected.number == trial && usize::from(flow) < expected.flows {
            expected.came.entry(flow).or_insert(stream);
            self.came.notify_one();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ExpectedTrial> {
        self.trial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExpectedTrial {
    fn all(&mut self) -> Option<Vec<TcpStream>> {
        (self.came.len() == self.flows).then(|| std::mem::take(&mut self.came).into_values().collect())
    }
}
