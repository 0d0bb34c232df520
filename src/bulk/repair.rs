//! Repair: builds a new index from what can still be read of a damaged one.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::builder::Builder;
use super::options::BuildOptions;
use crate::error::{Error, Result, note_problem};
use crate::fingerprint::Fingerprint;
use crate::index::{Header, IndexOptions, NewDocument, plan_of};
use crate::progress::{self, Progress};
use crate::store::codec::{self, Document};
use crate::store::{Family, MIN_MEMORY, Salvage, Store, keys};
use crate::text::Resources;

/// Entries between two progress reports.
const REPORT_EVERY: u64 = 1 << 14;

/// What a repair read, and what it could not read. See [`repair`] for an example.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Documents in the new index.
    pub documents: u64,
    /// Documents that the damaged index had counted, if the count was readable.
    pub counted: u64,
    /// Documents read from their posting only; their features are lost.
    pub from_postings: u64,
    /// Descriptions of the first thousand damages in the documents and the log.
    pub problems: Vec<String>,
    /// Number of damages.
    pub problem_count: u64,
    /// Whether the list of files was unusable, so that the files were read without it.
    ///
    /// Documents that were replaced or removed shortly before a kill, or in a missing file, may
    /// then reappear.
    pub from_files: bool,
}

impl RepairReport {
    /// Records damage and returns other errors.
    fn note(&mut self, error: Error) -> Result<()> {
        note_problem(error, &mut self.problems, &mut self.problem_count)
    }
}

/// Builds a new index from the documents of a damaged one.
///
/// The damaged index is not changed. Postings and tables are rebuilt from the documents, so damage
/// in them has no effect. Documents whose records cannot be read are taken from their postings,
/// without features. What is in neither is lost; `documents` is then below `counted`.
///
/// ```
/// use hamdex::build::{BuildOptions, RepairReport, repair};
/// use hamdex::{Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let (path, target) = (directory.path().join("pages"), directory.path().join("repaired"));
/// Index::<u64>::create(&path, &IndexOptions::new())?.insert(b"page", 7)?;
/// let report: RepairReport = repair::<u64>(&path, &target, &BuildOptions::new(), &())?;
/// assert_eq!((report.documents, report.problem_count), (1, 0));
/// assert_eq!(Index::<u64>::open(&target)?.get(b"page")?, Some(7));
/// # Ok::<(), hamdex::Error>(())
/// ```
///
/// # Errors
///
/// - [`Error::AlreadyExists`] if the target contains anything.
/// - [`Error::Corrupt`] if the header or a table of the pipeline is damaged; then only a backup
///   helps. A damaged list of files is not an error: the files are read without it.
/// - [`Error::WidthMismatch`], [`Error::BuildUnfinished`], [`Error::Cancelled`], and failures of
///   the environment.
pub fn repair<F: Fingerprint>(
    damaged: impl AsRef<Path>,
    target: impl AsRef<Path>,
    build: &BuildOptions,
    progress: &dyn Progress,
) -> Result<RepairReport> {
    let target = target.as_ref();
    run::<F>(Wrecked::open(damaged.as_ref(), target)?, target, build, progress)
}

/// Does what [`repair`] does, for any width of the damaged index.
///
/// ```
/// use hamdex::build::{BuildOptions, repair_any};
/// use hamdex::{Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let (path, target) = (directory.path().join("pages"), directory.path().join("repaired"));
/// Index::<u32>::create(&path, &IndexOptions::new())?.insert(b"page", 7)?;
/// # std::fs::remove_file(path.join("CURRENT")).unwrap();
/// let report = repair_any(&path, &target, &BuildOptions::new(), &())?;
/// assert!(report.from_files);
/// assert_eq!(Index::<u32>::open(&target)?.get(b"page")?, Some(7));
/// # Ok::<(), hamdex::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`repair`].
pub fn repair_any(
    damaged: impl AsRef<Path>,
    target: impl AsRef<Path>,
    build: &BuildOptions,
    progress: &dyn Progress,
) -> Result<RepairReport> {
    let target = target.as_ref();
    let wrecked = Wrecked::open(damaged.as_ref(), target)?;
    let bits = wrecked.meta.header().bits;
    crate::for_width!(bits, F => run::<F>(wrecked, target, build, progress))
}

