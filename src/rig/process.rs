//! Child processes that end with their handle, with a panic, and with this process, however it
//! ends. What the programs are is not known here.
//!
//! Nothing here is bound to an async runtime: output goes to files, and waiting is polling. A
//! process may so be shared by users that each have a runtime of their own.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::RigError;
use super::scratch::{Account, Scratch};

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How long a program may take to leave after its last signal before it is killed.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// A program to be started.
#[derive(Debug, Clone)]
pub struct Program {
    executable: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    cleared_prefix: Option<&'static str>,
    account: Option<Account>,
    last_signal: Signal,
}

impl Program {
    /// A program by its path, or by a name that is looked for where the shell looks.
    pub fn new(executable: impl Into<OsString>) -> Program {
        Program {
            executable: executable.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            cleared_prefix: None,
            account: None,
            last_signal: Signal::SIGKILL,
        }
    }

    /// Adds one word to the command line.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Program {
        self.arguments.push(argument.into());
        self
    }

    /// Adds words to the command line.
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Program {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable, over what is inherited and what was set before.
    pub fn environment(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Program {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Keeps variables that start with `prefix` from being inherited.
    pub fn clear_environment(mut self, prefix: &'static str) -> Program {
        self.cleared_prefix = Some(prefix);
        self
    }

    /// Starts the program as somebody else, which only root may do.
    pub(super) fn run_as(mut self, account: Option<Account>) -> Program {
        self.account = account;
        self
    }

    /// What ends the program when its handle is dropped. The default is `SIGKILL`, which also
    /// follows where another signal does not help.
    pub fn last_signal(mut self, signal: Signal) -> Program {
        self.last_signal = signal;
        self
    }

    /// Starts the program in `folder`, which gets its output and is removed should this process be
    /// killed. A program that does not exist ends with the code 127, as in any shell.
    pub fn start(&self, folder: &Scratch) -> Result<Supervised, RigError> {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let stdout = folder.join(&format!("{number}.stdout"));
        let stderr = folder.join(&format!("{number}.stderr"));

        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(include_str!("supervise.sh"))
            .arg("segstock-rig")
            .arg(folder.path())
            // `kill -s` wants the name without its prefix.
            .arg(self.last_signal.as_str().trim_start_matches("SIG"))
            .arg(&self.executable)
            .args(&self.arguments);
        if let Some(prefix) = self.cleared_prefix {
            for (name, _) in std::env::vars_os().filter(|(name, _)| starts_with(name, prefix)) {
                command.env_remove(name);
            }
        }
        command
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(folder.path())
            // An interrupt from the terminal is for this process alone; the watcher does the rest.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(create(&stdout)?)
            .stderr(create(&stderr)?);
        if let Some(account) = self.account {
            command.uid(account.user_id).gid(account.group_id);
        }

        let name = self.executable.to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|source| RigError::NotStarted { program: name.clone(), source })?;
        let watcher = child.stdin.take();
        Ok(Supervised {
            name,
            pid: Pid::from_raw(child.id().try_into().expect("process ids fit an i32")),
            last_signal: self.last_signal,
            state: Mutex::new(State { child, watcher }),
            stdout,
            stderr,
        })
    }
}

/// The folders in which a program is looked for that has a name only.
pub(super) fn search_path() -> Vec<PathBuf> {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search_path).collect()
}

fn create(path: &Path) -> Result<File, RigError> {
    File::create(path).map_err(|error| RigError::Folder(path.to_owned(), error))
}

fn starts_with(name: &OsStr, prefix: &str) -> bool {
    name.as_encoded_bytes().starts_with(prefix.as_bytes())
}

/// A running child process. Dropping it ends the process and waits until it is gone.
#[derive(Debug)]
pub struct Supervised {
    name: String,
    pid: Pid,
    last_signal: Signal,
    state: Mutex<State>,
    stdout: PathBuf,
    stderr: PathBuf,
}

#[derive(Debug)]
struct State {
    child: Child,
    /// Our end of the watcher's pipe, until the process is known to have ended.
    watcher: Option<ChildStdin>,
}

/// Why [`Supervised::wait_for_line`] found no line.
#[derive(Debug, thiserror::Error)]
pub enum NoLine {
    /// The process has ended, and it was not in what it printed.
    #[error("it ended with {0}")]
    Exited(ExitStatus),
    /// The process runs, and has not printed it in time.
    #[error("it did not say so in time")]
    Deadline,
}

impl Supervised {
    /// The process id, also after the end: it may be somebody else's then.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends a signal, unless the process has ended.
    pub fn signal(&self, signal: Signal) {
        self.state().signal(self.pid, signal);
    }

    /// Sends a signal to the process and then to its children. A process that is stopped first
    /// starts no more children meanwhile.
    pub fn signal_family(&self, signal: Signal) {
        let mut state = self.state();
        state.signal(self.pid, signal);
        for child in children_of(self.pid) {
            // It may have ended since.
            let _ = kill(child, signal);
        }
    }

