//! Shards with a state: inputs are done one after another, those that are new to the state.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hamdex::dedup::{NewShard, ShardInfo, State, key_hash};
use hamdex::{Fingerprint, IndexOptions, Progress, for_width};
use hamdex_io::host::Host;
use serde::Serialize;

use super::files::{self, Files};
use super::form::Form;
use super::task::Task;
use super::write::Members;
use super::{DedupArgs, Place};
use crate::advise::{self, Overrides, Resolved};
use crate::console::Console;
use crate::draw::table::Table;
use crate::failure::{Failure, Result};
use crate::input::{Inputs, Kind, Source, is_index};
use crate::output::is_stdout;
use crate::session::Session;
use crate::settings;
use crate::size;
use crate::stored;

/// Bytes at both ends of a file that stand for what it holds, beside its size.
const END: u64 = 1 << 16;

/// A shard on its way into the state.
pub(super) struct Shard<'a, F: Fingerprint> {
    pub(super) state: &'a mut State<F>,
    todo: &'a Todo,
    stage: Stage,
}

impl<F: Fingerprint> Shard<'_, F> {
    /// Returns the path of a result.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.todo.results.join(name)
    }

    /// Makes the shard part of the state; its results get their name.
    pub(super) fn commit(
        &mut self,
        members: &Members<'_, F>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let Some(trail) = &members.choice.trail else { return Ok(()) };
        let Todo { input, content, results } = self.todo;
        // From here on the state decides what happens to it.
        self.stage.left = true;
        let shard = NewShard { input, content, results: Some((&self.stage.path, results)) };
        let decided = (&members.choice.decisions, trail);
        Ok(self.state.commit(&shard, decided, &|at| members.known(at), progress)?)
    }
}

/// An input, and where its results go.
#[derive(Debug)]
struct Todo {
    input: String,
    content: String,
    results: PathBuf,
}

/// The result of a run over shards.
#[derive(Debug, Default, Serialize)]
pub(super) struct Run {
    documents: u64,
    kept: u64,
    removed: u64,
    /// Of the removed ones, those near a document of an earlier shard.
    removed_against_state: u64,
    rejects: u64,
    /// Inputs that an earlier run has done.
    skipped: u64,
    /// Inputs that cannot be used; a later run tries them again.
    left_out: Vec<String>,
    seconds: f64,
    shards: Vec<Done>,
}

/// The result of one input.
#[derive(Debug, Serialize)]
struct Done {
    input: String,
    results: String,
    documents: u64,
    kept: u64,
    removed: u64,
}

impl Run {
    /// Prints the result, and fails if an input was skipped.
    pub(super) fn show(&self, session: &Session, output: &Path) -> Result<()> {
        let mut table = Table::list();
        let share = 100.0 * self.removed as f64 / self.documents.max(1) as f64;
        table
            .pair("inputs", size::thousands(self.shards.len() as u64))
            .pair("inputs done earlier", size::thousands(self.skipped))
            .pair("documents", size::thousands(self.documents))
            .pair("kept", size::thousands(self.kept))
            .pair("removed", format!("{} ({share:.1} %)", size::thousands(self.removed)))
            .pair("  near earlier inputs", size::thousands(self.removed_against_state));
        if self.rejects > 0 {
            table.pair("bad rows skipped", size::thousands(self.rejects));
        }
        if !self.left_out.is_empty() {
            table.pair("inputs skipped", size::thousands(self.left_out.len() as u64));
        }
        table.pair("seconds", format!("{:.2}", self.seconds)).pair("written to", output.display());
        session.report(self, &table)?;
        self.require_all()
    }

    fn require_all(&self) -> Result<()> {
        let Some(first) = self.left_out.first() else { return Ok(()) };
        let count = self.left_out.len();
        let done = self.shards.len() + usize::try_from(self.skipped).unwrap_or(usize::MAX);
        Err(Failure::LeftOut { count, inputs: count.saturating_add(done), first: first.clone() })
    }

    pub(super) fn json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Failure::io("report", e.into()))
    }
}

