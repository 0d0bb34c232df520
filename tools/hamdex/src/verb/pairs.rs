//! `pairs`: an index or documents become all pairs within k bits, each once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Args;
use hamdex::join::{self, Copies, DocumentPair, JoinOptions, UnionFind};
use hamdex::verify::EvidenceFile;
use hamdex::verify::{DuplicateRule, Verification};
use hamdex::{Fingerprint, Index, for_width};
use hamdex_io::host::Host;
use rayon::prelude::*;
use serde::Serialize;

use super::gather::{self, Carrier, Gathered, Target};
use crate::advise::{self, Overrides, Resolved};
use crate::costs;
use crate::failure::{Failure, Result};
use crate::input::{Ids, Inputs, Wanted};
use crate::key::Name;
use crate::options::verification::VerifyArg;
use crate::options::{DistanceArg, MemoryArg, PipelineArgs, RowArgs, TmpArg, WidthArg};
use crate::output::Output;
use crate::session::Session;
use crate::size;
use crate::stored;
use crate::visible::visible;

/// Equal fingerprints above which a warning names the number of their pairs.
const MANY_COPIES: u64 = 10_000;

/// List all pairs of documents within k bits
///
/// Prints id, id and distance separated by tabs, in any order, and the similarity as a fourth field
/// if pairs are verified. Every pair appears once; copies of one text are pairs at distance 0. With
/// --against, the first id is from INDEX and the second from the other index. Without -k, a sample
/// of the texts chooses distance and verification.
///
/// With --spanning, only a few of the pairs are printed, which connect the same documents as all:
/// n - 1 pairs for a group of n documents.
///
/// After a kill, FILE of -o is absent or the earlier one; the same command starts again.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex pairs pages.idx -k 3 -o pairs.tsv")]
pub(crate) struct PairsArgs {
    /// An index, or documents: .jsonl, .txt, .html, directories, raw .u64, - for standard input
    #[arg(required_unless_present = "files_from", value_name = "INDEX|INPUT")]
    inputs: Vec<PathBuf>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// List the pairs of a document of the index with a document of this other index
    #[arg(long, value_name = "INDEX")]
    against: Option<PathBuf>,
    /// List n - 1 pairs that connect a group of n documents: a spanning forest
    #[arg(long, conflicts_with = "against")]
    spanning: bool,
    /// Begin with a line of column names
    #[arg(long)]
    header: bool,
    #[command(flatten)]
    distance: DistanceArg,
    #[command(flatten)]
    width: WidthArg,
    #[command(flatten)]
    pipeline: PipelineArgs,
    #[command(flatten)]
    verify: VerifyArg,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    memory: MemoryArg,
    #[command(flatten)]
    tmp: TmpArg,
}

#[derive(Serialize)]
struct Pair<'a> {
    id_a: Name<'a>,
    id_b: Name<'a>,
    distance: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
}

/// Writes pairs in the form that was asked for.
struct Writer {
    output: Output,
    json: bool,
}

impl Writer {
    fn pair(&mut self, a: &[u8], b: &[u8], distance: u32, similarity: Option<f64>) -> Result<()> {
        let pair = Pair { id_a: Name::of(a), id_b: Name::of(b), distance, similarity };
        if self.json {
            return self.output.json(&pair);
        }
        let terminal = self.output.is_terminal();
        self.output.with(|out| {
            if terminal {
                let (a, b) = (pair.id_a.to_string(), pair.id_b.to_string());
                write!(out, "{}\t{}\t{distance}", visible(&a), visible(&b))?;
            } else {
                write!(out, "{}\t{}\t{distance}", pair.id_a, pair.id_b)?;
            }
            match similarity {
                Some(similarity) => writeln!(out, "\t{similarity:.4}"),
                None => writeln!(out),
            }
        })
    }
}

