//! New trace ids.

use crate::domain::TraceId;
use crate::telemetry::Error;

/// Draws 128 random bits, too many for two ids ever to be the same.
///
/// # Errors
/// [`Error::Random`] when the kernel gives none; nothing can be promised then.
pub fn new_trace_id() -> Result<TraceId, Error> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(Error::Random)?;
    Ok(TraceId::new(u128::from_be_bytes(bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_is_drawn() {
        let ids: Vec<u128> = (0..64).map(|_| new_trace_id().unwrap().get()).collect();
        assert_eq!(ids.iter().fold(0, |seen, id| seen | id), u128::MAX, "each bit is set at times");
        assert_eq!(ids.iter().fold(u128::MAX, |seen, id| seen & id), 0, "and clear at times");
    }
}
