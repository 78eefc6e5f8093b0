//! `segstock load` and `segstock bench`, as their users run them.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use segstock::bench::results::{Group, Results};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::fixture::Fixture;
use crate::harness::instance::Instance;
use crate::harness::process::{Program, Supervised};
use crate::harness::scratch::Scratch;
use crate::harness::shop::Shop;

const ENDS_WITHIN: Duration = Duration::from_secs(120);

/// A `segstock` subcommand at work.
struct Command {
    process: Supervised,
    folder: Scratch,
}

impl Command {
    fn start(arguments: &[&str]) -> Command {
        let folder = Scratch::new();
        let program = Program::new(env!("CARGO_BIN_EXE_segstock")).clear_environment("SEGSTOCK_").arguments(arguments);
        Command { process: program.start(&folder), folder }
    }

    fn load(instances: &[&Instance], arguments: &[&str]) -> Command {
        let urls: Vec<String> = instances.iter().map(|instance| instance.url("")).collect();
        let urls = urls.iter().flat_map(|url| ["--url", url]);
        let all: Vec<&str> =
            ["load"].into_iter().chain(urls).chain(["--json", "-"]).chain(arguments.iter().copied()).collect();
        Command::start(&all)
    }

    async fn exit_code(&self) -> Option<i32> {
        self.process.wait_exit(ENDS_WITHIN).await.code()
    }

    /// The report of a load that succeeded.
    async fn report(self) -> Value {
        let code = self.exit_code().await;
        assert_eq!(code, Some(0), "{}", self.process.logs());
        serde_json::from_str(&self.process.stdout()).expect("a JSON report and nothing else")
    }
}