impl PairsArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let target = Target::of(&self.inputs, &self.width, &self.pipeline)?;
        let writer = Writer {
            output: Output::open(self.output.as_deref(), &session.console, session.overwrite)?,
            json: session.json,
        };
        let (found, output) = match target {
            Target::Index(path, header) => for_width!(header.bits, F => {
                self.verify.require_stored(header.keeps_features)?;
                let index = stored::read_only_of::<F>(&path)?;
                let verify = self.verify.or_as_made(&header, &session.console)?;
                let other = self.against.as_deref().map(|other| {
                    stored::require(other, Some(header.bits))?;
                    stored::read_only_of::<F>(other)
                });
                self.of_index(session, (&index, other.transpose()?), verify, writer)
            })?,
            Target::Documents if self.against.is_some() => {
                return Err(Failure::Usage(
                    "--against compares two indexes; build one from these documents first, or \
                        use 'hamdex dedup --against'"
                        .to_owned(),
                ));
            }
            Target::Documents => {
                let (inputs, bits) =
                    gather::resolve(session, &self.inputs, &self.rows, &self.width, &self.tmp)?;
                let (distance, verify) = (self.distance.distance, self.verify.verify);
                let overrides = Overrides::over_texts(&self.pipeline, distance, verify, bits);
                let resolved = advise::resolve(&session.console, &inputs, &overrides)?;
                resolved.say(&session.console);
                for_width!(bits, F => self.of_documents::<F>(session, &inputs, &resolved, writer))?
            }
        };
        session.console.end_phase();
        output.finish()?;
        let pairs = if found == 1 { "pair" } else { "pairs" };
        session.console.say(&format!("{} {pairs}", size::thousands(found)));
        Ok(())
    }

    fn of_index<F: Fingerprint>(
        &self,
        session: &Session,
        (index, other): (&Index<F>, Option<Index<F>>),
        verify: VerifyArg,
        mut writer: Writer,
    ) -> Result<(u64, Output)> {
        let verification = verify.check();
        self.head(&mut writer, verification != Verification::None)?;
        let distance = self.distance.distance.unwrap_or(index.distance());
        let carrier = Carrier::default();
        let near = DuplicateRule::new(distance).verify(verification).memory(self.memory.memory.0);
        let mut write = |pair: DocumentPair<'_>| {
            carrier.stop(writer.pair(pair.a, pair.b, pair.distance, pair.similarity))
        };
        let console = &session.console;
        let found = match &other {
            Some(other) => index.pairs_with(other, near, console, &mut write),
            None if self.spanning => {
                let tmp = self.tmp.directory().map_or_else(std::env::temp_dir, Path::to_path_buf);
                index.spanning_forest(near, &tmp, console, &mut write)
            }
            None => index.pairs(near, console, &mut write),
        };
        Ok((carrier.resolve(found)?, writer.output))
    }

    /// Writes the names of the columns, if they are asked for.
    fn head(&self, writer: &mut Writer, similarity: bool) -> Result<()> {
        if !self.header || writer.json {
            return Ok(());
        }
        let last = if similarity { "\tsimilarity" } else { "" };
        writer.output.with(|out| writeln!(out, "id_a\tid_b\tdistance{last}"))
    }

    fn of_documents<F: Fingerprint>(
        &self,
        session: &Session,
        inputs: &Arc<Inputs>,
        resolved: &Resolved,
        mut writer: Writer,
    ) -> Result<(u64, Output)> {
        let wanted = Wanted::by(resolved.verification);
        let pipeline = resolved.pipeline.as_ref();
        let gathered: Gathered<F> = gather::gather(
            session,
            inputs,
            &self.rows,
            (&self.tmp, self.memory.memory.0),
            pipeline,
            (wanted, Ids::Labels),
        )?;
        let evidence = gathered.evidence.of(resolved.verification);
        self.head(&mut writer, evidence.is_some())?;
        let copies = Copies::new(&gathered.fingerprints)?;
        // Without a check, the first document of a fingerprint stands for all in a forest.
        let first_only = self.spanning && evidence.is_none();
        for group in copies.groups() {
            let len = group.len() as u64;
            if len > MANY_COPIES && !first_only {
                session.console.say(&format!(
                    "{} documents have the same fingerprint, {} pairs among themselves",
                    size::thousands(len),
                    size::thousands(len * (len - 1) / 2)
                ));
            }
        }
        let carrier = Carrier::default();
        let count = u32::try_from(gathered.fingerprints.len()).expect("copies are counted so");
        let sets = self.spanning.then(|| UnionFind::new(count));
        let shared = Mutex::new(Found { writer, count: 0, sets });
        let check = Checked { resolved, evidence, gathered: &gathered, shared: &shared };
        let equal = copies.groups().collect::<Vec<_>>().into_par_iter().try_for_each(|group| {
            let firsts = if first_only { group.get(..1).unwrap_or_default() } else { group };
            firsts.iter().zip(1..).try_for_each(|(&a, later)| {
                let others = group.get(later..).unwrap_or_default();
                carrier.stop(check.write(&[a], others, 0))
            })
        });
        let costs = costs::kept()?;
        let joined = equal.and_then(|()| {
            let (fingerprints, console) = (&gathered.fingerprints, &session.console);
            // The fingerprints and their copies take half of the memory or more already.
            let options = JoinOptions::new(resolved.distance).memory(self.memory.memory.0 / 2);
            let options = options.costs(costs);
            join::self_join(fingerprints, options, console, &|batch| {
                batch.iter().try_for_each(|pair| {
                    let [ours, theirs] = [pair.a, pair.b].map(|fingerprint| {
                        let all = copies.of(fingerprint);
                        if first_only { all.get(..1).unwrap_or_default() } else { all }
                    });
                    carrier.stop(check.write(ours, theirs, pair.distance))
                })
            })
        });
        carrier.resolve(joined)?;
        let found = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((found.count, found.writer.output))
    }
}

