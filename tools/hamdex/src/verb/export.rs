//! `export`: an index becomes JSON Lines that `build` turns into an equal index.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::Args;
use hamdex::Progress;
use hamdex::inspect::Header;
use hamdex_io::host::Host;
use serde::Serialize;

use crate::failure::Result;
use crate::input::Export;
use crate::key::Name;
use crate::output::Output;
use crate::session::Session;
use crate::stored;

/// Documents between two reports of progress.
const STEP: u64 = 1 << 14;

/// Write every document and fingerprint of an index
///
/// Prints JSON Lines: first {"hamdex_export":1,...} with all settings of the index, then
/// {"id","fingerprint"} in the order of the keys, and "hamdex_features" for documents with kept
/// features. 'hamdex build NEW EXPORT' makes an equal index; other verbs skip the first line. A
/// secret is never written: build needs the same --secret-file again.
#[allow(clippy::doc_markdown)] // help text, in which backticks would show
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex export pages.idx | zstd > pages.jsonl.zst")]
pub(crate) struct ExportArgs {
    /// Directory of the index
    index: PathBuf,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Line<'a> {
    id: Name<'a>,
    fingerprint: &'a str,
    #[serde(rename = "hamdex_features", skip_serializing_if = "Option::is_none")]
    features: Option<String>,
}

impl ExportArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let header = stored::require(&self.index, None)?;
        let index = stored::read_only(&self.index)?;
        let resources = Header::read_resources(&self.index)?;
        // The export is a snapshot, with any concurrent writes.
        let reader = index.reader()?;
        let mut output = Output::open(self.output.as_deref(), &session.console, session.overwrite)?;
        output.json(&Export::new(&header, &resources))?;
        session.console.begin("exporting", Some(reader.len()));
        let digits = header.bits as usize / 4;
        for (document, count) in reader.documents()?.zip(1..) {
            let (key, fingerprint) = document?;
            let features = if header.keeps_features { reader.features(&key)? } else { None };
            output.json(&Line {
                id: Name::of(&key),
                fingerprint: &format!("{fingerprint:0digits$x}"),
                features: features.map(|features| BASE64.encode(features)),
            })?;
            if count % STEP == 0 {
                session.console.advance(STEP);
            }
        }
        session.console.end_phase();
        output.finish()
    }
}
