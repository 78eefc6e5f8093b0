//! What `segstock load` is asked for.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser};

/// The options of `segstock load`.
///
/// Ranges are checked where they are read; what a run makes of them is in `load`.
#[derive(Debug, Clone, Args)]
pub struct LoadOptions {
    /// Where segstock listens; several instances may be named, and the connections are dealt out among them
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub url: Vec<String>,

    /// A product to buy, may be given several times; without one, products are created for the run
    #[arg(long, value_name = "SKU", conflicts_with_all = ["products", "stock", "segments"])]
    pub sku: Vec<String>,

    /// How many products to create, 1 to 100000
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    pub products: usize,

    /// Units of each product that is created, 1 to 1000000000
    #[arg(long, value_name = "UNITS", default_value_t = 1_000_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..=1_000_000_000))]
    pub stock: u64,

    /// Segments of each product that is created, 1 to 1024
    #[arg(long, default_value_t = 20, value_parser = RangedU64ValueParser::<u16>::new().range(1..=1024))]
    pub segments: u16,

    /// How unevenly several products are wanted: the exponent of Zipf's law, 0 to 4; 0 wants all alike
    #[arg(long, value_name = "EXPONENT", default_value_t = 1.0, value_parser = between::<0, 4>)]
    pub zipf: f64,

    /// Connections, 1 to 100000; in the closed loop each has one order on its way at a time
    #[arg(long, default_value_t = 64, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    pub connections: usize,

    /// Orders a second that arrive whether or not earlier ones were answered (open loop), 1 to 1000000; without it
    /// every connection sends its next order when the last one is answered (closed loop)
    #[arg(long, value_name = "ORDERS_PER_SECOND", value_parser = between::<1, 1_000_000>)]
    pub rate: Option<f64>,

    /// How long to measure, up to 86400 s
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = between::<0, 86_400>)]
    pub duration: f64,

    /// How long to load before measuring, up to 3600 s
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = between::<0, 3600>)]
    pub warm_up: f64,

    /// Stop when everything is sold out, even before the time is over
    #[arg(long)]
    pub until_sold_out: bool,

    /// How many different customers buy, 1 to 1000000000
    #[arg(long, default_value_t = 100_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..=1_000_000_000))]
    pub customers: u64,

    /// Units an order asks for: one number, or several with weights, as in 1:80,2:15,5:5
    #[arg(long, value_name = "UNITS[:WEIGHT],…", default_value = "1")]
    pub quantity: Quantities,

    /// Share of requests that repeat an order placed before, with the same key, 0 to 100 %
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = between::<0, 100>)]
    pub retries: f64,

    /// How long to wait for an answer, 10 to 600000 ms
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = RangedU64ValueParser::<u64>::new().range(10..=600_000))]
    pub timeout_ms: u64,

    /// Makes the same choices again; every run has other keys all the same
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// Where orders are sent to, for the benchmark
    #[arg(long, default_value = "/orders", hide = true)]
    pub path: String,

    /// Bearer token, for creating products where the service has one
    #[arg(long, value_name = "TOKEN", env = "SEGSTOCK_ADMIN_TOKEN", hide_env_values = true)]
    pub admin_token: Option<String>,

    /// Write the report as JSON too, - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What is asked for when nothing is said.
impl Default for LoadOptions {
    fn default() -> Self {
        #[derive(Parser)]
        struct CommandLine {
            #[command(flatten)]
            options: LoadOptions,
        }
        CommandLine::parse_from(["load"]).options
    }
}

/// Quantities and how often each is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantities(pub Vec<(u32, u32)>);

impl FromStr for Quantities {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = |part: &str| {
            let (units, weight) = part.split_once(':').unwrap_or((part, "1"));
            let positive = |number: &str| number.trim().parse::<u32>().ok().filter(|number| *number > 0);
            Some((positive(units).filter(|units| i32::try_from(*units).is_ok())?, positive(weight)?))
        };
        let quantities = text.split(',').map(|part| read(part).ok_or_else(|| format!("{part:?} is no UNITS[:WEIGHT]")));
        quantities.collect::<Result<_, _>>().map(Self)
    }
}

impl std::fmt::Display for Quantities {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(units, weight)| format!("{units}:{weight}")).collect();
        formatter.write_str(&parts.join(","))
    }
}

/// Reads a number from `LEAST` to `MOST`.
fn between<const LEAST: u32, const MOST: u32>(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let range = f64::from(LEAST)..=f64::from(MOST);
    if range.contains(&number) { Ok(number) } else { Err(format!("use {LEAST} to {MOST}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_and_without_weights() {
        assert_eq!("1:80, 2:15,5".parse(), Ok(Quantities(vec![(1, 80), (2, 15), (5, 1)])));
        for bad in ["", "0", "1:0", "1:2:3", "one", "-1", "1,,2", "4294967295"] {
            assert!(bad.parse::<Quantities>().is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(between::<0, 100>("1.5"), Ok(1.5));
        for bad in ["-1", "100.5", "NaN", "inf", "many"] {
            assert!(between::<0, 100>(bad).is_err(), "{bad}");
        }
    }
}