fn count(report: &Value, outcome: &str) -> u64 {
    let outcomes = report["outcomes"].as_array().expect("a list");
    let found = outcomes.iter().filter(|candidate| candidate["outcome"] == outcome);
    found.map(|outcome| outcome["count"].as_u64().expect("a number")).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_is_loaded_to_its_end_and_proven() {
    let shop = Shop::embedded().await;
    let arguments = [
        "--stock",
        "3000",
        "--segments",
        "10",
        "--connections",
        "24",
        "--quantity",
        "1:3,2:1",
        "--retries",
        "5",
        "--warm-up",
        "0",
        "--duration",
        "60",
        "--until-sold-out",
    ];
    let report = Command::load(&[&shop.instance], &arguments).report().await;
    assert_eq!(report["proof"]["units_answered"], 3000, "{report}");
    assert_eq!(report["proof"]["units_left"], 0, "{report}");
    assert_eq!(report["proof"]["orders_found"], report["proof"]["orders_answered"], "{report}");
    assert_eq!(report["proof"]["faults"], json!([]));
    assert!(count(&report, "replayed") > 0, "{report}");
    assert!(count(&report, "sold-out") > 0, "{report}");
    assert_eq!(count(&report, "placed"), report["proof"]["orders_answered"].as_u64().expect("a number"));
    assert!(report["latency_ms"]["p99"].as_f64().expect("a number") > 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_open_loop_sends_what_arrives_and_many_products_are_wanted_unevenly() {
    let shop = Shop::embedded().await;
    let arguments = ["--rate", "200", "--duration", "2", "--warm-up", "0", "--products", "3", "--segments", "2"];
    let report = Command::load(&[&shop.instance], &arguments).report().await;
    // 400 are expected: as many more or less would be a coincidence of one in a million.
    let placed = count(&report, "placed");
    assert!((300..500).contains(&placed), "{report}");
    assert_eq!(report["loop"], "open");
    let products = shop.instance.get("/products?limit=1000").await.body;
    let taken = |product: &Value| Some(product["allotted"].as_u64()? - product["available"].as_u64()?);
    let mut taken: Vec<u64> = products["products"].as_array().expect("a list").iter().filter_map(taken).collect();
    taken.sort_unstable();
    assert!(taken.last() > Some(&(placed / 3)), "the first product is wanted most: {taken:?}");
}

/// One instance is killed while orders are on their way: their fate is found out, and the sale is right.
#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_are_asked_for_again() {
    let fixture = Fixture::start(2).await;
    let [first, second] = &fixture.instances[..] else { panic!("two") };
    let load = Command::load(&[first, second], &["--connections", "16", "--duration", "3", "--warm-up", "0"]);
    let placed = |line: &str| line.contains("placed").then_some(());
    crate::harness::wait::eventually("orders are placed", ENDS_WITHIN, async || {
        load.process.stderr().lines().find_map(placed)
    })
    .await;
    second.kill_nine().await;
    let report = load.report().await;
    assert!(count(&report, "connection-lost") > 0, "{report}");
    assert_eq!(report["proof"]["faults"], json!([]));
}

/// Kept leases are given up soon enough: nobody starves, even over one single segment.
#[tokio::test(flavor = "multi_thread")]
async fn three_instances_all_get_a_share() {
    let fixture = Fixture::start(3).await;
    let instances: Vec<&Instance> = fixture.instances.iter().collect();
    for segments in ["1", "20"] {
        let arguments = ["--segments", segments, "--connections", "48", "--duration", "4", "--warm-up", "0"];
        let report = Command::load(&instances, &arguments).report().await;
        let shares = report["placed_by_service"].as_array().expect("a list");
        let shares: Vec<u64> = shares.iter().filter_map(Value::as_u64).collect();
        let all: u64 = shares.iter().sum();
        assert!(shares.len() == 3 && shares.iter().all(|share| share * 10 > all), "{segments} segments: {shares:?}");
    }
}

/// A service that answers 201 and has no orders.
async fn liar() -> SocketAddr {
    let product = async |Path(sku): Path<String>| Json(json!({"sku": sku, "allotted": 10, "available": 10}));
    let order = async || (StatusCode::CREATED, Json(json!({"id": Uuid::now_v7(), "quantity": 1})));
    let orders = async || Json(json!({"orders": [], "next_cursor": null}));
    let router = Router::new().route("/orders", post(order).get(orders)).route("/products/{sku}", get(product));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async { axum_server::from_tcp(listener.into_std()?)?.serve(router.into_make_service()).await });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_that_is_wrong_is_told_and_fails_the_command() {
    let url = format!("http://{}", liar().await);
    let load = Command::start(&["load", "--url", &url, "--sku", "lamp", "--duration", "0.2", "--warm-up", "0"]);
    assert_eq!(load.exit_code().await, Some(1));
    let table = load.process.stdout();
    assert!(table.contains("were answered 201 and do not exist"), "{table}");
    assert!(table.contains("were taken") && table.contains("THE SALE IS WRONG"), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_in_one_line() {
    let cases: &[(&[&str], &str)] = &[
        (&["load", "--url", "http://127.0.0.1:1"], "127.0.0.1:1 cannot be reached"),
        (&["load", "--url", "https://shop.example"], "use http://host:port"),
        (&["load", "--quantity", "0"], "--quantity"),
        (&["load", "--connections", "0"], "--connections"),
        (&["load", "--sku", "lamp", "--stock", "5"], "--stock"),
        (&["load", "--max-batch", "1"], "--max-batch"),
        (&["bench", "--slow"], "--slow"),
        (&["sell"], "sell"),
    ];
    for (arguments, named) in cases {
        let command = Command::start(arguments);
        assert_eq!(command.exit_code().await, Some(1), "{arguments:?}");
        let refusal = command.process.stderr();
        assert!(refusal.contains(named) && refusal.trim_end().lines().count() == 1, "{arguments:?}: {refusal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_product_that_nobody_has_is_named() {
    let shop = Shop::embedded().await;
    let load = Command::load(&[&shop.instance], &["--sku", "lamp"]);
    assert_eq!(load.exit_code().await, Some(1));
    assert!(load.process.stderr().contains("lamp"), "{}", load.process.stderr());
}

/// `serve` has no route and no flag that only the benchmark needs.
#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_benchmark_needs_is_not_served() {
    let shop = Shop::embedded().await;
    let order = json!({"sku": "lamp", "quantity": 1, "customer_id": "ada"});
    assert_eq!(shop.instance.post("/ceiling", &order).await.status, 404);
    let command = Command::start(&["serve", "--turn-ms", "20"]);
    assert_eq!(command.exit_code().await, Some(1));
    assert!(command.process.stderr().contains("--turn-ms"));
}

/// The whole benchmark, with figures that mean nothing: each is measured for a moment only.
#[tokio::test(flavor = "multi_thread")]
async fn the_benchmark_measures_all_that_it_names() {
    let bench = Command::start(&["bench", "--smoke", "--json", "results.json", "--report", "report"]);
    let code = bench.process.wait_exit(2 * ENDS_WITHIN).await.code();
    assert_eq!(code, Some(0), "{}", bench.process.logs());
    let results = std::fs::read(bench.folder.join("results.json")).expect("the results");
    let results: Results = serde_json::from_slice(&results).expect("results as they are documented");
    for group in Group::ALL {
        assert!(results.rows_of(group).count() > 0, "{group}");
        // A moment may be too short for thousands of connections, while other tests run.
        let must_answer = [Group::Core, Group::Tail, Group::ClassicTable].contains(&group);
        assert!(!must_answer || results.rows_of(group).all(|row| row.orders_per_second.median > 0.0), "{group}");
    }
    assert_eq!(results.figures.len(), 13, "{:?}", results.figures);
    let page = std::fs::read_to_string(bench.folder.join("report").join("index.html")).expect("the page");
    assert!(page.contains("<svg"));
    assert!(bench.process.stdout().contains("durable orders ÷ ceiling"));
}
