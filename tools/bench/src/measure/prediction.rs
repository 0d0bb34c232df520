//! Predictions: what the cost model expects of a search beside what the search takes.

use std::time::{Duration, Instant};

use hamdex::inspect::Explanation;
use hamdex::plan::Costs;
use hamdex::{Index, Query, Reader, SearchPath};

use super::harness::percentile;
use super::{Job, Outcome, disk, print};
use crate::data;

pub(super) const NAME: &str = "hamdex, predictions";

/// Searches at most for one figure.
const MOST: usize = 300;
/// Bytes for the tables in memory; more than any size here takes.
const BUDGET: usize = 16 << 30;

type Predicted = fn(&Explanation<u64>) -> Option<Duration>;

/// The ways of a search, with what is expected of each.
const WAYS: [(&str, SearchPath, Predicted); 3] = [
    ("tables", SearchPath::Tables, |told| Some(told.predicted)),
    ("scan", SearchPath::Scan, |told| Some(told.predicted_scan)),
    ("resident", SearchPath::Resident, |told| told.predicted_resident),
];

pub(super) fn run(job: &Job) -> Outcome<()> {
    let directory = disk::ensure(job, &job.fingerprints()?)?;
    let options = disk::options(&directory)?.costs(costs(job)?);
    let queries = data::read_some(&job.queries.join("random.u64"), MOST)?;
    let index = Index::<u64>::open_with(&directory, &options)?;
    let stored = index.reader()?;
    ways(job, &stored, &queries, &["tables", "scan"])?;
    drop((stored, index));
    let index = Index::<u64>::open_with(&directory, &options.resident(BUDGET))?;
    ways(job, &index.reader()?, &queries, &["resident"])
}

/// Prices of this machine, measured once for all sizes.
fn costs(job: &Job) -> Outcome<Costs> {
    let file = job.dir.join("costs");
    if let Ok(text) = std::fs::read_to_string(&file) {
        return Ok(text.parse()?);
    }
    let costs = hamdex::inspect::calibrate(&job.dir, &())?;
    std::fs::write(&file, costs.to_string())?;
    Ok(costs)
}

fn ways(job: &Job, reader: &Reader<u64>, queries: &[u64], names: &[&str]) -> Outcome<()> {
    for &distance in job.distances.iter().filter(|k| **k <= 16) {
        for (name, path, predicted) in WAYS.iter().filter(|way| names.contains(&way.0)) {
            let mut row = job.row("prediction");
            (row.k, row.kind) = (Some(distance.into()), (*name).into());
            let ask = |query: u64| reader.explain(Query::new(query).distance(distance).path(*path));
            // What is expected is asked for first, which warms the caches for what is timed.
            let end = Instant::now() + Duration::try_from_secs_f64(job.budget)?;
            let told = queries.iter().take_while(|_| Instant::now() < end);
            let told: Vec<_> = told.map(|query| ask(*query)).collect::<Result<_, _>>()?;
            let mut expected: Vec<Duration> = told.iter().filter_map(predicted).collect();
            // Counting what is read would be a part of the shortest searches' time.
            let search = |query: &u64| {
                let query = Query::new(*query).distance(distance).path(*path);
                let start = Instant::now();
                let found = reader.search(query)?;
                Ok((start.elapsed(), found))
            };
            let timed = queries.iter().take(told.len()).map(search);
            let timed: Vec<_> = timed.collect::<hamdex::Result<_>>()?;
            let mut actual: Vec<Duration> = timed.into_iter().map(|(time, _)| time).collect();
            expected.sort_unstable();
            actual.sort_unstable();
            row.count = told.len() as u64;
            row.add("predicted_us", percentile(&expected, 500));
            row.add("actual_us", percentile(&actual, 500));
            print(&row);
        }
    }
    Ok(())
}
