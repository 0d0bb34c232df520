//! Warm searches on one thread: the spread of times at small and large distances.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use hamdex::{Index, IndexOptions, Query, SearchPath};

use crate::data::Random;
use crate::{Args, data, report};

pub(crate) fn run(dir: &Path, args: &Args) -> Result<(), Box<dyn Error>> {
    let options = IndexOptions::new().memory(args.memory << 20).read_only(true);
    let index = Index::<u64>::open_with(dir.join("index"), &options)?;
    let stored: Vec<u64> = data::read(&dir.join("fingerprints.u64"))?
        .step_by(usize::try_from(args.count / 5000).unwrap_or(1).max(1))
        .collect::<Result<_, _>>()?;
    let mut random = Random(args.seed ^ 0xabcd);
    for (distance, searches, near) in [
        (3, 20_000, false),
        (3, 20_000, true),
        (4, 5000, true),
        (6, 2000, true),
        (8, 1000, true),
        (10, 500, true),
        (12, 200, true),
        (16, 20, true),
    ] {
        let queries: Vec<u64> = (0..searches)
            .map(|n| match stored.get(n % stored.len().max(1)) {
                Some(&original) if near => random.flip(original, u64::from(distance)),
                _ => random.next(),
            })
            .collect();
        let mut found = 0;
        let mut times = Vec::with_capacity(queries.len());
        // The first pass warms the cache and is not counted.
        for (n, query) in queries.iter().chain(&queries).enumerate() {
            let start = Instant::now();
            let matches = index.search(Query::new(*query).distance(distance))?;
            if n >= queries.len() {
                times.push(start.elapsed());
                found += matches.len();
            }
        }
        let kind = if near { "near stored ones" } else { "random" };
        let name = format!("search, k = {distance}, {searches} queries {kind}, {found} matches");
        report::spread(&name, &mut times);
    }
    let mut times = Vec::new();
    for query in stored.iter().take(20) {
        let start = Instant::now();
        let query = Query::new(*query).distance(3);
        let scanned = index.search(query.clone().path(SearchPath::Scan))?;
        times.push(start.elapsed());
        assert_eq!(scanned, index.search(query)?, "tables and scan differ");
    }
    report::spread("search by scan", &mut times);
    let reader = index.reader()?;
    let queries: Vec<_> = (0..100_000)
        .map(|n| stored.get(n % stored.len().max(1)).copied().unwrap_or(0))
        .map(|near| Query::new(random.flip(near, 3)).distance(3))
        .collect();
    let start = Instant::now();
    reader.search_batch(&queries)?;
    report::rate("search_batch, k = 3, 100,000 queries near stored ones", 100_000, start.elapsed());
    let start = Instant::now();
    for query in &queries {
        reader.search(query.clone())?;
    }
    report::rate("the same, one by one on one thread", 100_000, start.elapsed());
    Ok(())
}
