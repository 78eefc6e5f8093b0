//! What is measured: private stores, and services in front of them, each started when it is first needed.

use std::collections::HashMap;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::BenchError;
use super::meter::Meter;
use crate::rig::postgres::Postgres;
use crate::rig::process::{NoLine, Program, Supervised};
use crate::rig::redis::Redis;
use crate::rig::scratch::Scratch;

const START_WITHIN: Duration = Duration::from_secs(30);

/// PostgreSQL as a shop would run it on such a machine: every commit waits for the disk, memory is given, and the log may
/// grow so that checkpoints do not come every few seconds. All else is PostgreSQL's own default.
const POSTGRES_SETTINGS: &[(&str, &str)] =
    &[("fsync", "on"), ("synchronous_commit", "on"), ("shared_buffers", "256MB"), ("max_wal_size", "4GB")];

/// How a service is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// On Redis and PostgreSQL.
    Stores {
        /// The most orders a lease serves; the service's own default where nothing is said.
        max_batch: Option<usize>,
        /// How long every turn takes at least, in ms.
        turn_ms: u64,
        /// Several instances may share the stores.
        instance: usize,
    },
    /// Without Redis and PostgreSQL.
    Embedded,
}

impl Kind {
    /// The service as it is meant to be.
    pub(super) const DEFAULT: Self = Self::Stores { max_batch: None, turn_ms: 0, instance: 0 };

    /// One lock turn an order.
    pub(super) const CLASSIC: Self = Self::Stores { max_batch: Some(1), turn_ms: 0, instance: 0 };
}

/// A running service.
pub(super) struct Service {
    // Before the folder it writes to: fields are dropped in this order.
    process: Supervised,
    pub(super) url: String,
    _folder: Scratch,
}

impl Service {
    pub(super) fn pid(&self) -> Pid {
        self.process.pid()
    }
}

/// The stores, and the services so far.
pub(super) struct Stage {
    services: HashMap<Kind, Service>,
    redis: Redis,
    postgres: Postgres,
    database_url: String,
}

impl Stage {
    pub(super) async fn set() -> Result<Self, BenchError> {
        let (redis, postgres) = (Redis::start(&[]).await?, Postgres::start(POSTGRES_SETTINGS).await?);
        let database_url = postgres.database("segstock").await?;
        Ok(Self { services: HashMap::new(), redis, postgres, database_url })
    }

    /// The service of this kind.
    pub(super) async fn service(&mut self, kind: Kind) -> Result<&Service, BenchError> {
        if !self.services.contains_key(&kind) {
            let service = self.start(kind).await?;
            self.services.insert(kind, service);
        }
        self.services.get(&kind).ok_or(BenchError::NotStarted(String::new()))
    }

    /// Reads the CPU time of these services and the stores.
    pub(super) fn meter(&self, kinds: &[Kind]) -> Meter {
        Meter {
            services: kinds.iter().filter_map(|kind| self.services.get(kind)).map(Service::pid).collect(),
            redis: self.redis.pid(),
            postgres: self.postgres.pid(),
        }
    }

    pub(super) fn redis(&self) -> &Redis {
        &self.redis
    }

    pub(super) fn postgres(&self) -> &Postgres {
        &self.postgres
    }

    async fn start(&self, kind: Kind) -> Result<Service, BenchError> {
        let folder = Scratch::new()?;
        let this_program = std::env::current_exe().map_err(|error| BenchError::NotStarted(error.to_string()))?;
        let mut program = Program::new(this_program)
            .argument("bench-serve")
            .clear_environment("SEGSTOCK_")
            .last_signal(Signal::SIGTERM)
            .arguments(["--listen", "127.0.0.1:0", "--log", "warn"]);
        if let Kind::Stores { max_batch, turn_ms, .. } = kind {
            program = program.arguments(["--redis-url", &self.redis.url(), "--database-url", &self.database_url]);
            program = program.argument("--turn-ms").argument(turn_ms.to_string());
            if let Some(max_batch) = max_batch {
                program = program.argument("--max-batch").argument(max_batch.to_string());
            }
        }
        let process = program.start(&folder)?;
        match process.wait_for_line(find_url, START_WITHIN).await {
            Ok(url) => Ok(Service { process, url, _folder: folder }),
            Err(NoLine::Exited(_) | NoLine::Deadline) => Err(BenchError::NotStarted(process.logs())),
        }
    }
}

/// The address in the service's greeting.
fn find_url(line: &str) -> Option<String> {
    let rest = line.strip_prefix("segstock listens on ")?;
    rest.split_whitespace().next().map(str::to_owned)
}
