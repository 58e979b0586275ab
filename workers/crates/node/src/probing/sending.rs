//! The thread that sends one step.
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use downburst_model::Micros;
use downburst_probe::{Due, Packet, PacketKind, Schedule, Sent, Step};
use tokio::sync::oneshot;

use super::port::Shared;

/// A step that is being sent; it ends when this is dropped.
pub(crate) struct Sending {
    holds: Arc<AtomicBool>,
    result: oneshot::Receiver<Sent>,
}

impl Sending {
    pub(super) fn start(
        shared: Arc<Shared>,
        number: u16,
        step: Step,
        packet_bytes: u16,
        frame_bytes: u64,
    ) -> io::Result<Self> {
        let holds = Arc::new(AtomicBool::new(false));
        let (tell, result) = oneshot::channel();
        let held = Arc::clone(&holds);
        let thread = std::thread::Builder::new().name("probe-step".to_owned());
        thread.spawn(move || {
            let schedule = Schedule::begin(shared.clock.monotonic(), step, frame_bytes);
            // At the end of the process there is no receiver any more.
            let _ = tell.send(shared.send(schedule, number, packet_bytes, &held));
        })?;
        Ok(Self { holds, result })
    }

    /// Sends no more.
    pub(crate) fn hold(&self) {
        self.holds.store(true, Ordering::Relaxed);
    }

    /// Waits until the step is sent; cancelling the wait loses nothing.
    pub(crate) async fn ended(&mut self) -> Sent {
        (&mut self.result).await.unwrap_or_default()
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.hold();
    }
}

impl Shared {
    fn send(&self, mut schedule: Schedule, step: u16, packet_bytes: u16, holds: &AtomicBool) -> Sent {
        let mut datagram = vec![0; packet_bytes.into()];
        while !self.is_over() && !holds.load(Ordering::Relaxed) {
            let now = self.clock.monotonic();
            match schedule.look(now) {
                Due::Send(number) => {
                    let packet = Packet { kind: PacketKind::Load, step, number, sent: self.clock.wall() };
                    packet.write(&self.key, &mut datagram);
                    self.put(&datagram, &mut schedule);
                }
                Due::At(due) => {
                    std::thread::sleep(Duration::from_micros(due.since(now).min(LONGEST_SLEEP).0))
                }
                Due::Over => break,
            }
        }
        schedule.sent()
    }

    /// A packet for which the host has no room is sent later: the rate then falls short, which the result shows.
    fn put(&self, datagram: &[u8], schedule: &mut Schedule) {
        match self.socket.send(datagram) {
            Ok(_) => {}
            // The far host answered an earlier packet; this one was not sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => schedule.not_sent(),
            Err(_) => {
                schedule.not_sent();
                std::thread::sleep(NO_ROOM_PAUSE);
            }
        }
    }
}

/// A thread that holds is seen to within this time.
const LONGEST_SLEEP: Micros = Micros::from_millis(50);
const NO_ROOM_PAUSE: Duration = Duration::from_micros(200);
