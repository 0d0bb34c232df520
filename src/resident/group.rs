//! Groups: queries of a batch that are searched together, although their routes differ.

use super::chain::Route;
use super::search::Hit;

/// Queries of a batch that are answered in the same way.
#[derive(Debug)]
pub(super) struct QueryGroup<'a, F> {
    places: Vec<usize>,
    pub(super) queries: Vec<F>,
    pub(super) routes: Vec<&'a Route>,
}

impl<F> Default for QueryGroup<'_, F> {
    fn default() -> Self {
        Self { places: Vec::new(), queries: Vec::new(), routes: Vec::new() }
    }
}

impl<'a, F> QueryGroup<'a, F> {
    pub(super) fn push(&mut self, place: usize, query: F, route: Option<&'a Route>) {
        self.places.push(place);
        self.queries.push(query);
        self.routes.extend(route);
    }

    /// Returns a hit with the index of its query in the batch.
    pub(super) fn in_place(&self, found: Hit<F>) -> Hit<F> {
        Hit { query: self.places[found.query], ..found }
    }
}
