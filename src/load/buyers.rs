//! What the n-th request asks for. The same number asks for the same again, so that a repetition needs no memory but its
//! number.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HOST};
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::config::LoadOptions;

/// Everybody who buys in one run.
pub(super) struct Buyers {
    /// Tells this run's keys from those of every other run.
    run: String,
    seed: u64,
    skus: Vec<String>,
    popularity: WeightedIndex<f64>,
    quantities: Vec<u32>,
    frequency: WeightedIndex<u32>,
    customers: u64,
    path: String,
}

/// What one request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ask {
    number: u64,
    /// The position of the product among the run's products.
    pub(super) product: usize,
    pub(super) quantity: u32,
    customer: u64,
}

impl Buyers {
    /// Buyers of these products, the first of which is wanted most.
    pub(super) fn new(options: &LoadOptions, skus: Vec<String>, run: String) -> Result<Self, String> {
        let zipf = |rank: usize| (rank as f64).powf(-options.zipf);
        let popularity = WeightedIndex::new((1..=skus.len()).map(zipf)).map_err(|error| error.to_string())?;
        let frequency = options.quantity.0.iter().map(|(_, weight)| *weight);
        let frequency = WeightedIndex::new(frequency).map_err(|error| format!("--quantity: {error}"))?;
        let quantities = options.quantity.0.iter().map(|(units, _)| *units).collect();
        let (seed, customers, path) = (options.seed, options.customers, options.path.clone());
        Ok(Self { run, seed, skus, popularity, quantities, frequency, customers, path })
    }

    pub(super) fn ask(&self, number: u64) -> Ask {
        // Neighbouring numbers have nothing in common: the generator hashes its seed.
        let mut random = SmallRng::seed_from_u64(self.seed.rotate_left(32) ^ number);
        Ask {
            number,
            product: if self.skus.len() == 1 { 0 } else { self.popularity.sample(&mut random) },
            quantity: match self.quantities.as_slice() {
                [only] => *only,
                several => several[self.frequency.sample(&mut random)],
            },
            customer: random.random_range(0..self.customers),
        }
    }

    /// The request as it goes to `host`.
    pub(super) fn request(&self, ask: &Ask, host: &str) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let (sku, quantity, customer) = (&self.skus[ask.product], ask.quantity, ask.customer);
        let body = format!(r#"{{"sku":"{sku}","quantity":{quantity},"customer_id":"customer-{customer}"}}"#);
        Request::post(self.path.as_str())
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/json")
            .header("idempotency-key", format!("{}-{}", self.run, ask.number))
            .body(Full::new(Bytes::from(body)))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::config::Quantities;

    fn buyers(skus: usize, zipf: f64, quantity: &str, seed: u64) -> Buyers {
        let options =
            LoadOptions { zipf, quantity: quantity.parse::<Quantities>().unwrap(), seed, ..LoadOptions::default() };
        let skus = (0..skus).map(|number| format!("sku-{number}")).collect();
        Buyers::new(&options, skus, "run".to_owned()).unwrap()
    }

    #[test]
    fn a_number_always_asks_for_the_same_and_other_seeds_for_others() {
        let (one, again, other) =
            (buyers(50, 1.0, "1,2,3", 1), buyers(50, 1.0, "1,2,3", 1), buyers(50, 1.0, "1,2,3", 2));
        let asks = |buyers: &Buyers| (0..100).map(|number| buyers.ask(number)).collect::<Vec<_>>();
        assert_eq!(asks(&one), asks(&again));
        assert_ne!(asks(&one), asks(&other));
    }

    #[test]
    fn the_shares_are_as_asked_for() {
        let buyers = buyers(3, 1.0, "1:3,5:1", 7);
        let asks: Vec<Ask> = (0..20_000).map(|number| buyers.ask(number)).collect();
        let share =
            |pick: &dyn Fn(&Ask) -> bool| asks.iter().filter(|ask| pick(ask)).count() as f64 / asks.len() as f64;
        // 1, 1/2 and 1/3, divided by their sum.
        for (product, expected) in [6.0 / 11.0, 3.0 / 11.0, 2.0 / 11.0].into_iter().enumerate() {
            assert!((share(&|ask| ask.product == product) - expected).abs() < 0.02);
        }
        assert!((share(&|ask| ask.quantity == 5) - 0.25).abs() < 0.02);
    }

    #[tokio::test]
    async fn requests_differ_in_their_keys() {
        let buyers = buyers(1, 0.0, "2", 1);
        let requests = [1, 2].map(|number| buyers.request(&buyers.ask(number), "shop:80").unwrap());
        let keys = requests.each_ref().map(|request| request.headers()["idempotency-key"].clone());
        assert_eq!(keys, ["run-1", "run-2"]);
        let [first, _] = requests;
        let body = first.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&body["sku"], &body["quantity"]), (&"sku-0".into(), &2.into()));
    }
}
