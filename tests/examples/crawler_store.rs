//! A crawler stores pages in its database, and their index entries in the same batch.
//!
//! `cargo run --release --features rocksdb-interop --example crawler_store`

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use hamdex::interop::rocksdb::{ColumnFamilyDescriptor, Options, WriteBatch, WriteOptions};
use hamdex::interop::{Attached, HostDb, Staged};
use hamdex::{IndexOptions, Pipeline, PipelineOptions};

/// Pages in fetch order; the second is a mirror of the first.
const FETCHED: [(&str, &str); 3] = [
    (
        "garden.example/moles",
        "A mole digs up to twenty metres of tunnel in a day, and what it throws up is the finest \
         soil of the garden. Gather it with a shovel, mix it with sand and use it for seedlings. \
         Who wants to be rid of the mole plants garlic along its ways and waits for rain.",
    ),
    (
        "mirror.example/55",
        "A mole digs up to twenty metres of tunnel in a day, and what it throws up is the finest \
         soil of the garden. Gather it with a shovel, mix it with sand and use it for seedlings. \
         Who wants to be rid of a mole plants garlic along its ways and waits for rain!",
    ),
    (
        "harbour.example/tides",
        "The ferry leaves an hour before high water and comes back an hour behind it. In winter \
         it sails on workdays only. Bicycles travel free of charge, dogs at half the fare, and \
         whoever misses the last boat finds a bed above the harbour office.",
    ),
];

/// Largest distance of two captures of one page, in bits of 64.
const DISTANCE: u32 = 8;

/// The crawler's database: pages by address, and the index attached to it.
struct Store {
    db: Arc<HostDb>,
    likeness: Attached<u64>,
    pipeline: Pipeline,
}

/// The decision about a page.
#[derive(Debug, PartialEq)]
enum Fate {
    Stored,
    LikeStored(String),
}

impl Store {
    fn open(path: &Path) -> Result<Self, Box<dyn Error>> {
        let pipeline = Pipeline::new(&PipelineOptions::preset("page")?)?;
        let settings = IndexOptions::new().distance(DISTANCE).text(&pipeline).memory(32 << 20);
        let mut families = Attached::<u64>::families("likeness", &settings)?;
        families.push(ColumnFamilyDescriptor::new("pages", Options::default()));
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        let db = Arc::new(HostDb::open_cf_descriptors(&options, path, families)?);
        let likeness = Attached::open_or_create(Arc::clone(&db), "likeness", &settings)?;
        Ok(Self { db, likeness, pipeline })
    }

    /// Stores a page unless a stored one is similar; then returns that one's address.
    ///
    /// `commit` is false to simulate a crash between staging and writing.
    fn add(&self, address: &str, text: &str, commit: bool) -> Result<Fate, Box<dyn Error>> {
        let sketch = self.pipeline.fingerprint::<u64>(text).ok_or("the page has no words")?;
        let mut staged = Staged::new();
        staged.insert_if_new(address.as_bytes(), sketch.fingerprint, DISTANCE);
        self.likeness.commit_with(&staged, WriteBatch::default(), |mut ready| {
            let pages = self.db.cf_handle("pages").ok_or("opened without pages")?;
            let fate = match ready.report.refused.first() {
                None => {
                    ready.batch.put_cf(pages, address, text);
                    Fate::Stored
                }
                Some(refusal) => {
                    Fate::LikeStored(String::from_utf8_lossy(&refusal.near.key).into_owned())
                }
            };
            if commit {
                self.db.write_opt(ready.batch, &WriteOptions::default())?;
            }
            Ok(fate)
        })
    }

    fn page(&self, address: &str) -> Result<Option<Vec<u8>>, Box<dyn Error>> {
        let pages = self.db.cf_handle("pages").ok_or("opened without pages")?;
        Ok(self.db.get_cf(pages, address)?)
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("crawl.db");
    let mut fates = Vec::new();
    for (at, (address, text)) in FETCHED.into_iter().enumerate() {
        let store = Store::open(&path)?;
        if at == 2 {
            // The batch is staged but not written: page and entries are absent.
            store.add(address, text, false)?;
            drop(store);
            let store = Store::open(&path)?;
            assert_eq!((store.page(address)?, store.likeness.index().len()?), (None, 1));
            fates.push(store.add(address, text, true)?);
        } else {
            fates.push(store.add(address, text, true)?);
        }
        println!("{address}: {:?}", fates.last());
    }
    let mirrored = Fate::LikeStored(FETCHED[0].0.to_owned());
    assert_eq!(fates, [Fate::Stored, mirrored, Fate::Stored]);

    let store = Store::open(&path)?;
    let frozen = store.likeness.freeze()?;
    for found in frozen.reader().documents()? {
        // Index and pages are read in one snapshot, so each document has its page.
        let (address, _) = found?;
        let pages = store.db.cf_handle("pages").ok_or("opened without pages")?;
        assert!(frozen.snapshot().get_cf(pages, address)?.is_some());
    }
    assert_eq!(frozen.reader().len(), 2);
    Ok(())
}
