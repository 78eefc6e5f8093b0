//! What operators and tools look at: probes, metrics, the API's description and its page.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{assert_problem, buy, placed, product};
use crate::harness::instance::{Answer, Instance};
use crate::harness::observer::Observer;
use crate::harness::postgres::Postgres;
use crate::harness::redis::Redis;
use crate::harness::scratch::Scratch;
use crate::harness::shop::{Shop, on_both_stores};
use crate::harness::wait::eventually;

const WITHIN: Duration = Duration::from_secs(30);

on_both_stores!(
    a_healthy_service_is_alive_and_ready,
    metrics_tell_what_was_sold_and_how,
    the_description_covers_every_route,
    the_docs_page_needs_nobody_else,
);

async fn a_healthy_service_is_alive_and_ready(shop: Shop) {
    let alive = shop.instance.get("/livez").await;
    assert_eq!(alive.status, 200, "{alive:?}");
    let ready = shop.instance.get("/readyz").await;
    assert_eq!((ready.status, ready.body), (200, json!({"guard": true, "ledger": true})));
}

async fn readiness(instance: &Instance) -> (u16, Value) {
    let answer = instance.get("/readyz").await;
    (answer.status, answer.body)
}

#[tokio::test]
async fn readiness_names_the_store_that_is_down_and_comes_back() {
    let (redis, postgres) = tokio::join!(Redis::start(), Postgres::start());
    let database = postgres.database().await;
    let instance = Instance::with_stores(&redis.url(), database.url())
        .setting("SEGSTOCK_REQUEST_DEADLINE_MS", "300")
        .start()
        .await;
    instance.create_product("lamp", 10, 2).await;
    // Never sold before: their segments are unknown, and both stores are needed to know them.
    for sku in ["redis", "postgres"] {
        instance.create_product(sku, 1, 1).await;
    }
    let mut ids = vec![placed(&buy(&instance, "lamp", 1, "ada", None).await)];

    for (down, guard, ledger) in [("redis", false, true), ("postgres", true, false)] {
        match down {
            "redis" => redis.kill().await,
            _ => postgres.stop().await,
        }
        let expected = (503, json!({"guard": guard, "ledger": ledger}));
        assert_eq!(readiness(&instance).await, expected, "{down} is down");
        assert_eq!(instance.get("/livez").await.status, 200, "it runs itself");
        // A connection that is found broken may have carried a commit, so the first answers may be of another kind.
        for sku in ["lamp", down] {
            let refused = eventually("the store is known to be down", WITHIN, async || {
                let answer = buy(&instance, sku, 1, "bob", None).await;
                assert_eq!(answer.status, 503, "{answer:?}");
                (answer.body["type"] != "/problems/outcome-unknown").then_some(answer)
            })
            .await;
            assert_problem(&refused, 503, "unavailable");
            assert_eq!(refused.headers["retry-after"], "1");
        }
        match down {
            "redis" => redis.restart().await,
            _ => postgres.start_again().await,
        }
        let recovered = (200, json!({"guard": true, "ledger": true}));
        eventually("it is ready again by itself", WITHIN, async || {
            (readiness(&instance).await == recovered).then_some(())
        })
        .await;
        let sold = eventually("it sells again by itself", WITHIN, async || {
            let answer = buy(&instance, "lamp", 1, "ada", None).await;
            (answer.status == 201).then_some(answer)
        })
        .await;
        ids.push(placed(&sold));
    }
    let observer = Observer::of(&redis.url(), database.url()).await;
    observer.audit("lamp", &ids).await;
    assert_eq!(observer.available("lamp").await, 7, "a refusal takes nothing");
}

/// One line of `/metrics`: its labels and its value.
#[derive(Debug)]
struct Sample {
    labels: BTreeMap<String, String>,
    value: f64,
}

/// The samples by their names, suffixes such as `_bucket` included.
type Samples = BTreeMap<String, Vec<Sample>>;

/// Reads the Prometheus text format, as far as this service writes it.
fn read_samples(text: &str) -> Samples {
    let mut samples = Samples::new();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let (series, value) = line.rsplit_once(' ').expect("a name and a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let labels = labels
            .trim_end_matches('}')
            .split_terminator("\",")
            .map(|pair| {
                let (label, value) = pair.split_once("=\"").expect("label=\"value\"");
                (label.to_owned(), value.trim_end_matches('"').to_owned())
            })
            .collect();
        let value = value.parse().expect("a number");
        let sample = Sample { labels, value };
        samples.entry(name.to_owned()).or_default().push(sample);
    }
    samples
}

