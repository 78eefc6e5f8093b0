//! Settings: typed, ranged and checked against each other before anything is opened.
//!
//! A setting comes from a flag, else from the environment, else from the TOML file, else it has its default. The table
//! in [`settings`] is the only list of them. The environment is read here and nowhere else.

mod bench;
mod check;
mod load;
mod settings;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

pub use bench::{BenchOnly, BenchOptions};
pub use load::{LoadOptions, Quantities};
pub use settings::{DOCUMENTED, Documented, Settings};

use self::bench::BenchServe;
use self::settings::Layer;

/// The command line of `segstock`.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(flatten)]
    serve: Serve,
    #[command(subcommand)]
    asked: Option<Asked>,
}

#[derive(Debug, Subcommand)]
enum Asked {
    /// Serve the API; what segstock does unless told otherwise
    Serve(Box<Serve>),
    /// Load a segstock with orders, measure it, and prove the sale
    Load(Box<LoadOptions>),
    /// Compare ways to sell, on private servers, and say how fast each is
    Bench(BenchOptions),
    /// Serve the API together with what only the benchmark needs
    #[command(hide = true)]
    BenchServe(Box<BenchServe>),
}

/// Where the settings of the service come from.
#[derive(Debug, Args)]
struct Serve {
    /// A TOML file with settings, named as here but with underscores
    #[arg(long, env = "SEGSTOCK_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    layer: Layer,
}

/// Why the settings cannot be used: one line that names the setting and says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSetting(String);

