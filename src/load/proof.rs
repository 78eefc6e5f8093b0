//! The proof of a sale: what buyers were told against what the service has.

use std::collections::HashMap;

use serde::Serialize;
use uuid::Uuid;

use super::run::LoadError;
use super::shop::{Office, Shop, Stock};
use super::tally::Sold;
use crate::config::LoadOptions;

/// What the proof compared, and everything that did not agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Proof {
    /// Orders that were answered 201.
    pub orders_answered: u64,
    /// Those of them that the service lists, with the same units.
    pub orders_found: u64,
    /// Units of all orders that were answered 201.
    pub units_answered: u64,
    /// Units that left the products' stock meanwhile.
    pub units_taken: u64,
    /// Units that all products together have left.
    pub units_left: u64,
    /// What is wrong, one sentence each; empty when the sale is proven.
    pub faults: Vec<String>,
}

impl Proof {
    /// Whether everything agrees.
    pub fn holds(&self) -> bool {
        self.faults.is_empty()
    }

    /// Asks the service for everything that was sold since `shop` was opened.
    pub async fn of(options: &LoadOptions, shop: &Shop, sold: &[Sold]) -> Result<Self, LoadError> {
        let mut office = Office::open(options).await?;
        let stocks = office.stocks(&shop.skus).await?;
        let mut book = Book::new(shop, sold);
        if let Some(first) = sold.iter().map(|sold| sold.id).min() {
            // The list begins behind the id that it is given.
            let before = Uuid::from_u128(first.as_u128().saturating_sub(1));
            office.orders(&shop.skus, before, |listed| book.tick(listed.id, &listed.sku, listed.quantity)).await?;
        }
        Ok(book.close(shop, &stocks))
    }
}

/// The orders that were answered, to be ticked off.
struct Book {
    proof: Proof,
    /// Product and units, by id.
    open: HashMap<Uuid, (u32, u32)>,
    units_by_product: Vec<u64>,
    skus: Vec<String>,
}

impl Book {
    fn new(shop: &Shop, sold: &[Sold]) -> Self {
        let mut book = Self {
            proof: Proof { orders_answered: sold.len() as u64, ..Proof::default() },
            open: HashMap::with_capacity(sold.len()),
            units_by_product: vec![0; shop.skus.len()],
            skus: shop.skus.clone(),
        };
        for order in sold {
            book.units_by_product[order.product as usize] += u64::from(order.quantity);
            if book.open.insert(order.id, (order.product, order.quantity)).is_some() {
                book.proof.faults.push(format!("order {} was sold twice", order.id));
            }
        }
        book.proof.units_answered = book.units_by_product.iter().sum();
        book
    }

    fn tick(&mut self, id: Uuid, sku: &str, quantity: u64) {
        let Some((product, answered)) = self.open.remove(&id) else {
            return;
        };
        self.proof.orders_found += 1;
        if self.skus[product as usize] != sku || u64::from(answered) != quantity {
            let fault = format!("order {id} was answered as {answered} units, and is listed as {quantity} of {sku}");
            self.proof.faults.push(fault);
        }
    }

    fn close(self, shop: &Shop, stocks: &[Stock]) -> Proof {
        let mut proof = self.proof;
        if !self.open.is_empty() {
            let example = self.open.keys().next().map(Uuid::to_string).unwrap_or_default();
            proof.faults.push(format!("{} orders were answered 201 and do not exist, as {example}", self.open.len()));
        }
        let products = shop.skus.iter().zip(&shop.taken_before).zip(stocks).zip(&self.units_by_product);
        for (((sku, before), stock), answered) in products {
            proof.units_left += stock.available;
            let Some(taken) = stock.allotted.checked_sub(stock.available) else {
                proof.faults.push(format!("{sku} has more left than it was given"));
                continue;
            };
            let taken = taken.saturating_sub(*before);
            proof.units_taken += taken;
            if taken != *answered {
                proof.faults.push(format!("{answered} units of {sku} were answered, and {taken} were taken"));
            }
        }
        proof
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop() -> Shop {
        Shop { skus: vec!["a".to_owned(), "b".to_owned()], taken_before: vec![5, 0] }
    }

    fn sold(number: u128, product: u32, quantity: u32) -> Sold {
        Sold { number: number as u64, id: Uuid::from_u128(number), product, quantity, service: 0, at_us: 0 }
    }

    fn stocks(taken: [u64; 2]) -> [Stock; 2] {
        taken.map(|taken| Stock { allotted: 10, available: 10 - taken })
    }

    fn prove(sold: &[Sold], listed: &[(u128, &str, u64)], taken: [u64; 2]) -> Proof {
        let mut book = Book::new(&shop(), sold);
        listed.iter().for_each(|(id, sku, quantity)| book.tick(Uuid::from_u128(*id), sku, *quantity));
        book.close(&shop(), &stocks(taken))
    }

    #[test]
    fn a_sale_in_which_all_agrees_is_proven() {
        let proof = prove(&[sold(1, 0, 2), sold(2, 1, 3)], &[(1, "a", 2), (2, "b", 3), (9, "other", 1)], [7, 3]);
        assert!(proof.holds(), "{proof:?}");
        assert_eq!((proof.orders_answered, proof.orders_found), (2, 2));
        assert_eq!((proof.units_answered, proof.units_taken, proof.units_left), (5, 5, 10));
    }

    #[test]
    fn every_disagreement_is_a_fault() {
        let orders = [sold(1, 0, 2), sold(2, 1, 3)];
        let all = [(1, "a", 2), (2, "b", 3)];
        let faults = |sold: &[Sold], listed: &[(u128, &str, u64)], taken| prove(sold, listed, taken).faults;
        assert!(faults(&orders, &all[..1], [7, 3])[0].contains("do not exist"), "an order is lost");
        assert!(faults(&orders, &[(1, "b", 2), all[1]], [7, 3])[0].contains("listed as"), "another product");
        assert!(faults(&orders, &[(1, "a", 1), all[1]], [7, 3])[0].contains("listed as"), "other units");
        assert!(faults(&orders, &all, [8, 3])[0].contains("were taken"), "taken, and nobody was told");
        assert!(faults(&orders, &all, [6, 3])[0].contains("were taken"), "told, and not taken");
        assert!(faults(&[orders[0], orders[0]], &all, [9, 0])[0].contains("twice"), "sold twice");
        let mut book = Book::new(&shop(), &[]);
        book.tick(Uuid::nil(), "a", 1);
        let oversold = [Stock { allotted: 10, available: 11 }, Stock { allotted: 10, available: 10 }];
        assert!(book.close(&shop(), &oversold).faults[0].contains("more left"));
    }
}