    /// `None` while the process runs. A death by signal is a status without a code.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.state().exit_status()
    }

    /// Waits until the process has ended by itself or by a signal sent before.
    pub async fn wait_exit(&self, within: Duration) -> Result<ExitStatus, RigError> {
        let status = self.exit_within(within).await;
        status.ok_or_else(|| RigError::StillRuns { program: self.name.clone(), within, logs: self.logs() })
    }

    /// Like [`Supervised::wait_exit`], with `None` at the deadline.
    pub async fn exit_within(&self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            let status = self.exit_status();
            if status.is_some() || Instant::now() > deadline {
                return status;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits for a line on standard output, earlier ones included, that `pick` makes something of.
    pub async fn wait_for_line<T>(
        &self,
        mut pick: impl FnMut(&str) -> Option<T>,
        within: Duration,
    ) -> Result<T, NoLine> {
        let deadline = Instant::now() + within;
        loop {
            // Asked first: what was written before the end is in the file now.
            let exited = self.exit_status();
            let output = self.stdout();
            let complete = match exited {
                Some(_) => output.as_str(),
                None => output.rfind('\n').map_or("", |end| &output[..end]),
            };
            if let Some(found) = complete.lines().find_map(&mut pick) {
                return Ok(found);
            }
            if let Some(status) = exited {
                return Err(NoLine::Exited(status));
            }
            if Instant::now() > deadline {
                return Err(NoLine::Deadline);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until `answers` says that the process, a server, can be talked to.
    pub(super) async fn wait_until_it_answers<Answers>(
        &self,
        within: Duration,
        mut answers: impl FnMut() -> Answers,
    ) -> Result<(), RigError>
    where
        Answers: Future<Output = bool>,
    {
        let deadline = Instant::now() + within;
        while !answers().await {
            if let Some(status) = self.exit_status() {
                return Err(self.ended(status));
            }
            if Instant::now() > deadline {
                return Err(RigError::NoAnswer { program: self.name.clone(), within, logs: self.logs() });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// That the process has ended like this is an error.
    pub(super) fn ended(&self, status: ExitStatus) -> RigError {
        RigError::Ended { program: self.name.clone(), status, logs: self.logs() }
    }

    /// Standard output so far.
    pub fn stdout(&self) -> String {
        read_text(&self.stdout)
    }

    /// Standard error so far.
    pub fn stderr(&self) -> String {
        read_text(&self.stderr)
    }

    /// Both outputs so far, for the message of a failure.
    pub fn logs(&self) -> String {
        format!("--- stdout of {name}\n{}\n--- stderr of {name}\n{}", self.stdout(), self.stderr(), name = self.name,)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if self.exit_status().is_some() {
            return;
        }
        let mut state = self.state();
        let family = children_of(self.pid);
        // What is stopped hears nothing but SIGKILL.
        for process in family.iter().chain([&self.pid]) {
            let _ = kill(*process, Signal::SIGCONT);
        }
        state.signal(self.pid, self.last_signal);
        let deadline = Instant::now() + LEAVE_WITHIN;
        while state.exit_status().is_none() {
            if Instant::now() > deadline {
                for process in family.iter().chain([&self.pid]) {
                    let _ = kill(*process, Signal::SIGKILL);
                }
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl State {
    fn exit_status(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().expect("it is our child");
        if status.is_some()
            && let Some(mut watcher) = self.watcher.take()
        {
            // From now on the process id may belong to someone else. The watcher may be gone too.
            let _ = watcher.write_all(b"over\n");
        }
        status
    }

    fn signal(&mut self, pid: Pid, signal: Signal) {
        // Nobody else gets the process id before we have taken the exit status.
        if self.exit_status().is_none() {
            kill(pid, signal).expect("we may signal our child");
        }
    }
}

fn children_of(parent: Pid) -> Vec<Pid> {
    // Linux tells directly, and a small container may have no `ps`.
    if let Ok(children) = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")) {
        return children.split_whitespace().filter_map(parse_process_id).collect();
    }
    let Ok(listing) = Command::new("ps").args(["-A", "-o", "ppid=", "-o", "pid="]).output() else {
        return Vec::new();
    };
    String::from_utf8_lossy(&listing.stdout)
        .lines()
        .filter_map(|line| {
            let (its_parent, child) = line.trim().split_once(char::is_whitespace)?;
            (parse_process_id(its_parent)? == parent).then(|| parse_process_id(child.trim()))?
        })
        .collect()
}

fn parse_process_id(text: &str) -> Option<Pid> {
    text.parse().ok().map(Pid::from_raw)
}

fn read_text(path: &Path) -> String {
    fs::read(path).map_or_else(|failure| format!("({failure})"), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}
