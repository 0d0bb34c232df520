//! Benchmarks of the engine's parts, in one program, so that the engine is compiled once.
//!
//! `cargo bench --bench engine -- resident` runs those with that word in their name.

mod join;
mod kernel;
mod plan;
mod resident;

criterion::criterion_main!(join::benches, kernel::benches, plan::benches, resident::benches);