impl BadSetting {
    /// What is wrong with one setting, and what to do.
    pub fn new(setting: &str, problem: impl std::fmt::Display) -> Self {
        let flag = setting.replace('_', "-");
        let variable = setting.to_uppercase();
        Self(format!("setting {setting} (--{flag}, SEGSTOCK_{variable}): {problem}"))
    }
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Command {
    /// Serve with these settings.
    Serve(Box<Settings>),
    /// Serve for the benchmark.
    BenchServe(Box<Settings>, BenchOnly),
    /// Load a service.
    Load(Box<LoadOptions>),
    /// Measure.
    Bench(BenchOptions),
    /// Print this text, and end.
    Print(String),
}

/// Reads the command line, the environment and the file that they name.
pub fn read(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Command, BadSetting> {
    let command_line = match CommandLine::try_parse_from(arguments) {
        Ok(command_line) => command_line,
        Err(asked) if !asked.use_stderr() => {
            let text = asked.render();
            return Ok(Command::Print(match std::io::stdout().is_terminal() {
                true => text.ansi().to_string(),
                false => text.to_string(),
            }));
        }
        Err(error) => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            let first = first.strip_prefix("error: ").unwrap_or(first);
            return Err(BadSetting(format!("{first}; --help lists what there is")));
        }
    };
    for (name, _) in environment {
        known_variable(&name.to_string_lossy())?;
    }
    match command_line.asked {
        None => settings(command_line.serve).map(Command::Serve),
        Some(Asked::Serve(serve)) => settings(*serve).map(Command::Serve),
        Some(Asked::Load(options)) => Ok(Command::Load(options)),
        Some(Asked::Bench(options)) => Ok(Command::Bench(options)),
        Some(Asked::BenchServe(asked)) => Ok(Command::BenchServe(settings(asked.serve)?, asked.only)),
    }
}

fn settings(serve: Serve) -> Result<Box<Settings>, BadSetting> {
    let file = match &serve.config {
        Some(path) => read_file(path)?,
        None => Layer::default(),
    };
    let settings = Settings::merge(serve.layer, file);
    check::check(&settings)?;
    Ok(Box::new(settings))
}

/// A mistyped variable would be ignored in silence, so it is refused.
fn known_variable(name: &str) -> Result<(), BadSetting> {
    let Some(rest) = name.strip_prefix("SEGSTOCK_") else {
        return Ok(());
    };
    // Kubernetes puts SEGSTOCK_SERVICE_HOST, SEGSTOCK_PORT and the like in the way of a service named segstock.
    let injected = ["SERVICE_", "PORT"].iter().any(|prefix| rest.starts_with(prefix));
    let known = rest == "CONFIG" || settings::NAMES.iter().any(|setting| setting.to_uppercase() == rest);
    if injected || known {
        return Ok(());
    }
    Err(BadSetting(format!("{name} in the environment is no setting; segstock --help lists them")))
}

fn read_file(path: &Path) -> Result<Layer, BadSetting> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| BadSetting::new("config", format!("{shown} cannot be read: {error}")))?;
    toml::from_str(&text).map_err(|error| {
        let before = error.span().map_or("", |span| &text[..span.start]);
        let line = before.matches('\n').count() + 1;
        BadSetting::new("config", format!("{shown}, line {line}: {}", error.message().replace('\n', " ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_with(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Settings, String> {
        let arguments = std::iter::once("segstock").chain(arguments.iter().copied()).map(Into::into);
        let environment = environment.iter().map(|(name, value)| (name.into(), value.into()));
        match read(arguments, environment) {
            Ok(Command::Serve(settings)) => Ok(*settings),
            Ok(other) => panic!("asked for {other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn nothing_said_means_the_embedded_default() {
        let settings = read_with(&[], &[]).unwrap();
        assert_eq!(settings.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(settings.redis_url, None);
    }

    #[test]
    fn flags_win_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("segstock.toml");
        std::fs::write(&file, "max_batch = 7\nqueue_capacity = 99\n").unwrap();
        let settings = read_with(&["--config", file.to_str().unwrap(), "--max-batch", "8"], &[]).unwrap();
        assert_eq!((settings.max_batch, settings.queue_capacity), (8, 99));
    }

    #[test]
    fn every_refusal_is_one_line_that_names_the_setting() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("segstock.toml");
        std::fs::write(&file, "queue_capacity = 10\nmax_bach = 7\n").unwrap();
        let file = file.to_str().unwrap();
        type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str);
        let cases: &[Case<'_>] = &[
            (&["--config", file], &[], "max_bach"),
            (&["--config", "/nowhere/segstock.toml"], &[], "/nowhere/segstock.toml"),
            (&["--max-bach", "7"], &[], "--max-bach"),
            (&["--max-batch", "many"], &[], "--max-batch"),
            (&["--max-batch", "0"], &[], "max_batch"),
            (&["--queue-capacity", "0"], &[], "queue_capacity"),
            (&["--request-deadline-ms", "5"], &[], "request_deadline_ms"),
            (&[], &[("SEGSTOCK_MAX_BACH", "7")], "SEGSTOCK_MAX_BACH"),
            (&["--lease-time-limit-ms", "1000"], &[], "lease_time_limit_ms"),
            (&["--redis-url", "redis://127.0.0.1"], &[], "database_url"),
            (&["--listen", "0.0.0.0:8080"], &[], "admin_token"),
            (&["--admin-token", "short"], &[], "admin_token"),
            (&["--fail-point", "sometimes"], &[], "fail_point"),
        ];
        for (arguments, environment, named) in cases {
            let refusal = read_with(arguments, environment).unwrap_err();
            assert!(refusal.contains(named) && !refusal.contains('\n'), "{arguments:?}: {refusal}");
        }
    }

    #[test]
    fn a_lease_shorter_than_the_longest_round_names_both_settings() {
        let refusal = read_with(&["--lease-time-limit-ms", "2000"], &[]).unwrap_err();
        assert!(refusal.contains("lease_time_limit_ms") && refusal.contains("ledger_timeout_ms"), "{refusal}");
    }

    #[test]
    fn foreign_variables_are_left_alone() {
        assert!(read_with(&[], &[("SEGSTOCK_SERVICE_HOST", "10.0.0.1"), ("SEGSTOCK_PORT", "tcp://…")]).is_ok());
        assert!(read_with(&[], &[("HOME", "/")]).is_ok());
    }
}
