//! `index resident`: saves the fingerprints of an index, for searches in memory.

use std::path::PathBuf;

use clap::Args;
use hamdex::Progress;
use hamdex::any::AnyIndex;
use serde::Serialize;

use crate::draw::table::Table;
use crate::failure::Result;
use crate::options::MemoryArg;
use crate::session::Session;
use crate::size;
use crate::stored;

/// Save the fingerprints of an index, so that searches in memory start at once
///
/// Merges the delta entries and writes the file hamdex.resident in the directory of the index.
/// `query --resident` and programs that hold the index in memory then map that file and share it,
/// until the index is written again.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex index resident pages.idx --memory 4G\n  \
                       hamdex query pages.idx --fingerprint 0123456789abcdef --resident --memory 4G")]
pub(crate) struct ResidentArgs {
    /// Directory of the index
    index: PathBuf,
    #[command(flatten)]
    memory: MemoryArg,
}

#[derive(Serialize)]
struct Saved {
    bytes: u64,
}

impl ResidentArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let index = AnyIndex::open(&self.index)?;
        // A later merge by a writer would make the file useless.
        index.merge(&session.console)?;
        session.console.begin("saving", None);
        let bytes = index.save_resident(self.memory.memory.0)?;
        let bytes = bytes.ok_or_else(|| stored::does_not_fit(&self.index, &self.memory))?;
        let mut table = Table::list();
        table.pair("bytes", size::bytes(bytes as f64));
        session.report(&Saved { bytes }, &table)
    }
}
