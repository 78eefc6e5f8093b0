//! One segstock process and the calls a test makes to it.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::process::{NoLine, Program, Supervised};
use super::scratch::Scratch;

const START_WITHIN: Duration = Duration::from_secs(30);

const STOP_WITHIN: Duration = Duration::from_secs(30);

/// Far beyond every deadline of the service: a request that takes this long is a failed test.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// A running segstock, ended with its handle.
#[derive(Debug)]
pub(crate) struct Instance {
    // Before the folder it writes to: fields are dropped in this order.
    process: Supervised,
    /// `http://127.0.0.1:PORT`.
    origin: String,
    client: reqwest::Client,
    folder: Scratch,
}

/// What the service answered. A body that is no JSON is a JSON string here, no body is null.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// The settings of an instance to be started.
#[derive(Debug, Clone)]
pub(crate) struct InstanceBuilder {
    settings: Vec<(OsString, OsString)>,
}

/// How a start failed. The code is `None` after a death by signal.
#[derive(Debug)]
pub(crate) struct StartFailure {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    pub(crate) stdout: String,
}

impl InstanceBuilder {
    /// Sets an environment variable, over what was set before.
    pub(crate) fn setting(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> InstanceBuilder {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Starts the service and waits for the address it listens on.
    pub(crate) async fn start(self) -> Instance {
        match self.try_start().await {
            Ok(instance) => instance,
            Err(failure) => panic!(
                "segstock did not start, exit code {:?}\n--- stdout\n{}\n--- stderr\n{}",
                failure.code, failure.stdout, failure.stderr
            ),
        }
    }

    /// Like [`InstanceBuilder::start`], for settings that the service should refuse.
    pub(crate) async fn try_start(self) -> Result<Instance, StartFailure> {
        let folder = Scratch::new();
        // Started in that folder, so that no settings file and no data lie about.
        let mut program = Program::new(env!("CARGO_BIN_EXE_segstock"))
            .clear_environment("SEGSTOCK_")
            .environment("SEGSTOCK_LISTEN", "127.0.0.1:0");
        for (name, value) in self.settings {
            program = program.environment(name, value);
        }
        let process = program.start(&folder);
        match process.wait_for_line(find_origin, START_WITHIN).await {
            Ok(origin) => Ok(Instance { process, origin, client: client(), folder }),
            Err(NoLine::Exited(status)) => {
                Err(StartFailure { code: status.code(), stderr: process.stderr(), stdout: process.stdout() })
            }
            Err(NoLine::Deadline) => panic!("segstock printed no address within {START_WITHIN:?}\n{}", process.logs()),
        }
    }
}

impl Instance {
    pub(crate) fn with_stores(redis_url: &str, database_url: &str) -> InstanceBuilder {
        InstanceBuilder { settings: Vec::new() }
            .setting("SEGSTOCK_REDIS_URL", redis_url)
            .setting("SEGSTOCK_DATABASE_URL", database_url)
    }

    /// Without Redis and Postgres.
    pub(crate) fn embedded(data_folder: &Path) -> InstanceBuilder {
        InstanceBuilder { settings: Vec::new() }.setting("SEGSTOCK_DATA_DIR", data_folder)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// A connection, for those who speak HTTP by hand.
    pub(crate) async fn connect(&self) -> TcpStream {
        let address = self.origin.strip_prefix("http://");
        TcpStream::connect(address.expect("an HTTP address")).await.expect("it listens")
    }

    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Sends what a test has put together by itself, with the instance's client and URLs.
    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let answer = self.try_send(request).await;
        answer.unwrap_or_else(|failure| panic!("{failure:?}\n{}", self.logs()))
    }

    /// Like [`Instance::send`], for a request that may fail on the way.
    pub(crate) async fn try_send(&self, request: reqwest::RequestBuilder) -> reqwest::Result<Answer> {
        answer_to(request).await
    }

    /// An order may fail on the way, when a test breaks things: the caller decides.
    pub(crate) async fn post_order(&self, body: &Value, idempotency_key: Option<&str>) -> reqwest::Result<Answer> {
        let mut request = self.client.post(self.url("/orders")).json(body);
        if let Some(key) = idempotency_key {
            request = request.header("Idempotency-Key", key);
        }
        answer_to(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.client.get(self.url(path))).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.client.post(self.url(path)).json(body)).await
    }

    pub(crate) async fn create_product(&self, sku: &str, stock: u64, segments: u32) -> Answer {
        let product = json!({"sku": sku, "name": sku, "stock": stock, "segments": segments});
        let answer = self.post("/products", &product).await;
        assert_eq!(answer.status, 201, "{answer:?}\n{}", self.logs());
        answer
    }

    /// Ends the process as a crash does.
    pub(crate) async fn kill_nine(&self) {
        self.process.signal(Signal::SIGKILL);
        self.wait_exit(STOP_WITHIN).await;
    }

    /// Asks the process to end, and returns its exit code: `None` after a death by signal.
    pub(crate) async fn stop_gracefully(&self) -> Option<i32> {
        self.process.signal(Signal::SIGTERM);
        self.wait_exit(STOP_WITHIN).await.code()
    }

    /// Makes the process hang, as a long stop of its machine does.
    pub(crate) fn pause(&self) {
        self.process.signal(Signal::SIGSTOP);
    }

    pub(crate) fn resume(&self) {
        self.process.signal(Signal::SIGCONT);
    }

    pub(crate) async fn wait_exit(&self, within: Duration) -> ExitStatus {
        self.process.wait_exit(within).await
    }

    /// What the process has printed on standard output so far.
    pub(crate) fn stdout(&self) -> String {
        self.process.stdout()
    }

    /// What the process has printed on standard error so far.
    pub(crate) fn stderr(&self) -> String {
        self.process.stderr()
    }

    /// What the process has printed so far.
    pub(crate) fn logs(&self) -> String {
        self.process.logs()
    }
}

/// The address in a line such as `listening on http://127.0.0.1:8080`.
fn find_origin(line: &str) -> Option<String> {
    const START: &str = "http://127.0.0.1:";
    let (_, rest) = line.split_once(START)?;
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!port.is_empty()).then(|| format!("{START}{port}"))
}

fn client() -> reqwest::Client {
    reqwest::Client::builder()
        // Loopback, whatever the environment says about proxies.
        .no_proxy()
        .pool_max_idle_per_host(1024)
        .timeout(ANSWER_WITHIN)
        .build()
        .expect("a client without special wishes")
}

async fn answer_to(request: reqwest::RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let text = response.text().await?;
    let body = match text.as_str() {
        "" => Value::Null,
        json => serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.to_owned())),
    };
    Ok(Answer { status, headers, body })
}
