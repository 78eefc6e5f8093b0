//! One run from its first connection to its report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};

use super::buyers::Buyers;
use super::connection::{Connection, Unreachable, host_of};
use super::cpu::CpuTime;
use super::proof::Proof;
use super::report::{Generator, Report};
use super::shop::Shop;
use super::tally::{Sold, Tally};
use super::worker::{self, Counts, Meaning, Times, read};
use crate::config::LoadOptions;

/// How often whoever watches is told how far the run is.
const PROGRESS_PERIOD: Duration = Duration::from_secs(1);
/// From the last connection's opening to the first order.
const HEAD_START: Duration = Duration::from_millis(20);
/// An order whose answer was lost is asked for again so often, from every service…
const ASK_AGAIN: usize = 20;
/// …with a pause in between.
const ASK_AGAIN_PAUSE: Duration = Duration::from_millis(250);
/// After so many orders that nobody tells the fate of, nobody will.
const GIVE_UP: usize = 5;

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Nobody answers.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// There is no such product.
    #[error("the service has no product {0}")]
    NoSuchProduct(String),
    /// The service answers what it should not.
    #[error("{call} was answered {status}: {body}")]
    Unexpected {
        /// The call.
        call: String,
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// The options contradict each other.
    #[error("{0}")]
    Options(String),
    /// A thread could not be started, or broke down.
    #[error("a thread of the generator ended: {0}")]
    Thread(String),
}

/// What happens during a run.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// From now on answers are measured.
    Measuring,
    /// From now on they are not.
    Measured,
    /// A second has passed.
    Progress(Progress),
}

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Since the first order.
    pub elapsed: Duration,
    /// The whole run, unless everything is sold out before.
    pub planned: Duration,
    /// Requests that got an order.
    pub placed: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Requests without a clear answer.
    pub failed: u64,
}

/// What a run leaves behind.
#[derive(Debug)]
pub struct Run {
    /// The measured figures.
    pub report: Report,
    /// All orders that were answered 201.
    pub sold: Vec<Sold>,
    /// What went wrong without regard to the service's books: answers that contradict each other, orders whose fate
    /// stayed unknown.
    pub faults: Vec<String>,
    /// Tells the keys of this run from all others; a later run that has it repeats this run's orders.
    pub name: String,
}

impl Run {
    /// Compares what was answered with the service's books; says whether the sale was right.
    pub async fn prove(&mut self, options: &LoadOptions, shop: &Shop) -> Result<bool, LoadError> {
        let mut proof = Proof::of(options, shop, &self.sold).await?;
        proof.faults.extend_from_slice(&self.faults);
        let holds = proof.holds();
        self.report.proof = Some(proof);
        Ok(holds)
    }
}

/// Loads the service, and measures. `earlier` is a run on the same products whose orders the retries repeat; without it
/// they repeat this run's own.
pub async fn run(
    options: &LoadOptions,
    shop: &Shop,
    earlier: Option<&Run>,
    watch: &mut (dyn FnMut(Event) + Send),
) -> Result<Run, LoadError> {
    let hosts = options.url.iter().map(|url| host_of(url)).collect::<Result<Vec<_>, _>>()?;
    let name = earlier.map_or_else(|| format!("{:016x}", rand::random::<u64>()), |earlier| earlier.name.clone());
    let earlier = earlier.map_or_else(Vec::new, |earlier| earlier.sold.clone());
    let workers = threads().min(options.connections);
    let run = Arc::new(worker::Run {
        buyers: Buyers::new(options, shop.skus.clone(), name.clone()).map_err(LoadError::Options)?,
        options: options.clone(),
        first_number: earlier.iter().map(|sold| sold.number + 1).max().unwrap_or(0),
        earlier,
        workers,
        counts: Counts::default(),
        sold_out: shop.skus.iter().map(|_| AtomicBool::new(false)).collect(),
        still_selling: AtomicUsize::new(shop.skus.len()),
        stop: AtomicBool::new(false),
    });

    let (start, started) = watch::channel(None);
    let (opened, mut all_opened) = mpsc::channel(workers);
    let mut threads = Vec::new();
    for position in 0..workers {
        let connections = (position..options.connections).step_by(workers);
        let hosts = connections.map(|number| number % hosts.len()).map(|service| (service, hosts[service].clone()));
        let hosts = hosts.collect();
        let (run, opened, started) = (Arc::clone(&run), opened.clone(), started.clone());
        threads.push(start_thread(move || worker::work(run, position, hosts, opened, started))?);
    }
    drop((opened, started));
    let mut ready = 0;
    while all_opened.recv().await.is_some() {
        ready += 1;
    }
    if ready < workers {
        drop(start);
        let tally = join(threads, (Instant::now(), Instant::now())).await;
        return Err(tally.err().unwrap_or_else(|| LoadError::Thread("no connection".to_owned())));
    }

    let begin = Instant::now() + HEAD_START;
    let measured_from = begin + Duration::from_secs_f64(options.warm_up);
    let times =
        Times { start: begin, measured: (measured_from, measured_from + Duration::from_secs_f64(options.duration)) };
    start.send_replace(Some(times));
    let cpu = follow(&run, &times, watch).await;
    let mut tally = join(threads, times.measured).await?;
    let faults = settle_doubts(&run, &hosts, &mut tally).await?;
    let generator = Generator::new(workers, cpu);
    let report = Report::new(options, &tally, &times, generator);
    Ok(Run { report, sold: tally.sold, faults, name })
}