/// The sum of a metric's samples that have these labels.
fn sum(samples: &Samples, name: &str, labels: &[(&str, &str)]) -> f64 {
    let has_labels =
        |sample: &&Sample| labels.iter().all(|(label, value)| sample.labels.get(*label).is_some_and(|it| it == value));
    let matching = samples.get(name).into_iter().flatten().filter(has_labels);
    matching.map(|sample| sample.value).sum()
}

async fn metrics_tell_what_was_sold_and_how(shop: Shop) {
    let instance = &shop.instance;
    instance.create_product("lamp", 6, 3).await;
    instance.create_product("other", 6, 3).await;
    for _ in 0..6 {
        placed(&buy(instance, "lamp", 1, "ada", None).await);
    }
    placed(&buy(instance, "other", 1, "ada", Some("cart-1")).await);
    buy(instance, "other", 1, "ada", Some("cart-1")).await;
    for _ in 0..2 {
        assert_problem(&buy(instance, "lamp", 1, "bob", None).await, 409, "sold-out");
    }

    let answer = instance.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = answer.body.as_str().expect("text");
    let samples = read_samples(text);
    check_orders(&samples, &product(instance, "lamp").await);
    check_histograms(&samples);
    for (family, kind) in [
        ("segstock_orders_total", "counter"),
        ("segstock_rounds_total", "counter"),
        ("segstock_batch_orders", "histogram"),
        ("segstock_fall_throughs_total", "counter"),
        ("segstock_lease_wait_seconds", "histogram"),
        ("segstock_settle_seconds", "histogram"),
        ("segstock_lease_losses_total", "counter"),
        ("segstock_settles_refused_total", "counter"),
        ("segstock_reloads_total", "counter"),
        ("segstock_segment_stock", "gauge"),
        ("segstock_queue_orders", "gauge"),
        ("segstock_http_request_seconds", "histogram"),
    ] {
        assert!(text.contains(&format!("# TYPE {family} {kind}\n")), "{family} is no {kind}:\n{text}");
        assert!(text.contains(&format!("# HELP {family} ")), "{family}");
    }
}

/// Orders by product, segment and outcome; rounds; what is left of each segment.
fn check_orders(samples: &Samples, lamp: &Value) {
    let orders = |product, outcome| {
        let labels = [("product", product), ("outcome", outcome)];
        sum(samples, "segstock_orders_total", &labels)
    };
    assert_eq!(orders("lamp", "placed"), 6.0, "{samples:#?}");
    assert_eq!(orders("lamp", "sold-out"), 2.0);
    assert_eq!(orders("lamp", "replayed"), 0.0);
    assert_eq!(orders("other", "placed"), 1.0);
    assert_eq!(orders("other", "replayed"), 1.0);
    for segment in lamp["segments"].as_array().expect("a list") {
        let index = segment["index"].to_string();
        let labels = [("product", "lamp"), ("segment", index.as_str())];
        let placed = sum(samples, "segstock_orders_total", &labels);
        assert_eq!(Some(placed), segment["taken"].as_f64(), "segment {index}");
        let stock = &samples["segstock_segment_stock"];
        let shown = stock.iter().find(|sample| sample.labels["product"] == "lamp" && sample.labels["segment"] == index);
        assert_eq!(shown.map(|sample| sample.value), Some(0.0), "segment {index}");
    }
    let settled = [("product", "lamp"), ("ending", "settled")];
    assert_eq!(sum(samples, "segstock_rounds_total", &settled), 6.0);
    let waiting = [("product", "lamp")];
    assert_eq!(sum(samples, "segstock_queue_orders", &waiting), 0.0);
    // Every segment was unknown once.
    assert_eq!(sum(samples, "segstock_reloads_total", &waiting), 3.0);
}

fn check_histograms(samples: &Samples) {
    // One order a batch, the replayed one included or not.
    let batches = sum(samples, "segstock_batch_orders_count", &[]);
    assert!((7.0..=8.0).contains(&batches), "{batches}");
    assert_eq!(sum(samples, "segstock_batch_orders_sum", &[]), batches);
    for bound in ["1", "1024", "+Inf"] {
        let upto = sum(samples, "segstock_batch_orders_bucket", &[("le", bound)]);
        assert_eq!(upto, batches, "up to {bound} orders");
    }
    let requests = |status| {
        let labels = [("route", "/orders"), ("method", "POST"), ("status", status)];
        let count = sum(samples, "segstock_http_request_seconds_count", &labels);
        let mut inf = labels.to_vec();
        inf.push(("le", "+Inf"));
        assert_eq!(sum(samples, "segstock_http_request_seconds_bucket", &inf), count);
        count
    };
    assert_eq!(requests("201"), 8.0);
    assert_eq!(requests("409"), 2.0);
    assert!(sum(samples, "segstock_settle_seconds_count", &[]) >= 7.0);
    assert!(sum(samples, "segstock_lease_wait_seconds_sum", &[]) > 0.0);
}

