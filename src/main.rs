//! The program: TLS gets its cryptography, then the command line decides.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Fails only where one is installed already, and then there is one.
    drop(rustls::crypto::ring::default_provider().install_default());
    tambour::cli::run()
}
