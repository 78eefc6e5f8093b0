//! Waiting for a condition, and randomness that can be repeated.

use std::io::Write;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

const DEFAULT_SEED: u64 = 20_251_111;

/// Asks until `condition` has an answer. Panics with `what` when there is none `within` that time,
/// also when `condition` itself hangs.
pub(crate) async fn eventually<T>(what: &str, within: Duration, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = condition().await {
                return answer;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    match tokio::time::timeout(within, asking).await {
        Ok(answer) => answer,
        Err(_) => panic!("not within {within:?}: {what}"),
    }
}

/// A random generator with the seed in `SEGSTOCK_TEST_SEED`, or always the same one. A test that
/// panics while it holds the generator prints the seed.
pub(crate) fn seeded_random() -> SeededRandom {
    let seed = match std::env::var("SEGSTOCK_TEST_SEED") {
        Ok(text) => text.parse().expect("SEGSTOCK_TEST_SEED is a whole number from 0 to 2^64 - 1"),
        Err(_) => DEFAULT_SEED,
    };
    SeededRandom { seed, generator: StdRng::seed_from_u64(seed) }
}

/// See [`seeded_random`].
#[derive(Debug)]
pub(crate) struct SeededRandom {
    seed: u64,
    generator: StdRng,
}

impl Deref for SeededRandom {
    type Target = StdRng;

    fn deref(&self) -> &StdRng {
        &self.generator
    }
}

impl DerefMut for SeededRandom {
    fn deref_mut(&mut self) -> &mut StdRng {
        &mut self.generator
    }
}

impl Drop for SeededRandom {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "repeat with SEGSTOCK_TEST_SEED={}", self.seed);
        }
    }
}
