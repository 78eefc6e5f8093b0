//! Micro-benchmarks of the parts that need no store: `cargo bench`, or `cargo bench -- fit` for some of them.
//!
//! Each is something that every order goes through, so that a regression shows here, without a server and without the
//! noise of one. Times are for comparison on one machine; nothing asserts them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use axum::body::to_bytes;
use axum::response::IntoResponse;
use criterion::{BenchmarkId, Criterion, Throughput};
use futures_util::FutureExt;
use segstock::domain::{Beliefs, CustomerId, Fit, IdempotencyKey, OrderKey, Quantity, Sku};
use segstock::http::{FieldError, Problem};
use segstock::sale::Refusal;

/// Of those that `candidate` may choose, the last one: it looks at every segment.
fn choose_last(count: usize) -> usize {
    count - 1
}

fn units(units: u64) -> Quantity {
    Quantity::new(units).expect("it is in range")
}

/// The batch that one lease serves, out of a line in which most want one unit and some want many.
fn batch_fit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fit");
    for waiting in [256u64, 1000] {
        let line: Vec<Quantity> =
            (0..waiting).map(|place| units([1, 1, 2, 1, 5, 1, 3, 20][place as usize % 8])).collect();
        let wanted: u64 = line.iter().map(|quantity| quantity.units()).sum();
        group.throughput(Throughput::Elements(waiting));
        group.bench_function(BenchmarkId::from_parameter(waiting), |bencher| {
            bencher.iter(|| {
                // Half of what is wanted, and half of those who want it: both limits come into play.
                let mut fit = Fit::new(black_box(wanted / 2), line.len() / 2);
                line.iter().filter(|quantity| fit.take(**quantity)).count()
            });
        });
    }
    group.finish();
}

/// Where an order tries its luck, while some segments are empty, some are busy and some are leased by this process.
fn probe(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("probe");
    for segments in [20u16, 1024] {
        let now = Instant::now();
        let mut selling = Beliefs::unknown(segments);
        let mut sold_out = Beliefs::unknown(segments);
        for index in 0..segments {
            sold_out.saw(index, 0);
            match index % 5 {
                0 => selling.saw(index, 0),
                1 => selling.busy(index, now, 0.5),
                2 => selling.leasing(index),
                3 => selling.saw(index, 100),
                _never_seen => {}
            }
        }
        for (name, beliefs) in [("selling", &selling), ("sold-out", &sold_out)] {
            group.bench_function(BenchmarkId::new(name, segments), |bencher| {
                bencher.iter(|| beliefs.candidate(black_box(units(2)), now, choose_last));
            });
        }
    }
    group.finish();
}

/// What is read from every request before it is known whether anything is left.
fn names(criterion: &mut Criterion) {
    let bare = b"0193e5b4-6c1f-7a53-9d0e-2f4b8c6a1e77";
    let quoted = br#""0193e5b4-6c1f-7a53-9d0e-2f4b8c6a1e77""#;
    let customer = CustomerId::try_from("customer-4711".to_owned()).expect("it is short");
    let key = IdempotencyKey::parse(bare).expect("it is visible");
    let mut group = criterion.benchmark_group("names");
    group.bench_function("idempotency-key/bare", |bencher| bencher.iter(|| IdempotencyKey::parse(black_box(bare))));
    group.bench_function("idempotency-key/quoted", |bencher| bencher.iter(|| IdempotencyKey::parse(black_box(quoted))));
    group.bench_function("order-key", |bencher| {
        bencher.iter(|| OrderKey::of_request(black_box(&customer), black_box(&key)));
    });
    group.bench_function("sku", |bencher| bencher.iter(|| Sku::new(black_box("sneaker-42.limited_edition"))));
    group.finish();
}

/// The answer that nearly everybody gets in a flash sale, and one that has to be put together.
fn problems(criterion: &mut Criterion) {
    let wrong = |(field, message): (&str, &str)| FieldError { field: field.to_owned(), message: message.to_owned() };
    let invalid = [
        ("sku", "must be 1 to 64 characters out of A-Z, a-z, 0-9, '.', '_' and '-'"),
        ("quantity", "must be a whole number from 1 to 2147483647"),
        ("customer_id", "is missing"),
    ];
    let mut group = criterion.benchmark_group("problem");
    for (name, problem) in
        [("sold-out", Problem::Order(Refusal::SoldOut)), ("invalid", Problem::Invalid(invalid.map(wrong).to_vec()))]
    {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let body = black_box(problem.clone()).into_response().into_body();
                to_bytes(body, usize::MAX).now_or_never().expect("the whole body is there")
            });
        });
    }
    group.finish();
}

fn main() {
    // Long enough to see a few percent, and all of it over within a minute.
    let quick = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    let mut criterion = quick.configure_from_args();
    batch_fit(&mut criterion);
    probe(&mut criterion);
    names(&mut criterion);
    problems(&mut criterion);
    criterion.final_summary();
}
