//! The program `hamdex`; all of it is in the library, which the Python package calls too.

use std::process::ExitCode;

// Its `malloc` is that of the whole program.
#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
use tikv_jemallocator as _;

fn main() -> ExitCode {
    hamdex_cli::main()
}
