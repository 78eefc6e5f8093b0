//! The command line: does what was asked for, and says how it went.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use segstock::app::App;
use segstock::bench;
use segstock::config::{self, BadSetting, BenchOnly, BenchOptions, Command, LoadOptions, Settings};
use segstock::load::{self, Event, Progress, Shop};
use segstock::telemetry::logs;
use tokio::signal::unix::{SignalKind, signal};

/// Thousands of small allocations a second from many threads are what it is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    raise_file_limit();
    let done = config::read(std::env::args_os(), std::env::vars_os()).map_err(Into::into).and_then(execute);
    match done {
        Ok(code) => code,
        Err(error) => {
            say(&mut std::io::stderr(), &format!("segstock: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

/// A connection is an open file, and many systems allow a thousand unless a program asks for more. Where even that is
/// refused, the limit stays as it is, and whoever meets it says so.
fn raise_file_limit() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _as_it_was = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

fn execute(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Print(text) => say(&mut std::io::stdout(), &text),
        Command::Serve(settings) => return run(serve(&settings, None)),
        Command::BenchServe(settings, only) => return run(serve(&settings, Some(only))),
        Command::Load(options) => return run(load(&options)),
        Command::Bench(options) => return run(bench(&options)),
    }
    Ok(ExitCode::SUCCESS)
}

fn run(work: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    tokio::runtime::Runtime::new()?.block_on(work)
}

async fn serve(settings: &Settings, bench_only: Option<BenchOnly>) -> Result<ExitCode, Failure> {
    logs::start(&settings.log, settings.log_format).map_err(|problem| BadSetting::new("log", problem))?;
    let app = App::open(settings, bench_only).await?;
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    say(&mut std::io::stdout(), &app.greeting());
    let stop = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    app.run(stop).await?;
    Ok(ExitCode::SUCCESS)
}

async fn load(options: &LoadOptions) -> Result<ExitCode, Failure> {
    let shop = Shop::open(options).await?;
    let mut watch = |event: Event| {
        if let Event::Progress(progress) = event {
            show(&progress);
        }
    };
    let mut run = load::run(options, &shop, None, &mut watch).await?;
    say(&mut std::io::stderr(), "\nproving the sale …\n");
    let holds = run.prove(options, &shop).await?;
    if let Some(file) = &options.json {
        write_json(file, &serde_json::to_string_pretty(&run.report)?)?;
    }
    if options.json.as_deref() != Some(Path::new("-")) {
        say(&mut std::io::stdout(), &run.report.table());
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn bench(options: &BenchOptions) -> Result<ExitCode, Failure> {
    let mut say_what = |what: &str| say(&mut std::io::stderr(), &format!("{what} …\n"));
    let results = bench::run(options, &mut say_what).await?;
    write_json(&options.json, &serde_json::to_string_pretty(&results)?)?;
    if let Some(folder) = &options.report {
        let page = folder.join("index.html");
        std::fs::create_dir_all(folder).map_err(|error| format!("{} cannot be created: {error}", folder.display()))?;
        write(&page, &bench::report::page(&results))?;
    }
    say(&mut std::io::stdout(), &bench::table::table(&results));
    Ok(ExitCode::SUCCESS)
}

/// On a terminal the line stays where it is; in a file every second has its own.
fn show(progress: &Progress) {
    let Progress { elapsed, planned, placed, refused, failed } = *progress;
    let (elapsed, planned) = (elapsed.as_secs_f64(), planned.as_secs_f64());
    let line = format!("{elapsed:>5.0} of {planned:.0} s: {placed} placed, {refused} refused, {failed} failed");
    let line = if std::io::stderr().is_terminal() { format!("\r{line}  ") } else { format!("{line}\n") };
    say(&mut std::io::stderr(), &line);
}

fn write_json(file: &Path, text: &str) -> Result<(), Failure> {
    if file == Path::new("-") {
        say(&mut std::io::stdout(), &format!("{text}\n"));
        return Ok(());
    }
    write(file, text)
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| format!("{} cannot be written: {error}", file.display()).into())
}

/// Writes a text; that nobody reads it is no reason to end differently.
fn say(to: &mut impl Write, text: &str) {
    let _nobody_reads = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}
