//! The end of a sale: a product from full to sold out, and how smoothly its last units go.

use super::BenchError;
use super::results::{Group, Row, Spread};
use super::stage::{Kind, Stage};
use crate::config::LoadOptions;
use crate::load::{self, Shop};

const UNITS: u64 = 20_000;
const SEGMENTS: u16 = 20;
const CONNECTIONS: usize = 256;

/// Sells a product out so many times.
pub(super) async fn tail(stage: &mut Stage, times: usize) -> Result<Option<Row>, BenchError> {
    let url = stage.service(Kind::DEFAULT).await?.url.clone();
    let options = LoadOptions {
        url: vec![url],
        stock: UNITS,
        segments: SEGMENTS,
        connections: CONNECTIONS,
        warm_up: 0.0,
        duration: 120.0,
        until_sold_out: true,
        ..LoadOptions::default()
    };
    let (mut rates, mut seconds, mut gaps, mut shares) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut latency = None;
    for _ in 0..times {
        let shop = Shop::open(&options).await?;
        let mut run = load::run(&options, &shop, None, &mut |_| ()).await?;
        let proven = run.prove(&options, &shop).await?;
        let proof = run.report.proof.unwrap_or_default();
        if !proven || proof.units_answered != UNITS {
            let fault = proof.faults.first().cloned();
            let fault = fault.unwrap_or_else(|| format!("{} of {UNITS} units were sold", proof.units_answered));
            return Err(BenchError::WrongSale { what: "the end of a sale".to_owned(), fault });
        }
        if let Some(selling) = run.report.selling {
            rates.push(UNITS as f64 / selling.last_order_seconds);
            seconds.push(selling.last_order_seconds);
            gaps.push(selling.longest_gap_ms);
        }
        shares.push(run.report.generator.cpu_share);
        latency = run.report.latency_ms;
    }
    let (Some(rate), Some(seconds), Some(gap)) = (Spread::of(&rates), Spread::of(&seconds), Spread::of(&gaps)) else {
        return Ok(None);
    };
    let note = format!(
        "{UNITS} units: the last one {:.2} s after the first order; the longest gap between two sold units {:.0} ms",
        seconds.median, gap.median
    );
    Ok(Some(Row {
        group: Group::Tail,
        name: format!("from full to sold out, {SEGMENTS} segments"),
        position: None,
        orders_per_second: rate,
        latency_ms: latency,
        cpu_us_per_order: None,
        generator_share: Spread::of(&shares).map_or(0.0, |share| share.median),
        note: Some(note),
    }))
}
