//! Temporary folders, and the account that owns them.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User, geteuid};
use tempfile::TempDir;

use super::RigError;

/// Whom a program runs as.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    pub(super) user_id: u32,
    pub(super) group_id: u32,
}

impl Account {
    /// Postgres refuses to run as root. `None` for everybody but root, whose programs may simply run as the same user.
    pub(super) fn instead_of_root() -> Result<Option<Account>, RigError> {
        if geteuid() != Uid::from_raw(0) {
            return Ok(None);
        }
        let user = ["postgres", "nobody"]
            .iter()
            .find_map(|name| User::from_name(name).ok().flatten())
            .ok_or(RigError::NoAccount)?;
        Ok(Some(Account { user_id: user.uid.as_raw(), group_id: user.gid.as_raw() }))
    }
}

/// A temporary folder, removed with its handle.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    /// A new folder where the system keeps temporary files.
    pub fn new() -> Result<Scratch, RigError> {
        Scratch::in_folder(&std::env::temp_dir())
    }

    /// A folder that belongs to `account`, readable for nobody else.
    pub(super) fn owned_by(account: Option<Account>) -> Result<Scratch, RigError> {
        let Some(account) = account else {
            return Scratch::new();
        };
        // Root's own TMPDIR may lie where nobody else may look.
        let scratch = Scratch::in_folder(Path::new("/tmp"))?;
        chown(scratch.path(), Some(account.user_id), Some(account.group_id))
            .map_err(|error| RigError::Folder(scratch.path().to_owned(), error))?;
        Ok(scratch)
    }

    fn in_folder(folder: &Path) -> Result<Scratch, RigError> {
        // A short name: the path of a unix socket may have no more than 104 bytes on macOS.
        let created = tempfile::Builder::new().prefix("segstock-").tempdir_in(folder);
        created.map(Scratch).map_err(|error| RigError::Folder(folder.to_owned(), error))
    }

    /// Where the folder is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of something in the folder.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}
