//! The command line: reads settings, starts the service, stops it on a signal.

use std::io::Write;
use std::process::ExitCode;

use segstock::app::App;
use segstock::config::{self, Command, Settings};
use segstock::telemetry::logs;
use tokio::signal::unix::{SignalKind, signal};

/// Thousands of small allocations a second from many threads are what it is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let settings = match config::read(std::env::args_os(), std::env::vars_os()) {
        Ok(Command::Serve(settings)) => settings,
        Ok(Command::Print(text)) => return say(&mut std::io::stdout(), &text, ExitCode::SUCCESS),
        Err(error) => return fail(&error),
    };
    if let Err(problem) = logs::start(&settings.log, settings.log_format) {
        return fail(&config::BadSetting::new("log", problem));
    }
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(serve(&settings)),
        Err(error) => fail(&error),
    }
}

async fn serve(settings: &Settings) -> ExitCode {
    let app = match App::open(settings).await {
        Ok(app) => app,
        Err(error) => return fail(&error),
    };
    let (mut interrupt, mut terminate) = match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(interrupt), Ok(terminate)) => (interrupt, terminate),
        (Err(error), _) | (_, Err(error)) => return fail(&error),
    };
    say(&mut std::io::stdout(), &app.greeting(), ExitCode::SUCCESS);
    let stop = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    match app.run(stop).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    say(&mut std::io::stderr(), &format!("segstock: {error}\n"), ExitCode::FAILURE)
}

/// Writes a text; that nobody reads it is no reason to end differently.
fn say(to: &mut impl Write, text: &str, code: ExitCode) -> ExitCode {
    let _nobody_reads = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    code
}
