//! Logs to standard error, as text or as JSON.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging with a filter in the syntax of `tracing-subscriber` (`info`, `segstock=debug,warn`, …).
///
/// Errors: the filter cannot be read.
pub fn start(filter: &str, format: LogFormat) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter).map_err(|error| error.to_string())?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Colours are for people; a file or a collector would keep them as noise.
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // A second start in one process (tests) keeps the first.
    let _already_started = match format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    Ok(())
}