/// Half of the cores: the other half is for the service, or for the network.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

type Thread = oneshot::Receiver<Result<Tally, Unreachable>>;

/// Runs a worker on a thread with a runtime of its own: nothing is shared but counters.
fn start_thread<W>(work: impl FnOnce() -> W + Send + 'static) -> Result<Thread, LoadError>
where
    W: Future<Output = Result<Tally, Unreachable>>,
{
    let failed = |error: std::io::Error| LoadError::Thread(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (done, tally) = oneshot::channel();
    let body = move || drop(done.send(runtime.block_on(work())));
    thread::Builder::new().name("load".to_owned()).spawn(body).map_err(failed)?;
    Ok(tally)
}

async fn join(threads: Vec<Thread>, measured: (Instant, Instant)) -> Result<Tally, LoadError> {
    let mut sum = Tally::new(measured);
    for thread in threads {
        sum.add(thread.await.map_err(|_| LoadError::Thread("it panicked".to_owned()))??);
    }
    Ok(sum)
}

/// Tells whoever watches what happens, until the measured time is over; returns the CPU time that it took per second.
async fn follow(run: &worker::Run, times: &Times, watch: &mut (dyn FnMut(Event) + Send)) -> f64 {
    let (from, to) = times.measured;
    let mut next_progress = times.start + PROGRESS_PERIOD;
    let mut began: Option<(Instant, CpuTime)> = None;
    let planned = to - times.start;
    loop {
        let now = Instant::now();
        if began.is_none() && now >= from {
            began = Some((now, CpuTime::of_this_process()));
            watch(Event::Measuring);
        }
        if now >= to || run.stop.load(Ordering::Relaxed) {
            break;
        }
        if now >= next_progress {
            next_progress += PROGRESS_PERIOD;
            let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            let counts = &run.counts;
            let (placed, refused, failed) = (count(&counts.placed), count(&counts.refused), count(&counts.failed));
            watch(Event::Progress(Progress { elapsed: now - times.start, planned, placed, refused, failed }));
        }
        let next = if began.is_none() { next_progress.min(from) } else { next_progress.min(to) };
        // A sale that may end before its time is looked at more often.
        let soon = now + if run.options.until_sold_out { Duration::from_millis(5) } else { PROGRESS_PERIOD };
        tokio::time::sleep_until(next.min(soon).into()).await;
    }
    let Some((began_at, began_with)) = began else {
        return 0.0;
    };
    let used = CpuTime::of_this_process().0.saturating_sub(began_with.0);
    watch(Event::Measured);
    used.as_secs_f64() / began_at.elapsed().as_secs_f64().max(f64::EPSILON)
}

/// Asks again, with the same key, for every order whose answer was lost; returns a fault for those that stay unknown.
async fn settle_doubts(run: &worker::Run, hosts: &[String], tally: &mut Tally) -> Result<Vec<String>, LoadError> {
    let mut faults = std::mem::take(&mut tally.wrong);
    let timeout = Duration::from_millis(run.options.timeout_ms);
    let mut connections: Vec<Connection> = hosts.iter().map(|host| Connection::closed(host, timeout)).collect();
    let mut unknown = 0;
    for number in std::mem::take(&mut tally.doubts) {
        let ask = run.buyers.ask(number);
        let mut fate = None;
        'asking: for _ in 0..ASK_AGAIN {
            for (connection, service) in connections.iter_mut().zip(0..) {
                let request = run.buyers.request(&ask, connection.host());
                let request = request.map_err(|error| LoadError::Options(error.to_string()))?;
                let read = read(connection.send(request).await);
                match read.meaning {
                    Meaning::Order { id, quantity, .. } => {
                        fate = Some(Some(Sold {
                            number,
                            id,
                            product: ask.product as u32,
                            service,
                            quantity,
                            at_us: u64::MAX,
                        }));
                        break 'asking;
                    }
                    // "Try again" is no fate: the request whose answer was lost may have placed the order.
                    Meaning::Refused if (400..500).contains(&read.outcome.status) => {
                        fate = Some(None);
                        break 'asking;
                    }
                    Meaning::Refused | Meaning::Unknown => {}
                }
            }
            tokio::time::sleep(ASK_AGAIN_PAUSE).await;
        }
        match fate {
            Some(sold) => tally.sold.extend(sold),
            None => unknown += 1,
        }
        if unknown >= GIVE_UP {
            break;
        }
    }
    if unknown > 0 {
        faults.push(format!("{unknown} orders or more stayed without a clear answer, even when asked for again"));
    }
    Ok(faults)
}