/// The references of a JSON document to its own parts.
fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(target) if name == "$ref" => drop(found.insert(target)),
                    member => references(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

async fn the_description_covers_every_route(shop: Shop) {
    let answer = shop.instance.get("/openapi.json").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "application/json");
    let document = answer.body;
    let version = document["openapi"].as_str().expect("a version");
    assert!(version.starts_with("3.1"), "{version}");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));

    let paths = document["paths"].as_object().expect("paths");
    let described: BTreeSet<String> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods");
            methods.keys().map(move |method| format!("{method} {path}"))
        })
        .collect();
    let routes = [
        "post /orders",
        "get /orders",
        "get /orders/{id}",
        "post /products",
        "get /products",
        "get /products/{sku}",
        "get /problems/{slug}",
        "get /livez",
        "get /readyz",
        "get /metrics",
    ];
    assert_eq!(described, routes.map(str::to_owned).into());
    for path in paths.keys() {
        // Asked with a method that none of them has: the route is there.
        let url = shop.instance.url(&path.replace(['{', '}'], "x"));
        let answer = shop.instance.send(shop.instance.client().delete(url)).await;
        assert_problem(&answer, 405, "method-not-allowed");
    }
    for (method, path) in [("post", "/orders"), ("post", "/products"), ("get", "/orders/{id}")] {
        let answers = document["paths"][path][method]["responses"].as_object();
        let success = answers.is_some_and(|answers| answers.keys().any(|it| it.starts_with('2')));
        assert!(success, "{method} {path} says how it succeeds");
    }
    let security = &document["paths"]["/products"]["post"]["security"];
    assert_eq!(security, &json!([{"admin_token": []}]));

    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("a part of the document");
        assert!(document.pointer(pointer).is_some(), "{reference} is missing");
    }
}

/// What a page loads or links to.
fn addresses(page: &str) -> Vec<&str> {
    ["src=\"", "href=\""]
        .into_iter()
        .flat_map(|opening| page.split(opening).skip(1))
        .map(|rest| rest.split('"').next().unwrap_or_default())
        .collect()
}

fn text(answer: &Answer) -> &str {
    answer.body.as_str().expect("text")
}

async fn the_docs_page_needs_nobody_else(shop: Shop) {
    let page = shop.instance.get("/docs").await;
    assert_eq!(page.status, 200, "{page:?}");
    let content_type = page.headers["content-type"].to_str().expect("text");
    assert!(content_type.starts_with("text/html"), "{content_type}");
    let loaded = addresses(text(&page));
    assert!(!loaded.is_empty());
    let mut names_the_description = false;
    for address in loaded {
        assert!(!address.contains("://") && !address.starts_with("//"), "the page needs {address}");
        let path = format!("/docs/{}", address.trim_start_matches("./"));
        let piece = shop.instance.get(&path).await;
        assert_eq!(piece.status, 200, "{path}");
        if let Value::String(script) = &piece.body {
            names_the_description |= script.contains("\"/openapi.json\"");
        }
    }
    assert!(names_the_description, "a script of the page shows this API");
}

#[tokio::test]
async fn log_lines_are_plain_text_or_json() {
    for format in ["text", "json"] {
        let folder = Scratch::new();
        let instance = Instance::embedded(folder.path()).setting("SEGSTOCK_LOG_FORMAT", format).start().await;
        assert_eq!(instance.stop_gracefully().await, Some(0));
        let lines = instance.stderr();
        assert!(lines.contains("stopping"), "{lines}");
        assert!(!lines.contains('\u{1b}'), "colours are for terminals: {lines}");
        for line in lines.lines().filter(|_| format == "json") {
            let line: Value = serde_json::from_str(line).expect("one object a line");
            assert_eq!(line["level"], "INFO");
        }
    }
}

#[tokio::test]
async fn unknown_products_are_no_labels() {
    // Whoever makes up SKUs must not fill the memory of the service and of Prometheus.
    let folder = Scratch::new();
    let instance = Instance::embedded(folder.path()).start().await;
    for number in 0..20 {
        let sku = format!("made-up-{number}");
        let answer = buy(&instance, &sku, 1, "ada", None).await;
        assert_problem(&answer, 404, "unknown-product");
        instance.get(&format!("/made-up-{number}")).await;
    }
    let answer = instance.get("/metrics").await;
    assert!(!text(&answer).contains("made-up"), "{}", text(&answer));
}
