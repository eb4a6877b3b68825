//! The `suture` command.

use std::process::ExitCode;

use clap::Parser;
use suture_service::arguments::Arguments;
use suture_service::commands;

/// See the manifest for the reason.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    commands::run(Arguments::parse())
}
