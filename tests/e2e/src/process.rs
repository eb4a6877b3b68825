//! One program of the control plane as a child process: started, stopped, killed, paused, resumed, and started again.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, kill_process};

use crate::error::Error;
use crate::wait;
use crate::watchdog::Watchdog;

/// How long a program may take to end by itself; the API server finishes the requests that it has first.
const STOP_MAX: Duration = Duration::from_secs(10);

/// As much of a log as helps and fits a screen.
const LOG_TAIL_LINES: usize = 15;

/// Waits for a line before it becomes the program, so that the watchdog knows the process before it does anything. No line
/// comes when the test has died in between.
const GATE: &str = "read -r _ && exec \"$@\" </dev/null";

/// What to run.
#[derive(Debug, Clone)]
pub struct Program {
    /// What it is called in messages.
    pub name: String,
    /// Its executable.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its `HOME`, so that nothing of the user who runs the test is read or written.
    pub home: PathBuf,
    /// Where its output is kept; each start appends.
    pub log: PathBuf,
}

/// A program and its process, if it is up. Killed on drop.
#[derive(Debug)]
pub struct Process {
    program: Program,
    watchdog: Arc<Watchdog>,
    child: Mutex<Option<Child>>,
}

impl Process {
    /// A program that is still down.
    pub fn new(program: Program, watchdog: Arc<Watchdog>) -> Self {
        Self { program, watchdog, child: Mutex::new(None) }
    }

    /// Launches the program, for the first time or again with the same arguments.
    pub fn launch(&self) -> Result<(), Error> {
        let mut slot = self.lock();
        if self.running(&mut slot).is_ok() {
            return Err(self.is("up already"));
        }
        let Program { name, path, arguments, home, log } = &self.program;
        let opened = OpenOptions::new().create(true).append(true).open(log);
        let log = opened.map_err(Error::io(log.display().to_string()))?;
        let both = log.try_clone().map_err(Error::io(name.as_str()))?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(GATE).arg(name).arg(path).args(arguments).env("HOME", home);
        // a group of its own: Ctrl-C at a terminal must not reach it before the watchdog does
        command.process_group(0).stdin(Stdio::piped()).stdout(log).stderr(both);
        let mut child = command.spawn().map_err(Error::io(name.as_str()))?;
        let gate = child.stdin.take();
        let child = slot.insert(child);
        self.watchdog.watch(child.id())?;
        gate.map_or(Ok(()), |mut gate| gate.write_all(b"go\n")).map_err(Error::io(name.as_str()))
    }

    /// Asks the program to end, waits, and kills it if it does not.
    pub fn stop(&self) -> Result<(), Error> {
        let mut slot = self.lock();
        let child = self.running(&mut slot)?;
        self.signal(child, Signal::TERM)?;
        // a paused program would never hear of it
        self.signal(child, Signal::CONT)?;
        let ended = wait::until(&self.program.name, STOP_MAX, || match child.try_wait() {
            Ok(Some(_)) => Ok(()),
            _ => Err("still up".to_owned()),
        });
        if ended.is_err() {
            child.kill().map_err(Error::io(self.program.name.as_str()))?;
        }
        self.reap(&mut slot).map(drop)
    }

    /// Kills the program with SIGKILL.
    pub fn kill(&self) -> Result<(), Error> {
        let mut slot = self.lock();
        self.running(&mut slot)?.kill().map_err(Error::io(self.program.name.as_str()))?;
        self.reap(&mut slot).map(drop)
    }

    /// Freezes the program with SIGSTOP: its connections stay open and nothing answers.
    pub fn pause(&self) -> Result<(), Error> {
        self.signal(self.running(&mut self.lock())?, Signal::STOP)
    }

    /// Lets a paused program go on.
    pub fn resume(&self) -> Result<(), Error> {
        self.signal(self.running(&mut self.lock())?, Signal::CONT)
    }

    /// Fails if the program is down, and tells the end of its log if nobody but itself is to blame.
    pub fn check(&self) -> Result<(), Error> {
        self.running(&mut self.lock()).map(drop)
    }

    /// The number of its process, if it is up.
    pub fn pid(&self) -> Option<u32> {
        self.lock().as_ref().map(Child::id)
    }

    /// The memory that it has resident, in bytes, if it is up.
    pub fn resident_bytes(&self) -> Option<u64> {
        self.memory_bytes("VmRSS:")
    }

    /// The most memory that it had resident at any time, in bytes, if it is up.
    pub fn resident_max_bytes(&self) -> Option<u64> {
        self.memory_bytes("VmHWM:")
    }

    /// A line of proc_pid_status(5): `VmRSS:    1234 kB`.
    fn memory_bytes(&self, line: &str) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()?)).ok()?;
        let line = status.lines().find_map(|text| text.strip_prefix(line))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    }

    /// The seconds of processor time that it has had in user mode and in the kernel, all threads together, if it is up.
    pub fn processor_secs(&self) -> Option<[f64; 2]> {
        // proc_pid_stat(5): the name, which may contain anything, ends at the last parenthesis; utime and stime are the
        // 14th and 15th field, the state behind the name is the third
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid()?)).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut secs = || Some(fields.next()?.parse::<u64>().ok()? as f64 / clock_ticks_per_second() as f64);
        Some([secs()?, secs()?])
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.program.name
    }

    /// Where its output is kept.
    pub fn log(&self) -> &Path {
        &self.program.log
    }

    /// The child that is up. One that has ended by itself is reaped, so that its number is not used any more.
    fn running<'a>(&self, slot: &'a mut Option<Child>) -> Result<&'a mut Child, Error> {
        if matches!(slot.as_mut().map(Child::try_wait), Some(Ok(Some(_)))) {
            return Err(self.reap(slot)?.map_or_else(|| self.is("down"), |status| self.ended(status)));
        }
        slot.as_mut().ok_or_else(|| self.is("down"))
    }

    fn signal(&self, child: &Child, signal: Signal) -> Result<(), Error> {
        // the number is not somebody else's: it stays taken until the child is waited for
        let sent = kill_process(Pid::from_child(child), signal);
        sent.map_err(|code| Error::Io { doing: self.program.name.clone(), source: code.into() })
    }

    fn reap(&self, slot: &mut Option<Child>) -> Result<Option<ExitStatus>, Error> {
        let Some(mut child) = slot.take() else { return Ok(None) };
        let waited = child.wait().map_err(Error::io(self.program.name.as_str()));
        self.watchdog.forget(child.id())?;
        waited.map(Some)
    }

    fn ended(&self, status: ExitStatus) -> Error {
        let text = fs::read_to_string(&self.program.log).unwrap_or_default();
        let mut tail = VecDeque::with_capacity(LOG_TAIL_LINES);
        for line in text.lines() {
            if tail.len() == LOG_TAIL_LINES {
                tail.pop_front();
            }
            tail.push_back(line);
        }
        let log = Vec::from(tail).join("\n");
        Error::Ended { part: self.program.name.clone(), status: status.to_string(), log }
    }

    fn is(&self, state: &'static str) -> Error {
        Error::State { part: self.program.name.clone(), state }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // what is down already needs no killing, and nobody is left to tell
        let _ = self.kill();
    }
}