/// A damaged index, opened as far as possible.
struct Wrecked<'a> {
    path: &'a Path,
    meta: Salvage,
    /// Whether `meta` also has the documents and postings.
    from_files: bool,
    /// Why the list of files was unusable.
    cause: Option<Error>,
}

impl<'a> Wrecked<'a> {
    fn open(path: &'a Path, target: &Path) -> Result<Self> {
        let beside = match target.parent() {
            Some(parent) if parent.is_dir() => parent.to_owned(),
            Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
            _ => std::env::temp_dir(),
        };
        let opened = Salvage::open(path, None).and_then(|meta| {
            // A repair must be able to read the documents.
            let documents = Salvage::open(path, Some(Family::Docs))?;
            documents.require_files().map(|()| meta)
        });
        let opened = match opened {
            Ok(mut meta) if meta.lost_files() => meta.take_lost().map_or(Ok(meta), Err),
            opened => opened,
        };
        match opened {
            Ok(meta) => Ok(Self { path, meta, from_files: false, cause: None }),
            Err(error) if Salvage::is_worth_files(path, &error) => {
                match Salvage::of_files(path, &beside) {
                    Ok(meta) => Ok(Self { path, meta, from_files: true, cause: Some(error) }),
                    // Postings may still be readable through the list of files.
                    Err(of_files) => match Salvage::open(path, None) {
                        Ok(meta) => {
                            Ok(Self { path, meta, from_files: false, cause: Some(of_files) })
                        }
                        Err(_) => Err(of_files),
                    },
                }
            }
            Err(error) => Err(error),
        }
    }
}

fn run<F: Fingerprint>(
    wrecked: Wrecked<'_>,
    target: &Path,
    build: &BuildOptions,
    progress: &dyn Progress,
) -> Result<RepairReport> {
    let Wrecked { path, mut meta, from_files, cause } = wrecked;
    Header::of(meta.header()).require_width::<F>()?;
    let plan = plan_of(meta.header())?;
    let mut resources = Resources::default();
    for name in Resources::NAMES {
        if let Some(bytes) = meta.resource(name)? {
            resources.insert(name, &bytes)?;
        }
    }
    let parts: Vec<_> = resources.parts().collect();
    drop(Store::create(target, meta.header().clone(), &parts, plan.tables().len(), MIN_MEMORY)?);
    let builder = Builder::<F>::create(target, &IndexOptions::new(), build)?;
    let counted = meta.documents();
    let mut report = RepairReport { counted, from_files, ..RepairReport::default() };
    let causes = cause.into_iter().chain(meta.take_lost()).chain(meta.take_notes());
    for error in causes {
        report.note(unopened(error))?;
    }
    let mut repair = Repair { builder, report, progress, origin: 0, read: 0 };
    if from_files {
        repair.files(&meta)?;
    } else {
        repair.run(path)?;
    }
    let Repair { builder, mut report, .. } = repair;
    report.documents = builder.finish(progress, &mut |_, _| ())?.documents;
    Ok(report)
}

/// A listed file that is missing is damage, even if the engine reports another error.
fn unopened(error: Error) -> Error {
    if let Error::Store { message, .. } = error {
        return Error::corrupt("list of files", message);
    }
    if let Error::NotFound { .. } = error {
        return Error::corrupt("CURRENT", "is missing");
    }
    error
}

struct Repair<'a, F: Fingerprint> {
    builder: Builder<F>,
    report: RepairReport,
    progress: &'a dyn Progress,
    origin: u64,
    read: u64,
}

/// Keys of documents that the records do not provide.
#[derive(Default)]
struct Unread {
    /// Keys of single unreadable records.
    keys: HashSet<Vec<u8>>,
    /// Unreadable packs: the last key before each, and the key of its last document.
    packs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The last key before records that cannot be reached.
    after: Option<Vec<u8>>,
    /// Whether a file of records may be missing, so that any key may be affected.
    any: bool,
}

impl Unread {
    fn holds(&self, key: &[u8]) -> bool {
        self.after.as_deref().is_some_and(|last| key > last)
            || self.keys.contains(key)
            || self.packs.iter().any(|(before, last)| key > &before[..] && key <= &last[..])
    }

    fn is_empty(&self) -> bool {
        self.after.is_none() && self.keys.is_empty() && self.packs.is_empty() && !self.any
    }
}

