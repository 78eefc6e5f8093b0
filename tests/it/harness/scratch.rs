//! Temporary folders, and the account that owns them.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User, geteuid};
use tempfile::TempDir;

/// Whom a program runs as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    pub(crate) user_id: u32,
    pub(crate) group_id: u32,
}

impl Account {
    /// Postgres refuses to run as root. `None` where the tests do not run as root, and the
    /// programs may simply run as the same user.
    pub(crate) fn instead_of_root() -> Option<Account> {
        if geteuid() != Uid::from_raw(0) {
            return None;
        }
        let user = ["postgres", "nobody"]
            .iter()
            .find_map(|name| User::from_name(name).ok().flatten())
            .expect("root needs a user `postgres` or `nobody` to run Postgres as");
        Some(Account { user_id: user.uid.as_raw(), group_id: user.gid.as_raw() })
    }
}

/// A temporary folder, removed with its handle.
#[derive(Debug)]
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch::in_folder(&std::env::temp_dir())
    }

    /// A folder that belongs to `account`, readable for nobody else.
    pub(crate) fn owned_by(account: Option<Account>) -> Scratch {
        let Some(account) = account else {
            return Scratch::new();
        };
        // Root's own TMPDIR may lie where nobody else may look.
        let scratch = Scratch::in_folder(Path::new("/tmp"));
        chown(scratch.path(), Some(account.user_id), Some(account.group_id)).expect("root may give its folders away");
        scratch
    }

    fn in_folder(folder: &Path) -> Scratch {
        // A short name: the path of a unix socket may have no more than 104 bytes on macOS.
        let folder = tempfile::Builder::new()
            .prefix("segstock-")
            .tempdir_in(folder)
            .expect("the folder for temporary files is writable");
        Scratch(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}