impl DedupArgs {
    /// Does all inputs that the state has not seen, each as a whole.
    pub(super) fn by_shards(&self, session: &Session, path: &Path) -> Result<Run> {
        if is_stdout(&self.output) || self.output.is_file() {
            return Err(Failure::Usage(
                "--state writes a directory for every input; give a directory with -o".to_owned(),
            ));
        }
        if is_index(&self.output) {
            let reason = "is an index; give another directory for the results";
            return Err(Failure::Usage(format!("{} {reason}", self.output.display())));
        }
        let inputs = self.rows.resolve(&self.inputs, self.names(), &session.console)?;
        if let Some(live) = inputs.sources.iter().find(|source| source.is_live()) {
            return Err(Failure::Usage(format!(
                "{} can be read only once, and --state identifies inputs by name and content; \
                    save it to a file",
                live.name
            )));
        }
        self.format.unwrap_or(Form::Jsonl).require(&inputs)?;
        files::apart(&self.output, &inputs)?;
        let header = stored::header(path)?;
        let bits = settings::width(self.width.bits, header.as_ref(), inputs.raw_width()?)?;
        let inputs = Arc::new(inputs);
        let resolved = self.resolve_shards(session, &inputs, path, bits)?;
        resolved.say(&session.console);
        for_width!(bits, F => {
            let state = self.state::<F>(session, path, &resolved)?;
            self.shards::<F>(session, inputs, &resolved, state)
        })
    }

    /// Takes the settings of the state, unless the call asks for others, which are refused later;
    /// those of a new one are chosen by the texts.
    pub(super) fn resolve_shards(
        &self,
        session: &Session,
        inputs: &Arc<Inputs>,
        path: &Path,
        bits: u32,
    ) -> Result<Resolved> {
        let stored = State::<u64>::settings_at(path)?;
        let (Some(header), Some(stored)) = (stored::header(path)?, stored) else {
            let (distance, verify) = (self.distance.distance, self.verify.verify);
            let overrides = Overrides::over_texts(&self.pipeline, distance, verify, bits);
            return advise::resolve(&session.console, inputs, &overrides);
        };
        let pipeline = stored::pipeline_for(&self.pipeline, &header, path, inputs)?;
        let distance = self.distance.distance.unwrap_or(stored.distance);
        let verification = self.verify.verify.unwrap_or(stored.verification);
        session
            .console
            .say(&format!("distance {distance} and verification {verification}, from the state"));
        Ok(Resolved { pipeline, distance, verification, advice: None })
    }

    fn state<F: Fingerprint>(
        &self,
        session: &Session,
        path: &Path,
        resolved: &Resolved,
    ) -> Result<State<F>> {
        let memory = self.memory.memory.0;
        let near = self.near(resolved.distance, resolved.verification)?;
        if State::<F>::settings_at(path)?.is_some() {
            let options = IndexOptions::new().memory(memory);
            let state = State::open(path, &options, &session.console)?;
            state.require(&near)?;
            return Ok(state);
        }
        let mut options = IndexOptions::new().memory(memory);
        if let Some(pipeline) = &resolved.pipeline {
            options = options.text(pipeline);
        }
        match State::create(path, &options, &near) {
            Err(hamdex::Error::AlreadyExists { path }) if is_index(&path) => Err(Failure::refused(
                path,
                "is an index that --state did not make; compare with it by --against, or give a \
                    directory that does not exist",
            )),
            state => Ok(state?),
        }
    }

