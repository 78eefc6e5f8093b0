//! Child processes that end with their handle, with a panic, and with the test binary, however it
//! ends.

use std::ffi::OsString;
use std::ops::Deref;
use std::process::ExitStatus;
use std::time::Duration;

pub(crate) use segstock::rig::process::NoLine;

use segstock::rig::process;

use super::or_panic;
use super::scratch::Scratch;

/// A program to be started.
#[derive(Debug, Clone)]
pub(crate) struct Program(process::Program);

impl Program {
    pub(crate) fn new(executable: impl Into<OsString>) -> Program {
        Program(process::Program::new(executable))
    }

    pub(crate) fn argument(self, argument: impl Into<OsString>) -> Program {
        Program(self.0.argument(argument))
    }

    pub(crate) fn arguments(self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Program {
        Program(self.0.arguments(arguments))
    }

    pub(crate) fn environment(self, name: impl Into<OsString>, value: impl Into<OsString>) -> Program {
        Program(self.0.environment(name, value))
    }

    /// Keeps variables that start with `prefix` from being inherited.
    pub(crate) fn clear_environment(self, prefix: &'static str) -> Program {
        Program(self.0.clear_environment(prefix))
    }

    /// Starts the program in `folder`, which gets its output and is removed should the test binary
    /// be killed.
    pub(crate) fn start(&self, folder: &Scratch) -> Supervised {
        Supervised(or_panic(self.0.start(folder)))
    }
}

/// A running child process. Dropping it ends the process and waits until it is gone.
#[derive(Debug)]
pub(crate) struct Supervised(process::Supervised);

impl Supervised {
    /// Waits until the process has ended by itself or by a signal sent before.
    pub(crate) async fn wait_exit(&self, within: Duration) -> ExitStatus {
        or_panic(self.0.wait_exit(within).await)
    }
}

impl Deref for Supervised {
    type Target = process::Supervised;

    fn deref(&self) -> &process::Supervised {
        &self.0
    }
}
