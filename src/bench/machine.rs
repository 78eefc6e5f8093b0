//! Where a benchmark runs.

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use deadpool_redis::redis::{InfoDict, RedisResult, cmd};

use super::BenchError;
use super::results::Machine;
use super::stage::Stage;

/// Describes the machine and the stores.
pub(super) async fn describe(stage: &Stage) -> Result<Machine, BenchError> {
    let wanted =
        RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing()).with_memory(MemoryRefreshKind::everything());
    let system = System::new_with_specifics(wanted).ok();
    let first = system.as_ref().and_then(|system| system.cpus().first());
    let processor = first.map_or_else(String::new, |cpu| cpu.brand().trim().to_owned());
    Ok(Machine {
        processor: if processor.is_empty() { System::cpu_arch() } else { processor },
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_gib: system.map_or(0.0, |system| system.total_memory() as f64 / f64::from(1 << 30)),
        system: System::long_os_version().unwrap_or_else(|_| std::env::consts::OS.to_owned()),
        redis: format!("Redis {}", redis_version(stage).await.map_err(|error| BenchError::Version(error.to_string()))?),
        postgres: format!(
            "PostgreSQL {}",
            postgres_version(stage).await.map_err(|error| BenchError::Version(error.to_string()))?
        ),
        storage: "fsync on, synchronous_commit on".to_owned(),
    })
}

async fn redis_version(stage: &Stage) -> RedisResult<String> {
    let mut connection = stage.redis().connection().await?;
    let info: InfoDict = cmd("INFO").arg("server").query_async(&mut connection).await?;
    Ok(info.get("redis_version").unwrap_or_default())
}

async fn postgres_version(stage: &Stage) -> sqlx::Result<String> {
    let mut connection = stage.postgres().connection().await?;
    sqlx::query_scalar("SHOW server_version").fetch_one(&mut connection).await
}
