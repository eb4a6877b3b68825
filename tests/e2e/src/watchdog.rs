//! A shell that outlives the test by a moment: it kills what is left of a control plane and removes its folder.
//!
//! Nothing is left behind even when the test is killed with SIGKILL: then the pipe that the shell reads ends.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::error::Error;

const SCRIPT: &str = include_str!("watchdog.sh");

/// Lives as long as this value, or as the process that holds it.
#[derive(Debug)]
pub struct Watchdog {
    shell: Child,
    orders: Mutex<Option<ChildStdin>>,
}

impl Watchdog {
    /// Starts the shell. It removes `folder`, if one is given, when its work is done.
    pub fn start(folder: Option<&Path>) -> Result<Self, Error> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(SCRIPT).arg("watchdog").arg(folder.unwrap_or(Path::new("")));
        // Ctrl-C at a terminal goes to the group of the test, and this one has to outlive it
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut shell = command.spawn().map_err(Error::io("sh"))?;
        let orders = Mutex::new(shell.stdin.take());
        Ok(Self { shell, orders })
    }

    /// From now on the process is killed with the others.
    pub fn watch(&self, pid: u32) -> Result<(), Error> {
        self.order("watch", pid)
    }

    /// The process has ended; its number may become somebody else's.
    pub fn forget(&self, pid: u32) -> Result<(), Error> {
        self.order("forget", pid)
    }

    fn order(&self, verb: &str, pid: u32) -> Result<(), Error> {
        match &mut *self.orders.lock().unwrap_or_else(PoisonError::into_inner) {
            // one write of a few bytes to a pipe is whole or absent
            Some(pipe) => pipe.write_all(format!("{verb} {pid}\n").as_bytes()).map_err(Error::io("watchdog")),
            None => Ok(()),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.orders.lock().unwrap_or_else(PoisonError::into_inner).take());
        // nobody is left to tell
        let _ = self.shell.wait();
    }
}
