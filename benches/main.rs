//! Benchmarks of the engine's parts, in one program, since each would compile the engine again.
//!
//! `cargo bench --bench engine -- resident` runs those whose names have that word.

mod join;
mod kernel;
mod plan;
mod resident;

criterion::criterion_main!(join::benches, kernel::benches, plan::benches, resident::benches);
