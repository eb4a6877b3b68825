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
        allocators::set();
    }
    commands::run(arguments)
}

/// Memory that threads leave behind: each of the two allocators keeps for a thread what it ever took, so that threads which
/// end one after the other leave as much behind as all of them together.
#[cfg(all(feature = "serve", target_env = "gnu"))]
mod allocators {
    use std::env;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// What both allocators read when a process starts, unless somebody has said otherwise. The C library's, which Z3 uses
    /// (`mallopt(3)`): one arena for all threads. mimalloc's (`mi_option_t`): what a thread frees and what it leaves when it
    /// ends goes back to the system at once, and is taken over by the next thread that frees some of it.
    const SETTINGS: [(&str, &str); 4] = [
        ("MALLOC_ARENA_MAX", "1"),
        ("MIMALLOC_PURGE_DELAY", "0"),
        ("MIMALLOC_ABANDONED_PAGE_PURGE", "1"),
        ("MIMALLOC_ABANDONED_RECLAIM_ON_FREE", "1"),
    ];

    /// Starts the program again, in this process, with the settings that nobody made. Where that cannot be done it goes on
    /// without.
    pub fn set() {
        let Ok(program) = env::current_exe() else { return };
        let mut arguments = env::args_os();
        let name = arguments.next();
        let missing: Vec<_> = SETTINGS.into_iter().filter(|(setting, _)| env::var_os(setting).is_none()).collect();
        if !missing.is_empty() {
            let mut again = Command::new(&program);
            again.arg0(name.unwrap_or_else(|| program.into_os_string())).args(arguments).envs(missing);
            // comes back only where it fails
            _ = again.exec();
        }
    }
}
