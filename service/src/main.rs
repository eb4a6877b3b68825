//! The `suture` command.

use std::process::ExitCode;

use clap::Parser;
use suture_service::arguments::Arguments;
use suture_service::commands;

fn main() -> ExitCode {
    commands::run(Arguments::parse())
}
