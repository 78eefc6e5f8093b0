//! Temporary folders.

use std::ops::Deref;

use segstock::rig::scratch;

use super::or_panic;

/// A temporary folder, removed with its handle.
#[derive(Debug)]
pub(crate) struct Scratch(scratch::Scratch);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch(or_panic(scratch::Scratch::new()))
    }
}

impl Deref for Scratch {
    type Target = scratch::Scratch;

    fn deref(&self) -> &scratch::Scratch {
        &self.0
    }
}
