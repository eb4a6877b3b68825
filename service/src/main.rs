//! The `suture` command.

use std::process::ExitCode;

use suture_service::arguments::Arguments;
use suture_service::commands;

/// See the manifest for the reason.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::of_process();
    #[cfg(all(feature = "serve", target_env = "gnu"))]
    if matches!(arguments.command, suture_service::arguments::Command::Serve(_)) {
        arenas::share();
    }
    commands::run(arguments)
}

/// Memory of the C library, which Z3 takes: it gives each thread an arena of its own, and keeps what one ever took, so that
/// threads which end one after the other leave as much behind as all their contexts together.
#[cfg(all(feature = "serve", target_env = "gnu"))]
mod arenas {
    use std::env;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// How many there are at most (`mallopt(3)`); read when a process starts.
    const MAX: &str = "MALLOC_ARENA_MAX";

    /// Starts the program again, in this process, with one arena for all threads, unless somebody has said how many. Where
    /// that cannot be done it goes on with many.
    pub fn share() {
        let Ok(program) = env::current_exe() else { return };
        let mut arguments = env::args_os();
        let name = arguments.next();
        if env::var_os(MAX).is_none() {
            let mut again = Command::new(&program);
            again.arg0(name.unwrap_or_else(|| program.into_os_string())).args(arguments).env(MAX, "1");
            // comes back only where it fails
            _ = again.exec();
        }
    }
}