/// What was written so far.
struct Found {
    writer: Writer,
    count: u64,
    /// The groups that the written pairs connect, if only a spanning forest is wanted.
    sets: Option<UnionFind>,
}

impl Found {
    /// Returns true if the written pairs connect two positions already.
    fn connects(&mut self, a: u32, b: u32) -> bool {
        self.sets.as_mut().is_some_and(|sets| sets.find(a) == sets.find(b))
    }
}

/// Writes the near documents that pass, from several threads at once.
struct Checked<'a, F> {
    resolved: &'a Resolved,
    evidence: Option<&'a EvidenceFile>,
    gathered: &'a Gathered<F>,
    shared: &'a Mutex<Found>,
}

impl<F: Fingerprint> Checked<'_, F> {
    fn found(&self) -> MutexGuard<'_, Found> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the pairs between two sets of positions that pass.
    fn write(&self, ours: &[u32], theirs: &[u32], distance: u32) -> Result<()> {
        let Resolved { verification, distance: within, .. } = *self.resolved;
        for &a in ours {
            for &b in theirs {
                if self.found().connects(a, b) {
                    continue;
                }
                let (first, second) = (a.min(b) as usize, a.max(b) as usize);
                let similarity = match self.evidence {
                    None => None,
                    Some(evidence) => {
                        let pair = (distance, first, second);
                        let passed = evidence.check_within(verification, within, pair, &())?;
                        if passed.is_none() {
                            continue;
                        }
                        passed
                    }
                };
                let keys = (self.gathered.key(first)?, self.gathered.key(second)?);
                let mut found = self.found();
                // Another thread may have connected them during the check.
                if found.sets.as_mut().is_some_and(|sets| !sets.union(a, b)) {
                    continue;
                }
                found.writer.pair(&keys.0, &keys.1, distance, similarity)?;
                found.count += 1;
            }
        }
        Ok(())
    }
}
