//! Buyers as a shop has them: many at a time, each with a key, patient with a service that says "try again".

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::json;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::instance::{Answer, Instance};
use super::observer::Observer;
use super::wait::eventually;

/// Nobody keeps trying for longer: whatever is broken then stays broken.
const PATIENCE: Duration = Duration::from_secs(90);
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// What one shopper was told in the end.
#[derive(Debug)]
pub(crate) enum Told {
    /// 201, with the order's id and units.
    Sold(Uuid, u64),
    /// 409: sold out, or less left than asked for.
    Refused,
}

/// Shoppers at work.
pub(crate) struct Shoppers {
    tasks: JoinSet<Vec<Told>>,
    sold_units: Arc<AtomicU64>,
}

impl Shoppers {
    /// Lets `shoppers` buy 1 to 3 units at a time, from changing instances, until the product is sold out.
    ///
    /// An answer 503 or a lost connection is followed by the same order with the same key.
    pub(crate) fn start(instances: &[Arc<Instance>], sku: &str, shoppers: usize, seed: u64) -> Shoppers {
        let sold_units = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        for number in 0..shoppers {
            let shopper = Shopper {
                name: format!("shopper-{number}"),
                sku: sku.to_owned(),
                instances: instances.to_vec(),
                random: StdRng::seed_from_u64(seed.wrapping_add(number as u64)),
                sold_units: Arc::clone(&sold_units),
            };
            tasks.spawn(shopper.shop());
        }
        Shoppers { tasks, sold_units }
    }

    /// Waits until so many units are sold.
    pub(crate) async fn have_bought(&self, units: u64) {
        eventually("enough units are sold", PATIENCE, async || {
            (self.sold_units.load(Ordering::Relaxed) >= units).then_some(())
        })
        .await;
    }

    /// Waits until all have gone home, and checks that the sale was right to the last unit.
    pub(crate) async fn settle_up(self, observer: &Observer, sku: &str, stock: u64) {
        let told: Vec<Told> = self.tasks.join_all().await.into_iter().flatten().collect();
        let sold = told.iter().filter_map(|told| match told {
            Told::Sold(id, units) => Some((*id, *units)),
            Told::Refused => None,
        });
        let (ids, units): (Vec<Uuid>, Vec<u64>) = sold.unzip();
        let answered: HashSet<Uuid> = ids.iter().copied().collect();
        assert_eq!(answered.len(), ids.len(), "no two shoppers have the same order");

        observer.audit(sku, &ids).await;
        let (in_ledger, units_in_ledger) = observer.orders(sku).await;
        assert_eq!(in_ledger, answered, "an order in the ledger is an order that was answered 201");
        assert_eq!(units.iter().sum::<u64>(), units_in_ledger);
        assert_eq!(observer.available(sku).await, 0, "INV-8: the product sells out completely");
        assert_eq!(units_in_ledger, stock);
    }
}

struct Shopper {
    name: String,
    sku: String,
    instances: Vec<Arc<Instance>>,
    random: StdRng,
    sold_units: Arc<AtomicU64>,
}

impl Shopper {
    async fn shop(mut self) -> Vec<Told> {
        let mut told = Vec::new();
        for number in 0.. {
            let quantity: u64 = self.random.random_range(1..=3);
            let answer = self.insist(quantity, &format!("{}-{number}", self.name)).await;
            if answer.status == 201 {
                let id = answer.body["id"].as_str().and_then(|id| id.parse().ok()).expect("an order has an id");
                assert_eq!(answer.body["quantity"], quantity);
                self.sold_units.fetch_add(quantity, Ordering::Relaxed);
                told.push(Told::Sold(id, quantity));
                continue;
            }
            assert_eq!(answer.status, 409, "{answer:?}");
            told.push(Told::Refused);
            if answer.body["type"] == "/problems/sold-out" {
                break;
            }
            assert_eq!(answer.body["type"], "/problems/insufficient-stock", "{answer:?}");
            assert!(answer.body["remaining"].as_u64().expect("a number") < quantity, "{answer:?}");
        }
        told
    }

    /// Sends the order until there is an answer that is final.
    async fn insist(&mut self, quantity: u64, key: &str) -> Answer {
        let order = json!({"sku": self.sku, "quantity": quantity, "customer_id": self.name});
        let began_at = Instant::now();
        let mut last = None;
        while began_at.elapsed() < PATIENCE {
            let instance = &self.instances[self.random.random_range(0..self.instances.len())];
            match instance.post_order(&order, Some(key)).await {
                Ok(answer) if answer.status == 503 => {
                    assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
                    last = Some(answer);
                }
                Ok(answer) => return answer,
                Err(_connection_lost) => {}
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        panic!("{key} found no end within {PATIENCE:?}; last answer {last:?}");
    }
}
