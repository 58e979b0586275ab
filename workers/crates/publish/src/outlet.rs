use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use downburst_wis2::{Broker, Message};
use rumqttc::v5::{AsyncClient, EventLoop};
use tokio::sync::Notify;

use crate::options::options;
use crate::pauses::pause;
use crate::sentences;
use crate::state::{Answer, MOST, State};

/// A connection for notifications, on a thread of its own; it ends when this is dropped.
pub struct Outlet {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    broker: Broker,
    client_id: String,
    state: Mutex<State>,
    stop: Notify,
    /// Calls the owner of the outlet.
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Outlet {
    /// Limit of the notifications under way.
    pub const MOST: usize = MOST;

    /// Begins to connect. `wake` is called when there are answers, and when a connection came or ended.
    ///
    /// # Errors
    /// Those of the system, which has no thread.
    pub fn start(broker: Broker, wake: impl Fn() + Send + Sync + 'static) -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let shared = Arc::new(Shared {
            broker,
            client_id: format!("downburst-site-{digits}"),
            state: Mutex::default(),
            stop: Notify::new(),
            wake: Box::new(wake),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let its = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("publish".to_owned());
        let thread = thread.spawn(move || runtime.block_on(its.run()))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// True while the broker takes notifications.
    pub fn is_connected(&self) -> bool {
        self.shared.state().is_connected()
    }

    /// True if the thread has ended by itself, which is a fault of this program.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The reason for having no connection; empty while there is one, and before the first attempt.
    pub fn fault(&self) -> String {
        self.shared.state().fault().to_owned()
    }

    /// Sends a notification, whose answer has this token; false without a connection, and while [`Self::MOST`] are
    /// under way.
    pub fn send(&self, token: u64, message: &Message) -> bool {
        self.shared.state().submit(token, &message.topic, &message.payload)
    }

    /// The answers since the last call.
    pub fn answers(&self) -> Vec<(u64, Answer)> {
        self.shared.state().take_answers()
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.shared.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Connects until it is stopped.
    async fn run(&self) {
        let mut failures = 0;
        loop {
            let (fault, was_connected) = match options(&self.broker, &self.client_id) {
                Ok(options) => {
                    let (client, mut events) = AsyncClient::new(options, MOST);
                    tokio::select! {
                        biased;
                        () = self.stop.notified() => return self.leave(&client, &mut events).await,
                        ended = self.serve(&client, &mut events) => ended,
                    }
                }
                Err(sentence) => (sentence, false),
            };
            failures = if was_connected { 0 } else { failures + 1 };
            tracing::warn!(broker = %self.broker, "no notifications can be sent: {fault}");
            self.state().lost(&fault);
            (self.wake)();
            tokio::select! {
                () = self.stop.notified() => return,
                () = tokio::time::sleep(pause(failures)) => {}
            }
        }
    }

    /// Serves a connection until it ends. Returns the reason, and whether the broker had taken it.
    async fn serve(&self, client: &AsyncClient, events: &mut EventLoop) -> (String, bool) {
        loop {
            // Pings make it return twice a minute at the latest.
            let event = match events.poll().await {
                Ok(event) => event,
                Err(error) => {
                    let was_connected = self.state().is_connected();
                    return (sentences::fault(&self.broker, &error, was_connected), was_connected);
                }
            };
            let mut state = self.state();
            let is_news = state.heard(&event, client);
            let is_overdue = state.is_overdue(Instant::now());
            drop(state);
            if is_news {
                (self.wake)();
            }
            if is_overdue {
                return (sentences::NO_ANSWER.to_owned(), true);
            }
        }
    }

    /// Ends the connection in an orderly way, if the broker lets it.
    async fn leave(&self, client: &AsyncClient, events: &mut EventLoop) {
        if self.state().is_connected() && client.try_disconnect().is_ok() {
            let ended = async { while events.poll().await.is_ok() {} };
            let _ = tokio::time::timeout(FAREWELL, ended).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const FAREWELL: Duration = Duration::from_secs(1);
