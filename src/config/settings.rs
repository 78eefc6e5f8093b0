//! The list of all settings.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

use crate::telemetry::logs::LogFormat;

/// Declares each setting once: as a flag and a variable, as a key of the file, and as a typed field with its default.
macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $(#[arg($($arg:tt)+)])?
        $name:ident($env:literal): $layer:ty => $type:ty = $default:expr;
    )+) => {
        /// What one source says of the settings.
        #[derive(Debug, Default, Args, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct Layer {$(
            $(#[doc = $doc])+
            #[arg(long, env = $env, $($($arg)+)?)]
            $name: Option<$layer>,
        )+}

        /// The settings of one process.
        #[derive(Debug, Clone)]
        #[expect(missing_docs, reason = "the macro documents each field on the flag")]
        pub struct Settings {$(
            pub $name: $type,
        )+}

        /// The name of every setting.
        pub(super) const NAMES: &[&str] = &[$(stringify!($name)),+];

        /// What documents say of every setting that is for users.
        pub const DOCUMENTED: &[Documented] = &[$(
            Documented {
                name: stringify!($name),
                variable: $env,
                default: stringify!($default),
                help: concat!($($doc),+),
            }
        ),+];

        impl Settings {
            /// Takes each setting from the first layer that has it.
            pub(super) fn merge(first: Layer, second: Layer) -> Self {
                Self {$(
                    $name: first.$name.or(second.$name).map_or_else(|| $default, Into::into),
                )+}
            }
        }
    };
}

/// A setting as documents show it.
#[derive(Debug, Clone, Copy)]
pub struct Documented {
    /// Its key in the file; the flag is the same with dashes.
    pub name: &'static str,
    /// Its environment variable.
    pub variable: &'static str,
    /// Its default, as source text.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

settings! {
    /// Address and port to listen on; another than loopback needs an admin_token
    #[arg(value_name = "ADDRESS")]
    listen("SEGSTOCK_LISTEN"): SocketAddr => SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080));

    /// Redis for the guard, redis://…; together with database_url
    #[arg(value_name = "URL", hide_env_values = true)]
    redis_url("SEGSTOCK_REDIS_URL"): String => Option<String> = None;

    /// PostgreSQL for the ledger, postgres://…; together with redis_url
    #[arg(value_name = "URL", hide_env_values = true)]
    database_url("SEGSTOCK_DATABASE_URL"): String => Option<String> = None;

    /// Folder of the embedded ledger, used without the two URLs
    #[arg(value_name = "FOLDER")]
    data_dir("SEGSTOCK_DATA_DIR"): PathBuf => PathBuf = PathBuf::from("segstock-data");

    /// Bearer token of admin calls, 16 characters or more
    #[arg(value_name = "TOKEN", hide_env_values = true)]
    admin_token("SEGSTOCK_ADMIN_TOKEN"): String => Option<String> = None;

    /// The most orders that one lease serves, 1 to 10000
    #[arg(value_name = "ORDERS")]
    max_batch("SEGSTOCK_MAX_BATCH"): usize => usize = 1000;

    /// The most rounds at a time, of all products together, 1 to 1024; as many as the stores are to bear
    #[arg(value_name = "ROUNDS")]
    max_rounds_in_flight("SEGSTOCK_MAX_ROUNDS_IN_FLIGHT"): usize => usize = 64;

    /// The most orders of one product that wait, 1 to 1000000; more are answered 503 at once
    #[arg(value_name = "ORDERS")]
    queue_capacity("SEGSTOCK_QUEUE_CAPACITY"): usize => usize = 16384;

    /// How long an order may wait for its round, 10 to 60000 ms
    #[arg(value_name = "MS")]
    request_deadline_ms("SEGSTOCK_REQUEST_DEADLINE_MS"): u64 => u64 = 2000;

    /// How long a lease lasts unless it is renewed, 100 to 600000 ms
    #[arg(value_name = "MS")]
    lease_time_limit_ms("SEGSTOCK_LEASE_TIME_LIMIT_MS"): u64 => u64 = 3000;

    /// How long a Redis command may take, 5 to 60000 ms
    #[arg(value_name = "MS")]
    redis_timeout_ms("SEGSTOCK_REDIS_TIMEOUT_MS"): u64 => u64 = 250;

    /// How long a ledger statement may take, 10 to 60000 ms
    #[arg(value_name = "MS")]
    ledger_timeout_ms("SEGSTOCK_LEDGER_TIMEOUT_MS"): u64 => u64 = 1000;

    /// The most connections to Redis, 1 to 10000
    #[arg(value_name = "CONNECTIONS")]
    redis_connections("SEGSTOCK_REDIS_CONNECTIONS"): usize => usize = 32;

    /// The most connections to PostgreSQL, 1 to 10000
    #[arg(value_name = "CONNECTIONS")]
    database_connections("SEGSTOCK_DATABASE_CONNECTIONS"): u32 => u32 = 16;

    /// How long a stop waits for orders in flight, 0 to 600000 ms
    #[arg(value_name = "MS")]
    stop_deadline_ms("SEGSTOCK_STOP_DEADLINE_MS"): u64 => u64 = 10_000;

    /// Which log lines are written, as tracing-subscriber filters have it
    #[arg(value_name = "FILTER")]
    log("SEGSTOCK_LOG"): String => String = "info".to_owned();

    /// How log lines look
    log_format("SEGSTOCK_LOG_FORMAT"): LogFormat => LogFormat = LogFormat::Text;

    /// For tests: ends the process at a moment of a round, as kill -9 would
    #[arg(hide = true)]
    fail_point("SEGSTOCK_FAIL_POINT"): String => Option<String> = None;
}
