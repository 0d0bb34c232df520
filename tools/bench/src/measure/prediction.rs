//! Predictions: compares the cost model with the measured time of searches.

use std::time::{Duration, Instant};

use hamdex::inspect::Explanation;
use hamdex::plan::Costs;
use hamdex::{Index, Query, Reader, SearchPath};

use super::harness::percentile;
use super::{Job, Outcome, disk, print};
use crate::data;

pub(super) const NAME: &str = "hamdex, predictions";

/// Maximum number of searches for one figure.
const MOST: usize = 300;
/// Memory for resident tables in bytes, more than any size here needs.
const BUDGET: usize = 16 << 30;

type Predicted = fn(&Explanation<u64>) -> Option<Duration>;

/// The search paths, with the prediction for each.
const WAYS: [(&str, SearchPath, Predicted); 3] = [
    ("tables", SearchPath::Tables, |explained| Some(explained.predicted)),
    ("scan", SearchPath::Scan, |explained| Some(explained.predicted_scan)),
    ("resident", SearchPath::Resident, |explained| explained.predicted_resident),
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

/// Returns the costs of this machine, measured once for all sizes.
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
            let explain =
                |query: u64| reader.explain(Query::new(query).distance(distance).path(*path));
            // Predictions come first, which warms the caches for the timed searches.
            let end = Instant::now() + Duration::try_from_secs_f64(job.budget)?;
            let explained = queries.iter().take_while(|_| Instant::now() < end);
            let explained: Vec<_> =
                explained.map(|query| explain(*query)).collect::<Result<_, _>>()?;
            let mut expected: Vec<Duration> = explained.iter().filter_map(predicted).collect();
            // Times plain searches, because the counters of `explain` slow down the shortest ones.
            let search = |query: &u64| {
                let query = Query::new(*query).distance(distance).path(*path);
                let start = Instant::now();
                let found = reader.search(query)?;
                Ok((start.elapsed(), found))
            };
            let timed = queries.iter().take(explained.len()).map(search);
            let timed: Vec<_> = timed.collect::<hamdex::Result<_>>()?;
            let mut actual: Vec<Duration> = timed.into_iter().map(|(time, _)| time).collect();
            expected.sort_unstable();
            actual.sort_unstable();
            row.count = explained.len() as u64;
            row.add("predicted_us", percentile(&expected, 500));
            row.add("actual_us", percentile(&actual, 500));
            print(&row);
        }
    }
    Ok(())
}
