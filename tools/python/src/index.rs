//! The index: documents on disk, searchable by text or fingerprint from any Python thread.

mod build;
mod open;
mod snapshot;
mod values;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use hamdex::any::AnyIndex;
use hamdex::verify::DuplicateRule;
use hamdex::{Durability, IndexOptions};
use hamdex_io::MaxBad;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString, PyTuple};

pub(crate) use self::open::Texts;
use self::snapshot::Found;
pub(crate) use self::snapshot::{Match, Snapshot};
use self::values::{Maker, Value};
pub(crate) use self::values::{key_of, key_to_text};
use crate::failure::{Failure, Result};
use crate::fingerprints::supported;
use crate::interrupt::{detached, interruptible};
use crate::pipeline::{Asked, no_texts};
use crate::resolve;
use crate::table::Table;
use crate::tables::{Seed, Tables};

/// A durable index of documents, with the same files as that of the command line.
///
/// A document is a key (a str, an int or bytes) and a fingerprint (an int). The pipeline of the
/// index computes the fingerprints of texts. Any number of threads may use one index; one process
/// at a time writes to it. Every write survives a power loss once the call returned, unless
/// `synced` is False. Use the index as a context manager, or call `close`.
///
/// >>> import hamdex, tempfile
/// >>> with tempfile.TemporaryDirectory() as directory:
/// ...     with hamdex.Index.create(directory + "/posts", pipeline="post") as index:
/// ...         index.insert("rain", "it will rain tomorrow, so take a coat and an umbrella")
/// ...         index.search("it will rain tomorrow, so take a coat or an umbrella", distance=12)[0].key
/// 0
/// 'rain'
#[pyclass(frozen, module = "hamdex")]
#[derive(Debug)]
pub(crate) struct Index {
    path: PathBuf,
    /// `None` once it is closed.
    open: RwLock<Option<Arc<AnyIndex>>>,
    texts: Texts,
    built: Option<build::Summary>,
}

/// What `for_call` returns: the form, a table, the text field, the id column, rows without a text.
type Seen<'py> = (Bound<'py, PyAny>, Bound<'py, Table>, String, Option<String>, Vec<u64>);

/// Keys and values of one call, and whether the call names a single document.
type Named = (Vec<Vec<u8>>, Vec<Value>, bool);

impl Index {
    fn over(path: PathBuf, open: AnyIndex, seed: Option<&Seed>) -> Result<Self> {
        let texts = Texts::of(&open, seed)?;
        Ok(Self { path, open: RwLock::new(Some(Arc::new(open))), texts, built: None })
    }

    /// Returns how the index processes texts.
    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }

    pub(crate) fn opened(&self) -> Result<Arc<AnyIndex>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let closed = || Failure::usage(format!("{} is closed", self.path.display()));
        open.as_ref().map(Arc::clone).ok_or_else(closed)
    }

    fn maker<'a>(&'a self, open: &'a AnyIndex) -> Maker<'a> {
        Maker { texts: &self.texts, header: open.header() }
    }

    fn frozen(&self, py: Python<'_>) -> Result<Snapshot> {
        let open = self.opened()?;
        let state = detached(py, || Ok(open.reader()?))?;
        let default_check = resolve::default_check(open.header())?;
        Ok(Snapshot { state, texts: self.texts.clone(), default_check })
    }
}

/// Returns true if an object is a single key.
fn is_key(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyInt>()
}

fn keys(objects: &Bound<'_, PyAny>) -> Result<Vec<Vec<u8>>> {
    if is_key(objects) {
        return Ok(vec![key_of(objects)?]);
    }
    objects.try_iter()?.map(|object| key_of(&object?)).collect()
}

fn named(keys_of: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>) -> Result<Named> {
    if is_key(keys_of) {
        return Ok((keys(keys_of)?, vec![Value::of(values)?], true));
    }
    Ok((keys(keys_of)?, Value::many(values)?, false))
}

fn durability(synced: bool) -> Durability {
    if synced { Durability::Synced } else { Durability::Buffered }
}

