//! Specification of one direction of the wire, as given on the command line.

use std::str::FromStr;

/// Loss of the link. It takes data frames only, so that address resolution and acknowledgements get through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Loss {
    /// Nothing is lost.
    None,
    /// Each data frame is lost with this probability, independently.
    Bernoulli(f64),
    /// Every n-th data frame is lost.
    Every(u64),
}

/// Rate, delay, loss and buffer of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spec {
    /// Ethernet-frame bits per second; `None` means as fast as the machine can.
    pub(crate) rate_bps: Option<u64>,
    /// One-way delay in microseconds.
    pub(crate) delay_us: u64,
    /// Loss of the link.
    pub(crate) loss: Loss,
    /// Size of the buffer before the link in bytes, including the frame in transmission.
    pub(crate) buffer_bytes: u64,
}

impl Spec {
    /// Returns the transmission time of a frame.
    pub(crate) fn serialisation_ns(&self, frame_bytes: usize) -> u64 {
        match self.rate_bps {
            None => 0,
            Some(rate_bps) => ratio(frame_bytes as u64, 8 * NANOSECONDS, rate_bps),
        }
    }

    /// Returns the number of bytes transmitted in a span of time.
    pub(crate) fn bytes_in(&self, span_ns: u64) -> u64 {
        match self.rate_bps {
            None => 0,
            Some(rate_bps) => ratio(span_ns, rate_bps, 8 * NANOSECONDS),
        }
    }

    /// One-way delay in nanoseconds.
    pub(crate) fn delay_ns(&self) -> u64 {
        self.delay_us.saturating_mul(1_000)
    }
}

impl Default for Spec {
    fn default() -> Self {
        Self { rate_bps: None, delay_us: 0, loss: Loss::None, buffer_bytes: DEFAULT_BUFFER_BYTES }
    }
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut spec = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("'{part}' is not KEY=VALUE; the keys are {KEYS}"))?;
            spec.set(key, value)?;
        }
        Ok(spec)
    }
}

impl Spec {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "rate_bps" => self.rate_bps = Some(positive(key, value)?),
            "delay_us" => self.delay_us = number(key, value)?,
            "loss" => self.loss = Loss::Bernoulli(share(value)?),
            "every" => self.loss = Loss::Every(positive(key, value)?),
            "buffer_bytes" => self.buffer_bytes = positive(key, value)?,
            _ => return Err(format!("'{key}' is not known; the keys are {KEYS}")),
        }
        Ok(())
    }
}

fn number(key: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{key} takes a whole number, not '{value}'"))
}

fn positive(key: &str, value: &str) -> Result<u64, String> {
    match number(key, value)? {
        0 => Err(format!("{key} must be above 0; leave it out for no limit")),
        above => Ok(above),
    }
}

fn share(value: &str) -> Result<f64, String> {
    match value.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("loss takes a share from 0 to 1, not '{value}'")),
    }
}

fn ratio(value: u64, times: u64, over: u64) -> u64 {
    let exact = u128::from(value) * u128::from(times) / u128::from(over.max(1));
    u64::try_from(exact).unwrap_or(u64::MAX)
}

const KEYS: &str = "rate_bps, delay_us, loss, every, buffer_bytes";
const NANOSECONDS: u64 = 1_000_000_000;
// Half a second at 100 Mb/s: a test reaches the limit only if it requests a small buffer.
const DEFAULT_BUFFER_BYTES: u64 = 6_250_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_key() {
        let spec: Spec = "rate_bps=100000000,delay_us=35000,loss=0.001,buffer_bytes=64000".parse().unwrap();
        assert_eq!(
            spec,
            Spec {
                rate_bps: Some(100_000_000),
                delay_us: 35_000,
                loss: Loss::Bernoulli(0.001),
                buffer_bytes: 64_000,
            }
        );
        assert_eq!("every=4".parse::<Spec>().unwrap().loss, Loss::Every(4));
        assert_eq!("".parse::<Spec>().unwrap(), Spec::default());
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, part) in [
            ("rate", "KEY=VALUE"),
            ("speed=3", "not known"),
            ("loss=2", "from 0 to 1"),
            ("loss=NaN", "from 0 to 1"),
            ("every=0", "above 0"),
            ("delay_us=-1", "whole number"),
        ] {
            let sentence = text.parse::<Spec>().unwrap_err();
            assert!(sentence.contains(part), "{text}: {sentence}");
        }
    }

    #[test]
    fn extreme_values_saturate() {
        let spec = Spec { rate_bps: Some(1), ..Spec::default() };
        assert_eq!(spec.serialisation_ns(usize::MAX), u64::MAX);
        assert_eq!(Spec { rate_bps: Some(u64::MAX), ..spec }.bytes_in(u64::MAX), u64::MAX);
    }
}