    fn shards<F: Fingerprint>(
        &self,
        session: &Session,
        inputs: Arc<Inputs>,
        resolved: &Resolved,
        mut state: State<F>,
    ) -> Result<Run> {
        let started = std::time::Instant::now();
        let mut run = Run::default();
        let todo = self.todo(&inputs, &state, &session.console)?;
        // An empty directory is removed again.
        let _place = Place::make(Some(&self.output))?;
        let Ok(Inputs { sources, names, .. }) = Arc::try_unwrap(inputs) else { return Ok(run) };
        for (source, todo) in sources.into_iter().zip(todo) {
            let Some(todo) = todo else {
                run.skipped += 1;
                continue;
            };
            session.console.check()?;
            let name = source.name.clone();
            let one = Arc::new(Inputs { sources: vec![source], names: names.clone(), drawn: None });
            let stage = Stage::make(state.stage(&self.output)?)?;
            let files = Files::within(&stage.path, self.format.unwrap_or(Form::Jsonl));
            let mut shard = Shard { state: &mut state, todo: &todo, stage };
            let console = &session.console;
            let done = &mut |report: &super::Report<'_>| {
                console.say(&format!(
                    "{name}: kept {} of {}",
                    size::thousands(report.kept),
                    size::thousands(report.documents)
                ));
                run.documents += report.documents;
                run.kept += report.kept;
                run.removed += report.removed;
                run.removed_against_state += report.removed_against_index;
                run.rejects += report.rejects;
                run.shards.push(Done {
                    input: name.clone(),
                    results: todo.results.display().to_string(),
                    documents: report.documents,
                    kept: report.kept,
                    removed: report.removed,
                });
                Ok(())
            };
            let task = Task { args: self, session, inputs: &one, resolved, files: &files };
            match task.run::<F>(None, None, Some(&mut shard), done) {
                // One bad file must not stop the ones after it.
                Err(failure) if failure.is_of_data() => {
                    let failure = format!("{name}: {failure}");
                    console.say(&format!("{failure}; skipped"));
                    run.left_out.push(failure);
                }
                done => done?,
            }
        }
        run.seconds = started.elapsed().as_secs_f64();
        Ok(run)
    }

    /// Returns the work for each input; `None` for a finished one.
    fn todo<F: Fingerprint>(
        &self,
        inputs: &Inputs,
        state: &State<F>,
        console: &Console,
    ) -> Result<Vec<Option<Todo>>> {
        let names = files::shards(inputs, "--state")?;
        // Of shards with the same name the last one wins.
        let known: HashMap<&str, &ShardInfo> =
            state.shards().iter().map(|shard| (shard.input.as_str(), shard)).collect();
        let mut todo = Vec::with_capacity(names.len());
        for (source, name) in inputs.sources.iter().zip(names) {
            let (input, content) = (source.canonical_name(), content(source)?);
            let results = self.output.join(name);
            let before = known.get(input.as_str()).copied();
            if let Some(before) = before.filter(|before| before.content == content) {
                let here = std::path::absolute(&results).ok();
                if let Some(place) =
                    before.results.as_ref().filter(|&place| here.as_ref() != Some(place))
                {
                    console.say(&format!("{}: done earlier, in {}", source.name, place.display()));
                }
                todo.push(None);
                continue;
            }
            if results.symlink_metadata().is_ok() {
                let reason = if before.is_some() {
                    format!(
                        "has the results of {} before it changed; rename the changed file, or \
                            write its results to another directory with -o",
                        source.name
                    )
                } else {
                    format!(
                        "exists, but this state did not make it from {}; move it away, or give \
                            another directory with -o",
                        source.name
                    )
                };
                return Err(Failure::refused(&results, reason));
            }
            todo.push(Some(Todo { input, content, results }));
        }
        Ok(todo)
    }
}

/// The directory of results on their way; it goes unless they are left to the state.
struct Stage {
    path: PathBuf,
    left: bool,
}

impl Stage {
    fn make(path: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&path).map_err(|e| Failure::io(&path, e))?;
        Ok(Self { path, left: false })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.left {
            // The next run removes the rest.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Stands for what an input holds: its size and both ends, or the list of its files.
fn content(source: &Source) -> Result<String> {
    let (bytes, read) = match &source.kind {
        Kind::Directory(listing) => (listing.bytes, format!("{:?}", listing.files).into_bytes()),
        Kind::Lines
        | Kind::Json
        | Kind::Columnar(_)
        | Kind::Delimited(_)
        | Kind::Raw(_)
        | Kind::Text
        | Kind::Warc => ends(Path::new(&source.name)).map_err(|e| Failure::io(&source.name, e))?,
    };
    Ok(format!("{bytes} bytes, digest {:032x}", key_hash(&read)))
}

/// Returns the size of a file, and the bytes of its beginning and its end.
fn ends(path: &Path) -> std::io::Result<(u64, Vec<u8>)> {
    let mut file = std::fs::File::open(path)?;
    let len = file.metadata()?.len();
    let mut read = Vec::new();
    file.by_ref().take(END).read_to_end(&mut read)?;
    file.seek(SeekFrom::Start(len.saturating_sub(END).max(END.min(len))))?;
    file.take(END).read_to_end(&mut read)?;
    Ok((len, read))
}