#[pymethods]
impl Index {
    /// Creates an index in a directory that does not exist or is empty.
    ///
    /// pipeline: "auto", "post", "page", "code", a descriptor or a `Pipeline`. None stores
    ///     fingerprints that were computed elsewhere and accepts no texts.
    /// bits: width of the fingerprints: 32, 64 or 128.
    /// distance: default distance of searches. Default: the recommended one of the pipeline, else
    ///     3.
    /// plan: tables: "4", "10", "16", "20" or "<blocks>x<lead>[r<radius>]". Default: "4".
    /// `keep_features`: store the feature set of every text, for `verify`.
    /// memory: bytes for caches. Default: 512 MiB.
    /// resident: bytes for holding all fingerprints in memory. Default: not held in memory.
    /// simplified, `stop_words`, dictionary, weights, idf, `seed_file`: as for `Pipeline`.
    #[staticmethod]
    #[pyo3(signature = (
        path, *, pipeline = None, bits = 64, distance = None, plan = None, keep_features = false,
        memory = None, resident = None, simplified = false, stop_words = None, dictionary = None,
        weights = None, idf = None, seed_file = None,
    ))]
    #[allow(clippy::too_many_arguments)] // keywords of a Python call
    fn create(
        py: Python<'_>,
        path: PathBuf,
        pipeline: Option<&Bound<'_, PyAny>>,
        bits: u32,
        distance: Option<u32>,
        plan: Option<&str>,
        keep_features: bool,
        memory: Option<usize>,
        resident: Option<usize>,
        simplified: bool,
        stop_words: Option<PathBuf>,
        dictionary: Option<PathBuf>,
        weights: Option<PathBuf>,
        idf: Option<PathBuf>,
        seed_file: Option<PathBuf>,
    ) -> PyResult<Self> {
        let tables = Tables { simplified, stop_words, dictionary, weights, idf, seed_file };
        let asked = Asked::of(pipeline, &tables)?;
        let named = pipeline.is_some() || tables.given() || tables.seed_file.is_some();
        let pipeline = named.then(|| asked.pipeline(&no_texts)).transpose()?;
        let mut options = open::options(pipeline.as_ref(), bits, distance, plan, keep_features)?;
        if let Some(memory) = memory {
            options = options.memory(memory);
        }
        if let Some(resident) = resident {
            options = options.resident(resident);
        }
        let index = detached(py, || {
            let open = AnyIndex::create(&path, supported(bits)?, &options)?;
            let texts = Texts::with_pipeline(pipeline);
            Ok(Self { path, open: RwLock::new(Some(Arc::new(open))), texts, built: None })
        });
        Ok(index?)
    }

    /// Opens an existing index.
    ///
    /// `read_only`: do not write; another process may write.
    /// memory: bytes for caches. Default: 512 MiB.
    /// resident: bytes for holding all fingerprints in memory. Default: not held in memory.
    /// `seed_file`: file with the secret of the index. Without it the index accepts and finds only
    ///     fingerprints. All other tables of the pipeline are stored in the index.
    #[staticmethod]
    #[pyo3(signature = (
        path, *, read_only = false, memory = None, resident = None, seed_file = None,
    ))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        read_only: bool,
        memory: Option<usize>,
        resident: Option<usize>,
        seed_file: Option<PathBuf>,
    ) -> PyResult<Self> {
        let seed = Tables { seed_file, ..Tables::default() }.seed()?;
        let mut options = IndexOptions::new().read_only(read_only);
        if let Some(memory) = memory {
            options = options.memory(memory);
        }
        if let Some(resident) = resident {
            options = options.resident(resident);
        }
        let index = detached(py, || {
            let open = AnyIndex::open_with(&path, &options)?;
            Self::over(path, open, seed.as_ref())
        });
        Ok(index?)
    }

    /// Builds an index offline from a table, or merges the table into an existing index.
    ///
    /// data, text, id, tmp and the tables are as for `dedup`, the other arguments as for `create`.
    /// pipeline and distance are chosen from a sample of the texts unless you pass them; an
    /// existing index keeps its settings. Rows replace stored documents with the same id; the id of
    /// a row without one is its number. Rows without features are skipped. `built` counts all of
    /// this. A build that fails or is interrupted changes nothing.
    ///
    /// `on_repeat`: which row to store if several have the same id: "first" or "last". Default: the
    ///     build fails.
    /// `max_bad`: maximum of rows with an invalid id, a number or a share such as "5%". Default:
    ///     "10%".
    #[staticmethod]
    #[pyo3(signature = (
        path, data, text = None, id = None, *, pipeline = None, bits = 64, distance = None,
        plan = None, keep_features = false, memory = None, tmp = None, on_repeat = None,
        max_bad = None, simplified = false, stop_words = None, dictionary = None, weights = None,
        idf = None, seed_file = None,
    ))]
    #[allow(clippy::too_many_arguments)] // keywords of a Python call
    fn build<'py>(
        py: Python<'py>,
        path: PathBuf,
        data: &Bound<'py, PyAny>,
        text: Option<&str>,
        id: Option<&str>,
        pipeline: Option<&Bound<'py, PyAny>>,
        bits: u32,
        distance: Option<u32>,
        plan: Option<&str>,
        keep_features: bool,
        memory: Option<usize>,
        tmp: Option<PathBuf>,
        on_repeat: Option<&str>,
        max_bad: Option<&Bound<'py, PyAny>>,
        simplified: bool,
        stop_words: Option<PathBuf>,
        dictionary: Option<PathBuf>,
        weights: Option<PathBuf>,
        idf: Option<PathBuf>,
        seed_file: Option<PathBuf>,
    ) -> PyResult<Self> {
        let tables = Tables { simplified, stop_words, dictionary, weights, idf, seed_file };
        let seen = py.import("hamdex._data")?.call_method1("for_call", (data, text, id))?;
        let (_, table, text, id, odd): Seen<'py> = seen.extract()?;
        let seed = tables.seed()?;
        let job = build::Job {
            path: &path,
            table: table.get(),
            text: &text,
            id: id.as_deref(),
            odd,
            asked: Asked::of(pipeline, &tables)?,
            seed: seed.as_ref(),
            bits,
            distance,
            plan,
            keep_features,
            memory,
            tmp,
            repeats: build::repeats(on_repeat)?,
            max_bad: max_bad.map_or(Ok(MaxBad::default()), build::max_bad)?,
        };
        let (open, summary, texts) = interruptible(py, |watch| job.run(watch))?;
        let open = RwLock::new(Some(Arc::new(open)));
        Ok(Self { path, open, texts, built: Some(summary) })
    }

    /// Inserts one or many documents; returns how many replaced a stored one.
    ///
    /// keys is a key or a sequence of keys; values is a text or a fingerprint, or one per key. A
    /// call is atomic: on an error no document is stored.
    #[pyo3(signature = (keys, values, *, synced = true))]
    fn insert(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        synced: bool,
    ) -> PyResult<u64> {
        let (keys, values, _) = named(keys, values)?;
        let open = self.opened()?;
        let replaced = detached(py, || {
            let documents = self.maker(&open).documents(keys, &values)?;
            Ok(open.insert_batch(&documents, durability(synced))?.replaced)
        });
        Ok(replaced?)
    }

    /// Inserts documents without near-duplicates; returns what rejected each other document.
    ///
    /// Search and insert are one atomic step, also with concurrent writers. Returns a `Match` or
    /// None for one key, and a list of them for many; documents are also compared with earlier ones
    /// of the call.
    /// verify: "jaccard:T" or "zhou:K,T" if the index stores features; "none" compares only
    ///     fingerprints. Default: the recommended verification of the pipeline, if the index stores
    ///     features. Fingerprints without texts are never verified by default.
    #[pyo3(signature = (keys, values, *, distance = None, verify = None, synced = true))]
    fn insert_if_new<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
        distance: Option<u32>,
        verify: Option<&str>,
        synced: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (keys, values, alone) = named(keys, values)?;
        let open = self.opened()?;
        let header = open.header();
        let default_check = resolve::default_check(header)?;
        let verify = values::check_of(verify, default_check, &values, header.keeps_features)?;
        let near = DuplicateRule::new(distance.unwrap_or(header.distance)).verify(verify);
        let refused = detached(py, || {
            let documents = self.maker(&open).documents(keys, &values)?;
            Ok(open.insert_batch_if_new(&documents, near, durability(synced))?)
        })?;
        let refused = refused
            .into_iter()
            .map(|found| found.map(|found| Found::of(found).to_match(py)).transpose())
            .collect::<PyResult<Vec<Option<Match>>>>()?;
        if alone {
            return Ok(refused.into_iter().next().flatten().into_pyobject(py)?.into_any());
        }
        Ok(refused.into_pyobject(py)?.into_any())
    }

    /// Removes one or many documents; returns how many were stored.
    #[pyo3(signature = (keys, *, synced = true))]
    fn remove(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, synced: bool) -> PyResult<u64> {
        let keys = self::keys(keys)?;
        let open = self.opened()?;
        let removed = detached(py, || Ok(open.remove_batch(&keys, durability(synced))?));
        Ok(removed?)
    }

    /// Returns the documents near a text or a fingerprint, nearest first.
    ///
    /// distance: maximum number of differing bits, up to a quarter of `bits`. Default: that of the
    ///     index.
    /// limit: maximum number of matches.
    /// verify: verification that matches must pass: "jaccard:T" or "zhou:K,T" if the index stores
    ///     features; "none" compares only fingerprints. Default: the recommended verification of
    ///     the pipeline, if the index stores features and the value is a text.
    #[pyo3(signature = (value, *, distance = None, limit = None, verify = None))]
    fn search(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        distance: Option<u32>,
        limit: Option<usize>,
        verify: Option<&str>,
    ) -> PyResult<Vec<Match>> {
        self.frozen(py)?.search(py, value, distance, limit, verify)
    }

    /// Answers many queries together, on all threads.
    #[pyo3(signature = (values, *, distance = None, limit = None, verify = None))]
    fn search_batch(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        distance: Option<u32>,
        limit: Option<usize>,
        verify: Option<&str>,
    ) -> PyResult<Vec<Vec<Match>>> {
        self.frozen(py)?.search_batch(py, values, distance, limit, verify)
    }

    /// Returns a snapshot of the index, which never changes.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        Ok(self.frozen(py)?)
    }

    /// Returns the fingerprint of a document; `None` if it is not stored.
    fn get(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<u128>> {
        self.frozen(py)?.get(py, key)
    }

    /// Checks the index for damage; returns a description of each problem.
    fn check(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let open = self.opened()?;
        let problems = interruptible(py, |watch| Ok(open.check(watch)?.problems));
        Ok(problems?)
    }

    /// Saves all fingerprints for processes that open the index with `resident`.
    ///
    /// They map the file `hamdex.resident` and share it until the index is written again.
    /// budget: bytes that the tables may take. Returns the size of the file.
    #[pyo3(signature = (budget))]
    fn save_resident(&self, py: Python<'_>, budget: usize) -> PyResult<u64> {
        let open = self.opened()?;
        let saved = detached(py, || {
            let bytes = open.save_resident(budget)?;
            bytes.ok_or_else(|| Failure::usage(format!("they do not fit into {budget} bytes")))
        });
        Ok(saved?)
    }

    /// Makes all writes survive a power loss.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.opened()?;
        Ok(detached(py, || Ok(open.flush()?))?)
    }

    /// Closes the files once all snapshots are freed.
    fn close(&self, py: Python<'_>) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let closed = open.take();
        drop(open);
        py.detach(|| drop(closed));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __len__(&self) -> PyResult<usize> {
        let len = self.opened()?.len().map_err(Failure::from)?;
        Ok(usize::try_from(len)?)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.get(py, key)?.is_some())
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    #[getter]
    fn bits(&self) -> PyResult<u32> {
        Ok(self.opened()?.bits())
    }

    #[getter]
    fn distance(&self) -> PyResult<u32> {
        Ok(self.opened()?.header().distance)
    }

    #[getter]
    fn plan(&self) -> PyResult<String> {
        Ok(self.opened()?.header().plan.clone())
    }

    #[getter]
    fn keeps_features(&self) -> PyResult<bool> {
        Ok(self.opened()?.header().keeps_features)
    }

    #[getter]
    fn pipeline(&self) -> Option<&str> {
        self.texts.descriptor()
    }

    /// Counts of `build`; `None` for an index that was opened or created.
    #[getter]
    fn built(&self) -> Option<build::Summary> {
        self.built.clone()
    }

    fn __repr__(&self) -> String {
        format!("hamdex.Index('{}')", self.path.display())
    }
}
