//! Creation: turns a directory into an empty index, atomically.

use std::path::Path;

use super::codec::{self, HeaderRecord, State};
use super::directory::{CREATING_FILE, Mark, begin_creation, make, require_vacant, sync};
use super::lock::Lock;
use super::resources::{self, Resource};
use super::seal::Seal;
use super::tuning::Tuning;
use super::{Database, Db, Family, HEADER, Role, Store, engine_error};
use crate::error::{Error, Result};
use crate::fail_point::fail_point;

impl Store {
    /// Creates a database with a header, its resources and the empty families of generation 1.
    pub(crate) fn create(
        path: &Path,
        header: HeaderRecord,
        resources: &[Resource<'_>],
        tables: usize,
        memory: usize,
    ) -> Result<Self> {
        make(path)?;
        require_vacant(path, Mark::Creating)?;
        let lock = Lock::of_index(path)?;
        // Check the directory again: another process may have held the lock meanwhile.
        begin_creation(path, Mark::Creating)?;
        fail_point!("create.marked");
        let tuning = Tuning::new(memory, tables + 3);
        let generation = 1;
        let mut names = vec!["default".to_owned(), Family::Meta.name(generation)];
        names.extend(Family::of_generation(tables).map(|family| family.name(generation)));
        let descriptors = names.iter().map(|name| tuning.descriptor(name));
        let db = Db::open_cf_descriptors(&tuning.database(), path, descriptors)
            .map_err(|e| engine_error("database", e))?;
        fail_point!("create.opened");
        let seal = Seal::begin(path, None)?;
        let store = Self {
            db: Database::Own(db),
            path: path.to_owned(),
            header,
            generation,
            tables,
            role: Role::Primary { tuning, seal, _lock: lock },
        };
        store.write_header(resources)?;
        fail_point!("create.written");
        store.sync()?;
        fail_point!("create.synced");
        let mark = path.join(CREATING_FILE);
        std::fs::remove_file(&mark).map_err(|e| Error::io(&mark, e))?;
        // Otherwise a power loss could bring the mark back, and the next creation clears the index.
        sync(path)?;
        Ok(store)
    }

    /// Writes header, resources and the state of an empty index in one batch.
    pub(super) fn write_header(&self, resources: &[Resource<'_>]) -> Result<()> {
        let mut batch = self.batch()?;
        batch.put_meta(HEADER, &codec::encode(HEADER, &self.header));
        for (name, bytes) in resources {
            resources::write(name, bytes, |key, record| batch.put_meta(key, record));
        }
        batch.put_state(&State { generation: self.generation, documents: 0 });
        batch.commit()
    }
}
