//! Operations: a sequence of calls on a small index, compared with a sorted map and a linear scan.

use std::collections::BTreeMap;
use std::path::Path;

use hamdex::plan::Plan;
use hamdex::{Durability, Error, Index, IndexOptions, Query, SearchPath};

/// Number of keys: few, so that calls replace and remove stored ones.
const KEYS: u8 = 24;

/// Maximum number of calls; more find nothing else.
const CALLS: usize = 200;

const MEMORY: usize = 16 << 20;

struct Run<'a> {
    path: &'a Path,
    index: Option<Index<u64>>,
    model: BTreeMap<Vec<u8>, u64>,
    rest: &'a [u8],
}

/// Makes the calls encoded in the bytes, and checks each result and the final index.
pub fn operations(bytes: &[u8]) {
    let [plan, rest @ ..] = bytes else { return };
    let place = Some(Path::new("/dev/shm")).filter(|place| place.is_dir());
    let directory = place.map_or_else(tempfile::tempdir, tempfile::tempdir_in);
    let directory = directory.expect("a directory for an index");
    let path = directory.path().join("index");
    let plan = ["4", "10", "6x2", "4x1/4x1", "4x1r2", "2x1"][usize::from(plan % 6)];
    let plan = Plan::parse(plan, 64, 3, None).expect("a plan for distance 3");
    let options = IndexOptions::new().plan(plan).memory(MEMORY);
    let index = Index::create(&path, &options).expect("a new index");
    let mut run = Run { path: &path, index: Some(index), model: BTreeMap::new(), rest };
    for _ in 0..CALLS {
        if run.rest.is_empty() {
            break;
        }
        run.call();
    }
    run.reopen(false);
    run.compare();
}

impl Run<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.byte() % KEYS;
        // Keys of different lengths, each a prefix of the next one.
        vec![b'k'; 1 + usize::from(number)]
    }

    /// Draws a fingerprint near one of four centres, or at the border of a prefix.
    fn fingerprint(&mut self) -> u64 {
        let (centre, flips) = (self.byte(), self.byte());
        let centres = [0, u64::MAX, 0x0000_ffff_0000_ffff, 0x8000_0000_0000_0001];
        let base = centres[usize::from(centre % 4)] ^ u64::from(centre >> 4) << (centre & 0x3c);
        match flips >> 6 {
            0 => base,
            1 => base ^ 1 << (flips & 63),
            2 => base ^ 3 << (flips & 63),
            _ => base ^ 0x0101_0101_0101_0101_u64.rotate_left(u32::from(flips & 63)),
        }
    }

    fn index(&self) -> &Index<u64> {
        self.index.as_ref().expect("an index between two calls")
    }

    fn call(&mut self) {
        match self.byte() % 16 {
            0..=3 => {
                let (key, fingerprint) = (self.key(), self.fingerprint());
                let new = self.index().insert_batch(&[(&key, fingerprint)], Durability::Buffered);
                let new = new.expect("an insert").inserted;
                let was = self.model.insert(key, fingerprint);
                assert_eq!(new == 1, was.is_none(), "the result of an insert");
            }
            4 => {
                let count = usize::from(self.byte() % 6);
                let batch: Vec<_> = (0..count).map(|_| (self.key(), self.fingerprint())).collect();
                self.index().insert_batch(&batch, Durability::Buffered).expect("a batch");
                self.model.extend(batch);
            }
            5 | 6 => {
                let keys = [self.key(), self.key()];
                let result = self.index().remove_batch(&keys, Durability::Buffered);
                let mut removed = 0;
                for key in &keys {
                    removed += u64::from(self.model.remove(key).is_some());
                }
                assert_eq!(result.expect("a removal"), removed, "the result of a removal");
            }
            7 => self.insert_if_new(),
            8..=10 => self.search(),
            11 => drop(self.index().merge(&()).expect("a fold")),
            12 => drop(self.index().merge_step().expect("a step of a fold")),
            13 => self.index().flush().expect("a flush"),
            14 => self.compare(),
            _ => {
                let resident = self.byte() & 1 == 1;
                self.reopen(resident);
            }
        }
    }

    fn insert_if_new(&mut self) {
        let (key, fingerprint, distance) = (self.key(), self.fingerprint(), self.byte() % 9);
        let distance = u32::from(distance);
        let near = self.scan(fingerprint, distance);
        let near: Vec<_> = near.into_iter().filter(|(_, other)| *other != key).collect();
        let result = self
            .index()
            .insert_if_new(&key, fingerprint, distance, Durability::Buffered)
            .expect("an offer");
        match result {
            None => {
                assert!(near.is_empty(), "inserted although {near:?} are near");
                self.model.insert(key, fingerprint);
            }
            Some(found) => {
                let found = (found.distance, found.key);
                assert_eq!(near.first(), Some(&found), "the nearest is returned");
            }
        }
    }

    /// Returns all matches within a distance, nearest first.
    fn scan(&self, fingerprint: u64, distance: u32) -> Vec<(u32, Vec<u8>)> {
        let near = self.model.iter().map(|(key, f)| ((f ^ fingerprint).count_ones(), key.clone()));
        let mut near: Vec<_> = near.filter(|(apart, _)| *apart <= distance).collect();
        near.sort();
        near
    }

    fn search(&mut self) {
        let (fingerprint, choice) = (self.fingerprint(), self.byte());
        let distance = u32::from(choice % 17);
        let query = Query::new(fingerprint).distance(distance);
        let query = match choice >> 6 {
            0 => query.path(SearchPath::Scan),
            // Larger distances take seconds by the tables; a planned search would scan instead.
            1 if distance <= 8 => query.path(SearchPath::Tables),
            _ => query,
        };
        let found = match self.index().search(query) {
            // A plan with a fixed radius is refused beyond its distance.
            Err(Error::IncompletePlan { wanted, complete, .. }) => {
                assert!(wanted > complete && wanted == distance);
                return;
            }
            found => found.expect("a search"),
        };
        let found: Vec<_> = found.into_iter().map(|found| (found.distance, found.key)).collect();
        assert_eq!(found, self.scan(fingerprint, distance), "a search at distance {distance}");
    }

    fn reopen(&mut self, resident: bool) {
        drop(self.index.take());
        let options = IndexOptions::new().memory(MEMORY).resident(usize::from(resident) << 20);
        self.index = Some(Index::open_with(self.path, &options).expect("an index opened again"));
    }

    fn compare(&self) {
        let index = self.index();
        let report = index.check(&()).expect("a check");
        assert_eq!(report.problems, Vec::<String>::new());
        assert_eq!(index.len().expect("a count"), self.model.len() as u64);
        let documents = index.documents().expect("documents");
        let documents = documents.collect::<Result<BTreeMap<_, _>, _>>().expect("a document");
        assert_eq!(documents, self.model);
    }
}