impl<F: Fingerprint> Repair<'_, F> {
    fn run(&mut self, damaged: &Path) -> Result<()> {
        self.progress.begin("reading documents", Some(self.report.counted));
        let docs = match Salvage::open(damaged, Some(Family::Docs)) {
            Ok(docs) => Some(docs),
            Err(error) => {
                self.report.note(unopened(error))?;
                None
            }
        };
        let unread = match &docs {
            Some(docs) => self.records(docs)?,
            None => Unread { after: Some(Vec::new()), ..Unread::default() },
        };
        if unread.is_empty() {
            return Ok(());
        }
        self.progress.begin("reading postings", Some(self.report.counted));
        match Salvage::open(damaged, Some(Family::Postings)) {
            Ok(postings) => self.postings(&postings, docs.as_ref(), &unread),
            Err(error) => self.report.note(unopened(error)),
        }
    }

    /// Reads everything from files that were opened without the list.
    fn files(&mut self, files: &Salvage) -> Result<()> {
        self.progress.begin("reading documents", Some(self.report.counted));
        let mut unread = self.records(files)?;
        unread.any = self.origin < self.report.counted;
        if unread.is_empty() {
            return Ok(());
        }
        self.progress.begin("reading postings", Some(self.report.counted));
        self.postings(files, Some(files), &unread)?;
        if unread.any && self.report.from_postings > 0 {
            let detail = format!(
                "{} documents are known from postings only; removed ones may be among them",
                self.report.from_postings
            );
            self.report.note(Error::corrupt("docs", detail))?;
        }
        Ok(())
    }

    fn push(&mut self, key: &[u8], document: &Document<F>) -> Result<()> {
        let mut new = NewDocument::new(key, document.fingerprint);
        new.features = document.features.as_deref();
        self.builder.push_document(&new, self.origin)?;
        self.origin += 1;
        Ok(())
    }

    fn tick(&mut self) -> Result<()> {
        self.read += 1;
        if self.read.is_multiple_of(REPORT_EVERY) {
            self.progress.advance(REPORT_EVERY);
            progress::check(self.progress)?;
        }
        Ok(())
    }

    /// Pushes all records that can be reached from the start and decode.
    fn records(&mut self, docs: &Salvage) -> Result<Unread> {
        let mut unread = Unread::default();
        let mut last = Vec::new();
        let mut cursor = docs.sweep(Family::Docs)?;
        loop {
            match cursor.entry() {
                Ok(None) => return Ok(unread),
                Ok(Some((key, bytes))) => {
                    match codec::decode::<Document<F>>("docs", key, bytes) {
                        Ok(document) => self.push(key, &document)?,
                        Err(error) => {
                            self.report.note(error)?;
                            unread.keys.insert(key.to_vec());
                        }
                    }
                    last.clear();
                    last.extend_from_slice(key);
                }
                Err(error) => {
                    self.report.note(error)?;
                    let Some(end) = cursor.damaged_up_to() else {
                        unread.after = Some(last);
                        return Ok(unread);
                    };
                    unread.packs.push((last.clone(), end.to_vec()));
                }
            }
            self.tick()?;
            cursor.next();
        }
    }

    /// Pushes the remaining documents: from the record if it is readable after all, else from the
    /// posting.
    fn postings(
        &mut self,
        postings: &Salvage,
        docs: Option<&Salvage>,
        unread: &Unread,
    ) -> Result<()> {
        let mut cursor = postings.sweep(Family::Postings)?;
        loop {
            let posting = match cursor.entry() {
                Ok(None) => return Ok(()),
                Ok(Some((posting, _))) => posting,
                Err(error) => {
                    self.report.note(error)?;
                    if cursor.damaged_up_to().is_none() {
                        return Ok(());
                    }
                    cursor.next();
                    continue;
                }
            };
            match keys::split_posting::<F>(posting) {
                Ok((fingerprint, key)) if unread.holds(key) || unread.any => {
                    let record = docs.and_then(|docs| docs.get(Family::Docs, key).ok().flatten());
                    if record.is_some() && !unread.holds(key) {
                        cursor.next();
                        continue;
                    }
                    let document =
                        record.and_then(|r| codec::decode::<Document<F>>("docs", key, &r).ok());
                    self.report.from_postings += u64::from(document.is_none());
                    self.push(key, &document.unwrap_or(Document { fingerprint, features: None }))?;
                }
                Ok(_) => (),
                Err(error) => self.report.note(error)?,
            }
            self.tick()?;
            cursor.next();
        }
    }
}
