//! Self-join of fingerprints in memory.

use std::error::Error;
use std::time::Instant;

use hamdex::join;

use crate::{Args, data, report};

pub(crate) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let fingerprints = data::mixed(args.seed, args.join_count);
    for distance in [0, 3, 6, 8] {
        let start = Instant::now();
        let pairs = join::self_join(&fingerprints, distance, &(), &|_| Ok(()))?.pairs;
        let name = format!("self-join, k = {distance}, {pairs} pairs");
        report::rate(&name, args.join_count, start.elapsed());
    }
    let start = Instant::now();
    join::clusters(&fingerprints, 3, &())?;
    report::rate("clusters, k = 3", args.join_count, start.elapsed());
    Ok(())
}
