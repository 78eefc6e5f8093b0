//! Settings that cannot be used: the service says so in one line and does not start.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use segstock::config::{DOCUMENTED, Documented};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::harness::instance::{Instance, StartFailure};
use crate::harness::ports::free_address;
use crate::harness::postgres::Postgres;
use crate::harness::process::{Program, Supervised};
use crate::harness::redis::Redis;
use crate::harness::scratch::Scratch;

const WITHIN: Duration = Duration::from_secs(30);

/// A start that must fail, and the words of its one line.
struct Refused {
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    words: Vec<&'static str>,
}

fn variable(name: &'static str, value: impl Into<String>, words: &[&'static str]) -> Refused {
    Refused { arguments: Vec::new(), environment: vec![(name, value.into())], words: words.to_vec() }
}

fn arguments<const N: usize>(arguments: [&str; N], words: &[&'static str]) -> Refused {
    Refused { arguments: arguments.map(str::to_owned).into(), environment: Vec::new(), words: words.to_vec() }
}

fn stores(redis_url: &str, database_url: &str, words: &[&'static str]) -> Refused {
    Refused {
        arguments: Vec::new(),
        environment: vec![
            ("SEGSTOCK_REDIS_URL", redis_url.to_owned()),
            ("SEGSTOCK_DATABASE_URL", database_url.to_owned()),
        ],
        words: words.to_vec(),
    }
}

fn program(folder: &Scratch) -> Program {
    Program::new(env!("CARGO_BIN_EXE_segstock"))
        .clear_environment("SEGSTOCK_")
        .environment("SEGSTOCK_LISTEN", "127.0.0.1:0")
        .environment("SEGSTOCK_DATA_DIR", folder.join("data"))
}

/// The code and the output of a process that ends by itself.
async fn ending(process: Supervised) -> StartFailure {
    let status = process.exit_within(WITHIN).await;
    let code = status.unwrap_or_else(|| panic!("it runs on\n{}", process.logs()));
    StartFailure { code: code.code(), stderr: process.stderr(), stdout: process.stdout() }
}

impl Refused {
    /// What is wrong with how the start failed, if anything is.
    async fn complaint(&self) -> Option<String> {
        let folder = Scratch::new();
        let mut program = program(&folder).arguments(&self.arguments);
        for (name, value) in &self.environment {
            program = program.environment(name, value);
        }
        let ended = ending(program.start(&folder)).await;
        let line = ended.stderr.strip_suffix('\n').unwrap_or_default();
        let one_line = !line.is_empty() && !line.contains('\n');
        let names_all = self.words.iter().all(|word| line.contains(word));
        let failed = ended.code.is_some_and(|code| code != 0);
        let well = failed && one_line && names_all && ended.stdout.is_empty();
        (!well).then(|| {
            let (arguments, environment) = (&self.arguments, &self.environment);
            format!("{arguments:?} {environment:?} must name {:?}: {ended:#?}", self.words)
        })
    }
}

async fn check_all(starts: Vec<Refused>) {
    let mut wrong = Vec::new();
    for start in starts {
        wrong.extend(start.complaint().await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn flags_and_variables_that_are_wrong_are_named() {
    check_all(vec![
        arguments(["--max-bach", "7"], &["--max-bach"]),
        arguments(["nonsense"], &["nonsense"]),
        arguments(["--max-batch"], &["--max-batch"]),
        arguments(["--max-batch", "many"], &["--max-batch", "many"]),
        arguments(["--max-batch", "1", "--max-batch", "2"], &["--max-batch"]),
        arguments(["--listen", "here"], &["--listen", "here"]),
        arguments(["--log-format", "xml"], &["--log-format", "xml"]),
        variable("SEGSTOCK_MAX_BACH", "7", &["SEGSTOCK_MAX_BACH"]),
        variable("SEGSTOCK_MAX_BATCH", "-1", &["--max-batch"]),
        variable("SEGSTOCK_MAX_BATCH", "", &["--max-batch"]),
        variable("SEGSTOCK_LOG", "=,=", &["log", "SEGSTOCK_LOG"]),
        variable("SEGSTOCK_FAIL_POINT", "sometimes", &["fail_point"]),
    ])
    .await;
}

#[tokio::test]
async fn values_out_of_range_are_named_with_the_range() {
    let too_small_and_too_large = [
        ("SEGSTOCK_MAX_BATCH", "max_batch", "0", "10001"),
        ("SEGSTOCK_MAX_ROUNDS_IN_FLIGHT", "max_rounds_in_flight", "0", "1025"),
        ("SEGSTOCK_QUEUE_CAPACITY", "queue_capacity", "0", "1000001"),
        ("SEGSTOCK_REQUEST_DEADLINE_MS", "request_deadline_ms", "9", "60001"),
        ("SEGSTOCK_LEASE_TIME_LIMIT_MS", "lease_time_limit_ms", "99", "600001"),
        ("SEGSTOCK_REDIS_TIMEOUT_MS", "redis_timeout_ms", "4", "60001"),
        ("SEGSTOCK_LEDGER_TIMEOUT_MS", "ledger_timeout_ms", "9", "60001"),
        ("SEGSTOCK_REDIS_CONNECTIONS", "redis_connections", "0", "10001"),
        ("SEGSTOCK_DATABASE_CONNECTIONS", "database_connections", "0", "10001"),
        ("SEGSTOCK_STOP_DEADLINE_MS", "stop_deadline_ms", "-1", "600001"),
    ];
    let mut starts = Vec::new();
    for (name, setting, small, large) in too_small_and_too_large {
        // What is no number of its type is refused by the flag's name.
        let words: &[&'static str] = if small == "-1" { &[] } else { &[setting, "range"] };
        starts.push(variable(name, small, words));
        starts.push(variable(name, large, &[setting, name, "range"]));
    }
    check_all(starts).await;
}

#[tokio::test]
async fn settings_at_odds_are_both_named() {
    let folder = Scratch::new();
    let file = folder.join("a file");
    std::fs::write(&file, "").expect("the folder is writable");
    let below_a_file = file.join("data").to_string_lossy().into_owned();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let taken = taken.local_addr().expect("it is bound").to_string();
    check_all(vec![
        variable(
            "SEGSTOCK_LEASE_TIME_LIMIT_MS",
            "2750",
            &["lease_time_limit_ms", "ledger_timeout_ms", "redis_timeout_ms"],
        ),
        variable("SEGSTOCK_REDIS_URL", "redis://127.0.0.1", &["database_url", "redis_url"]),
        variable("SEGSTOCK_DATABASE_URL", "postgres://127.0.0.1/x", &["redis_url", "database_url"]),
        variable("SEGSTOCK_LISTEN", "0.0.0.0:0", &["admin_token", "0.0.0.0"]),
        variable("SEGSTOCK_LISTEN", "[::]:0", &["admin_token"]),
        variable("SEGSTOCK_ADMIN_TOKEN", "15 characters..", &["admin_token"]),
        variable("SEGSTOCK_ADMIN_TOKEN", "sixteen chars or", &["admin_token"]),
        // 192.0.2.1 is nobody's (RFC 5737).
        Refused {
            arguments: Vec::new(),
            environment: vec![
                ("SEGSTOCK_LISTEN", "192.0.2.1:8080".to_owned()),
                ("SEGSTOCK_ADMIN_TOKEN", "0123456789abcdef".to_owned()),
            ],
            words: vec!["listen", "192.0.2.1:8080"],
        },
        variable("SEGSTOCK_LISTEN", taken, &["listen", "port"]),
        variable("SEGSTOCK_DATA_DIR", below_a_file, &["data_dir"]),
    ])
    .await;
}

fn file(folder: &Scratch, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("the folder is writable");
    path.to_string_lossy().into_owned()
}

#[tokio::test]
async fn a_wrong_file_is_named_with_the_line() {
    let folder = Scratch::new();
    let unknown = file(&folder, "unknown.toml", "max_batch = 7\n\nmax_bach = 7\n");
    let wrong_type = file(&folder, "type.toml", "max_batch = \"7\"\n");
    let no_toml = file(&folder, "no.toml", "max_batch: 7\n");
    let out_of_range = file(&folder, "range.toml", "queue_capacity = 0\n");
    let missing = folder.join("missing.toml").to_string_lossy().into_owned();
    let config = |path: String, words: &[&'static str]| variable("SEGSTOCK_CONFIG", path, words);
    check_all(vec![
        config(unknown.clone(), &["unknown.toml", "line 3", "max_bach"]),
        arguments(["--config", &unknown], &["unknown.toml", "max_bach"]),
        config(wrong_type, &["type.toml", "line 1"]),
        config(no_toml, &["no.toml", "line 1"]),
        config(out_of_range, &["queue_capacity"]),
        config(missing, &["config", "missing.toml"]),
        config(folder.path().to_string_lossy().into_owned(), &["config"]),
    ])
    .await;
}

#[tokio::test]
async fn stores_that_cannot_be_used_are_named_and_secrets_are_not() {
    let redis = Redis::start().await;
    let database = Postgres::shared().await.database().await;
    let nobody = free_address();
    let dead_redis = format!("redis://user:hunter2@{nobody}/");
    let dead_postgres = format!("postgres://user:hunter2@{nobody}/shop");
    let no_such_database = database.url().replace(database.name(), "nowhere");
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let silent = silent.local_addr().expect("it is bound");
    let starts = vec![
        stores(&dead_redis, database.url(), &["redis_url"]),
        stores(&redis.url(), &dead_postgres, &["database_url"]),
        stores(&redis.url(), &no_such_database, &["database_url", "nowhere"]),
        stores("nonsense", database.url(), &["redis_url"]),
        stores("", database.url(), &["redis_url"]),
        stores("http://user:hunter2@127.0.0.1/", database.url(), &["redis_url"]),
        stores(&redis.url(), "nonsense", &["database_url"]),
        stores(&redis.url(), "mysql://user:hunter2@127.0.0.1/x", &["database_url"]),
        stores(&redis.url(), "postgres://user:hunter2@127.0.0.1:port/x", &["database_url"]),
        // Somebody who accepts and never says a word.
        stores(&format!("redis://{silent}/"), database.url(), &["redis_url"]),
        stores(&redis.url(), &format!("postgres://{silent}/x"), &["database_url"]),
        // A database for Redis, and the other way round.
        stores(&redis.url(), &format!("postgres://{}/x", redis.address()), &["database_url"]),
    ];
    for start in &starts {
        let folder = Scratch::new();
        let mut program = program(&folder);
        for (name, value) in &start.environment {
            program = program.environment(name, value);
        }
        let ended = ending(program.start(&folder)).await;
        assert!(!ended.stderr.contains("hunter2"), "a password is shown: {ended:?}");
    }
    check_all(starts).await;
}

/// A server that speaks as much of Redis' protocol as a client needs to ask it for its version.
async fn pretend_to_be(info: &'static str) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            // A client that leaves ends its conversation, nothing else.
            tokio::spawn(converse(connection, info));
        }
    });
    address
}

/// Answers INFO with `info`, and everything else, such as CLIENT SETINFO, with OK.
async fn converse(mut connection: TcpStream, info: &str) -> std::io::Result<()> {
    let (reader, mut writer) = connection.split();
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let words: usize = line.trim().trim_start_matches('*').parse().unwrap_or(0);
        let mut command = Vec::new();
        for _ in 0..words {
            let mut length = String::new();
            reader.read_line(&mut length).await?;
            let length: usize = length.trim().trim_start_matches('$').parse().unwrap_or(0);
            let mut word = vec![0; length + 2];
            reader.read_exact(&mut word).await?;
            command.push(String::from_utf8_lossy(&word[..length]).to_ascii_uppercase());
        }
        let answer = match command.first().map(String::as_str) {
            Some("INFO") => format!("${}\r\n{info}\r\n", info.len()),
            _ => "+OK\r\n".to_owned(),
        };
        writer.write_all(answer.as_bytes()).await?;
    }
}

#[tokio::test]
async fn a_redis_that_is_too_old_or_part_of_a_cluster_is_refused() {
    let database = Postgres::shared().await.database().await;
    let old = pretend_to_be("redis_version:5.0.14\r\nredis_mode:standalone\r\n").await;
    let cluster = pretend_to_be("redis_version:7.0.15\r\nredis_mode:cluster\r\n").await;
    check_all(vec![
        stores(&format!("redis://{old}/"), database.url(), &["redis_url", "5.0.14", "6.2"]),
        stores(&format!("redis://{cluster}/"), database.url(), &["redis_url", "Cluster"]),
    ])
    .await;
}

#[tokio::test]
async fn help_and_version_are_printed_and_nothing_is_started() {
    for (flag, begins) in [("--version", "segstock "), ("-V", "segstock "), ("--help", ""), ("-h", "")] {
        let folder = Scratch::new();
        let ended = ending(program(&folder).argument(flag).start(&folder)).await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{flag}");
        assert!(ended.stdout.starts_with(begins) && ended.stdout.ends_with('\n'), "{ended:?}");
        assert!(!ended.stdout.contains('\u{1b}'), "colours are for terminals: {ended:?}");
        assert!(!folder.join("data").exists());
        if flag == "--help" {
            for setting in for_users() {
                let long = format!("--{}", setting.name.replace('_', "-"));
                assert!(ended.stdout.contains(&long), "{long}");
                assert!(ended.stdout.contains(setting.variable), "{}", setting.variable);
            }
        }
    }
}

#[tokio::test]
async fn a_flag_wins_over_a_variable_and_a_variable_over_the_file() {
    let folder = Scratch::new();
    let toml = file(&folder, "segstock.toml", "data_dir = \"from-file\"\n");
    let data = |name: &str| folder.join(name).join("segstock.db").exists();
    let base = || {
        Program::new(env!("CARGO_BIN_EXE_segstock"))
            .clear_environment("SEGSTOCK_")
            .environment("SEGSTOCK_LISTEN", "127.0.0.1:0")
            .environment("SEGSTOCK_CONFIG", &toml)
    };
    let variable = || base().environment("SEGSTOCK_DATA_DIR", "from-variable");
    let flag = || variable().arguments(["--data-dir", "from-flag"]);
    for (program, expected) in [(base(), "from-file"), (variable(), "from-variable"), (flag(), "from-flag")] {
        assert!(!data(expected));
        let process = program.start(&folder);
        let line = process.wait_for_line(|line| line.contains("listens").then_some(()), WITHIN);
        line.await.expect("it starts");
        assert!(data(expected), "{expected}");
    }
}

/// A public address is fine with a token.
#[tokio::test]
async fn with_a_token_any_address_may_be_listened_on() {
    let folder = Scratch::new();
    let process = program(&folder)
        .environment("SEGSTOCK_LISTEN", "0.0.0.0:0")
        .environment("SEGSTOCK_ADMIN_TOKEN", "0123456789abcdef")
        .start(&folder);
    let line = process.wait_for_line(|line| line.contains("0.0.0.0:").then_some(()), WITHIN);
    line.await.expect("it starts");
}

/// The settings that only tests need are not for documents.
fn for_users() -> impl Iterator<Item = &'static Documented> {
    DOCUMENTED.iter().filter(|it| !it.help.contains("For tests"))
}

#[test]
fn the_readme_lists_every_setting_with_its_default() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(&path).expect("there is a README.md");
    let mut wrong = Vec::new();
    for setting in for_users() {
        let (name, variable) = (format!("`{}`", setting.name), format!("`{}`", setting.variable));
        let row = readme.lines().find(|line| line.starts_with('|') && line.contains(&name) && line.contains(&variable));
        let Some(row) = row else {
            wrong.push(format!("no row with {name} and {variable}"));
            continue;
        };
        let default = setting.default.replace('_', "");
        let is_number = default.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && !row.split('|').any(|cell| cell.trim() == default) {
            wrong.push(format!("the default of {name} is {default}: {row}"));
        }
    }
    for (position, _) in readme.match_indices("`SEGSTOCK_") {
        let named = readme[position + 1..].split('`').next().unwrap_or_default();
        let known = DOCUMENTED.iter().any(|setting| setting.variable == named);
        if !known && named != "SEGSTOCK_CONFIG" {
            wrong.push(format!("{named} is no setting"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_refused_start_is_not_a_start() {
    // Seen through the harness that the other tests use: it reports, and leaves nothing running.
    let folder = Scratch::new();
    let failure = Instance::embedded(folder.path())
        .setting("SEGSTOCK_QUEUE_CAPACITY", "0")
        .try_start()
        .await
        .expect_err("the setting is out of range");
    assert_eq!(failure.code, Some(1));
    assert!(!folder.join("segstock.db").exists(), "nothing was opened");
}
