//! The program `hamdex`; all of it is in the library, which the Python package calls too.

use std::process::ExitCode;

fn main() -> ExitCode {
    hamdex_cli::main()
}
