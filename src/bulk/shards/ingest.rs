//! Ingest: verifies the files of many machines against their manifest and makes them an index.

use std::fs;
use std::path::{Path, PathBuf};

use super::manifest::Manifest;
use super::writer::checksum;
use crate::bulk::BuildReport;
use crate::bulk::STAGING;
use crate::bulk::builder::clear;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::{Header, plan_of};
use crate::progress::{self, Progress};
use crate::store::{Access, MIN_MEMORY, Opening, Store, make_directory};

/// Returns the fingerprint width of a directory of shards, in bits.
///
/// The [module](crate::build::shards) has an example.
///
/// # Errors
///
/// Those of [`Manifest::read`].
pub fn manifest_bits(directory: impl AsRef<Path>) -> Result<u32> {
    Ok(Manifest::read(directory)?.bits())
}

/// Creates an index from the shards in a directory.
///
/// The shards are not changed. Every file is read once to verify its checksum, then linked into the
/// index, or copied if that is on another file system. The index must be absent, or empty with the
/// same settings, as an ingest leaves it that was killed and [abandoned]. The
/// [module](crate::build::shards) has an example.
///
/// [abandoned]: crate::build::Builder::abandon
///
/// # Errors
///
/// - [`Error::WidthMismatch`] if the shards have another width.
/// - [`Error::AlreadyExists`] if the index has documents, or the directory other files;
///   [`Error::HeaderMismatch`] if the index has other settings.
/// - [`Error::Corrupt`] if the manifest is damaged, or a file differs from its description.
/// - [`Error::Cancelled`], [`Error::Io`], and failures of the store. If files were already moved,
///   the index does not open until it is abandoned.
pub fn ingest<F: Fingerprint>(
    shards: impl AsRef<Path>,
    index: impl AsRef<Path>,
    progress: &dyn Progress,
) -> Result<BuildReport> {
    let (directory, path) = (shards.as_ref(), index.as_ref());
    let manifest = Manifest::read(directory)?;
    let layout = manifest.layout()?;
    layout.require_width::<F>()?;
    verify(directory, &manifest, progress)?;

    let header = layout.header::<F>()?;
    let tables = layout.plan().tables().len();
    let mut store = match Opening::new(path, MIN_MEMORY, Access::Write) {
        Ok(opening) => {
            let stored = Header::of(opening.header());
            stored.require_width::<F>()?;
            let tables = plan_of(opening.header())?.tables().len();
            let store = opening.with_tables(tables)?;
            let wanted = Header::of(&header);
            stored.require(
                Some(wanted.plan),
                Some(wanted.distance),
                Some(wanted.pipeline),
                Some(wanted.keeps_features),
            )?;
            if store.state()?.documents > 0 {
                return Err(Error::AlreadyExists { path: path.to_owned() });
            }
            store
        }
        Err(Error::NotFound { .. }) => Store::create(path, header, &[], tables, MIN_MEMORY)?,
        Err(error) => return Err(error),
    };
    let staging = path.join(STAGING);
    clear(path)?;
    make_directory(&staging)?;
    let generation = store.begin_build()?;
    store.create_generation(generation)?;
    progress.begin("moving files", Some(manifest.shards().len() as u64));
    let mut report = BuildReport {
        documents: manifest.documents(),
        fingerprints: manifest.fingerprints(),
        ..BuildReport::default()
    };
    for family in 0..layout.families() {
        let mut files = Vec::new();
        for shard in manifest.of_family(family) {
            progress::check(progress)?;
            files.push(link_or_copy(&directory.join(&shard.file), &staging.join(&shard.file))?);
            report.bytes += shard.bytes;
            progress.advance(1);
        }
        store.ingest(layout.family(family)?, generation, &files)?;
    }
    store.finish_build(generation, report.documents, false)?;
    clear(path)?;
    Ok(report)
}

/// Reads every file and compares it with the description by its writer.
fn verify(directory: &Path, manifest: &Manifest, progress: &dyn Progress) -> Result<()> {
    let total = manifest.shards().iter().map(|shard| shard.bytes).sum();
    progress.begin("verifying shards", Some(total));
    for shard in manifest.shards() {
        let (bytes, found) = checksum(&directory.join(&shard.file), &mut |bytes| {
            progress.advance(bytes);
            progress::check(progress)
        })?;
        if bytes != shard.bytes {
            let detail = format!("has {bytes} bytes, expected {}", shard.bytes);
            return Err(Error::corrupt(format!("shard {}", shard.file), detail));
        }
        if found != shard.checksum {
            let detail = "checksum does not match the manifest";
            return Err(Error::corrupt(format!("shard {}", shard.file), detail));
        }
    }
    Ok(())
}

/// Hard-links a file, or copies it if that fails.
fn link_or_copy(from: &Path, to: &Path) -> Result<PathBuf> {
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).map_err(|e| Error::io(from, e))?;
    }
    Ok(to.to_owned())
}
