//! The samples of a site's connections.
use std::sync::Arc;

use downburst_tracer::{Gathering, TracerLine};
use serde_json::Value;

use super::{answer, in_a_thread};
use crate::hub::Hub;
use crate::lines::Failure;

/// Judges a site's connections, and returns their samples.
pub(in crate::hub) async fn tracer(hub: &Arc<Hub>, line: TracerLine) -> Result<Value, Failure> {
    let gathering = Gathering::begin(line).map_err(Failure::bad_request)?;
    let asked = Arc::clone(hub);
    answer(&in_a_thread(move || asked.figures.tracer.gather(gathering)).await?)
}
