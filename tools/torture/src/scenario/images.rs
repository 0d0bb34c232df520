//! Images: what a disk may hold after a loss of power, rebuilt from a record of writes and syncs.
//!
//! The shim records what a child does below its directory. A file keeps what was written before its
//! last sync. Of what was written since, an image has nothing, everything, a beginning, or any
//! sectors. Names change by directory: those before its last sync are there, of the others none,
//! all, a beginning, or any.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use fastrand::Rng;

use crate::report::{Finding, Verdict};

/// Bytes that a disk writes as a whole.
const SECTOR: usize = 512;

/// A file by its number in the record; numbers of the system are used again.
type Node = usize;

/// What the shim has recorded, in its order.
#[derive(Debug)]
enum Event {
    Create {
        node: u64,
        name: String,
    },
    Truncate {
        node: u64,
        length: usize,
    },
    Write {
        node: u64,
        at: usize,
        data: Vec<u8>,
    },
    Sync {
        node: u64,
    },
    SyncDirectory {
        name: String,
    },
    Rename {
        from: String,
        to: String,
    },
    Directory {
        name: String,
    },
    Link {
        from: String,
        to: String,
    },
    Unlink {
        name: String,
    },
    Line(String),
    /// Something outside the directory.
    Elsewhere,
}

/// A record of everything that a child did below its directory.
#[derive(Debug)]
pub(crate) struct Recording {
    events: Vec<Event>,
}

impl Recording {
    /// Reads a record; `below` is the beginning of all names, which is removed.
    pub(crate) fn read(file: &Path, below: &str) -> Verdict<Self> {
        let bytes = fs::read(file)?;
        let mut rest = bytes.as_slice();
        let mut events = Vec::new();
        while !rest.is_empty() {
            let event = event(&mut rest, below)
                .ok_or_else(|| Finding::wrong("the record of the shim does not decode"))?;
            events.push(event);
        }
        Ok(Self { events })
    }

    /// Returns the numbers of all syncs.
    pub(crate) fn syncs(&self) -> Vec<usize> {
        let is_sync =
            |event: &Event| matches!(event, Event::Sync { .. } | Event::SyncDirectory { .. });
        let numbered = self.events.iter().enumerate();
        numbered.filter(|(_, event)| is_sync(event)).map(|(number, _)| number).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Replays the first events, without the sync of number `left_out`.
    pub(crate) fn replay(&self, count: usize, left_out: Option<usize>) -> Disk {
        let mut disk = Disk::default();
        for (number, event) in self.events.iter().take(count).enumerate() {
            if left_out != Some(number) {
                disk.apply(event);
            }
        }
        disk
    }
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (first, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u64::from_be_bytes(*first))
}

fn event(rest: &mut &[u8], below: &str) -> Option<Event> {
    let (what, behind) = rest.split_first()?;
    *rest = behind;
    let (node, at) = (number(rest)?, usize::try_from(number(rest)?).ok()?);
    let mut lengths = [0; 3];
    for length in &mut lengths {
        *length = usize::try_from(number(rest)?).ok()?;
    }
    let mut parts = lengths.map(|_| &[][..]);
    for (part, length) in parts.iter_mut().zip(lengths) {
        (*part, *rest) = rest.split_at_checked(length)?;
    }
    let [one, two, data] = parts;
    let name = |bytes: &[u8]| {
        let rest = std::str::from_utf8(bytes).ok()?.strip_prefix(below)?;
        // RocksDB names some directories with a slash at the end, and doubles others.
        Some(
            rest.split('/')
                .filter(|part| !part.is_empty())
                .fold(String::new(), |name, part| name + "/" + part),
        )
    };
    let named = match what {
        b't' => return Some(Event::Truncate { node, length: at }),
        b'w' => return Some(Event::Write { node, at, data: data.to_vec() }),
        b's' => return Some(Event::Sync { node }),
        b'k' => return Some(Event::Line(String::from_utf8_lossy(data).into_owned())),
        b'c' => name(one).map(|name| Event::Create { node, name }),
        b'd' => name(one).map(|name| Event::SyncDirectory { name }),
        b'r' => name(one).zip(name(two)).map(|(from, to)| Event::Rename { from, to }),
        b'm' => name(one).map(|name| Event::Directory { name }),
        b'l' => name(one).zip(name(two)).map(|(from, to)| Event::Link { from, to }),
        b'u' => name(one).map(|name| Event::Unlink { name }),
        _ => return None,
    };
    Some(named.unwrap_or(Event::Elsewhere))
}

/// A change of a file's content.
#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, data: Vec<u8> },
    Truncate(usize),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Truncate(length) => content.resize(*length, 0),
            Self::Write { at, data } => write(content, *at, data),
        }
    }
}

fn write(content: &mut Vec<u8>, at: usize, data: &[u8]) {
    let end = at + data.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    if let Some(place) = content.get_mut(at..end) {
        place.copy_from_slice(data);
    }
}

#[derive(Debug, Default)]
struct File {
    synced: Vec<u8>,
    pending: Vec<Change>,
}

impl File {
    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.synced);
        }
    }

    /// Returns a content that the disk may hold.
    fn drawn(&self, rng: &mut Rng) -> Vec<u8> {
        let mut content = self.synced.clone();
        match rng.u32(0..4) {
            0 => (),
            1 => self.pending.iter().for_each(|change| change.apply(&mut content)),
            2 => {
                let kept = rng.usize(0..=self.pending.len());
                for change in self.pending.iter().take(kept) {
                    change.apply(&mut content);
                }
                if let Some(Change::Write { at, data }) = self.pending.get(kept) {
                    // The last write is torn within or between sectors.
                    let part = data.get(..rng.usize(0..=data.len())).unwrap_or_default();
                    write(&mut content, *at, part);
                }
            }
            _ => {
                for change in &self.pending {
                    let Change::Write { at, data } = change else {
                        change.apply(&mut content);
                        continue;
                    };
                    let mut begin = 0;
                    while begin < data.len() {
                        let end = data.len().min((at + begin + 1).next_multiple_of(SECTOR) - at);
                        if let Some(part) = data.get(begin..end).filter(|_| rng.bool()) {
                            write(&mut content, at + begin, part);
                        }
                        begin = end;
                    }
                }
            }
        }
        content
    }
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    File(Node),
    Directory,
}

/// A change of names; both parts happen together.
#[derive(Debug, Clone)]
struct Naming {
    set: Option<(String, Entry)>,
    removed: Option<String>,
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<String, Entry>) {
        if let Some(name) = &self.removed {
            names.remove(name);
        }
        let Some((name, entry)) = &self.set else { return };
        names.insert(name.clone(), *entry);
        if let (Entry::Directory, Some(from)) = (entry, &self.removed) {
            let within: Vec<_> =
                names.keys().filter(|name| moved(name, from, "").is_some()).cloned().collect();
            for old in within {
                if let (Some(new), Some(entry)) = (moved(&old, from, name), names.remove(&old)) {
                    names.insert(new, entry);
                }
            }
        }
    }

    /// Returns the directories whose sync makes the change durable.
    fn places(&self) -> impl Iterator<Item = &str> {
        let set = self.set.as_ref().map(|(name, _)| name);
        set.into_iter().chain(&self.removed).map(|name| above(name))
    }
}

/// Returns the new name of what is in a directory that is renamed.
fn moved(name: &str, from: &str, to: &str) -> Option<String> {
    let rest = name.strip_prefix(from)?;
    rest.starts_with('/').then(|| format!("{to}{rest}"))
}

/// Returns the directory of a name.
fn above(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(above, _)| above)
}

/// Files and names as the system sees them, and what of them a sync has made durable.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    files: Vec<File>,
    nodes: HashMap<u64, Node>,
    now: BTreeMap<String, Entry>,
    synced: BTreeMap<String, Entry>,
    pending: Vec<Naming>,
    /// Lines that the child has printed.
    pub(crate) lines: Vec<String>,
}

impl Disk {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Create { node, name } => {
                let number = self.files.len();
                self.files.push(File::default());
                self.nodes.insert(*node, number);
                self.name(Some((name.clone(), Entry::File(number))), None);
            }
            Event::Truncate { node, length } => self.change(*node, Change::Truncate(*length)),
            Event::Write { node, at, data } => {
                self.change(*node, Change::Write { at: *at, data: data.clone() });
            }
            Event::Sync { node } => {
                if let Some(file) = self.file(*node) {
                    file.sync();
                }
            }
            Event::SyncDirectory { name } => {
                let pending = std::mem::take(&mut self.pending);
                for naming in pending {
                    if naming.places().any(|place| place == name) {
                        naming.apply(&mut self.synced);
                    } else {
                        self.pending.push(naming);
                    }
                }
            }
            Event::Rename { from, to } => {
                let Some(entry) = self.now.get(from).copied() else { return };
                // What is in a directory moves with it, also what its own sync has yet to keep.
                for naming in self.pending.iter_mut().filter(|_| entry == Entry::Directory) {
                    let set = naming.set.iter_mut().map(|(name, _)| name);
                    for name in set.chain(&mut naming.removed) {
                        *name = moved(name, from, to).unwrap_or_else(|| name.clone());
                    }
                }
                self.name(Some((to.clone(), entry)), Some(from.clone()));
            }
            Event::Directory { name } => self.name(Some((name.clone(), Entry::Directory)), None),
            Event::Link { from, to } => {
                if let Some(entry) = self.now.get(from).copied() {
                    self.name(Some((to.clone(), entry)), None);
                }
            }
            Event::Unlink { name } => self.name(None, Some(name.clone())),
            Event::Line(text) => self.lines.extend(text.lines().map(str::to_owned)),
            Event::Elsewhere => (),
        }
    }

    fn name(&mut self, set: Option<(String, Entry)>, removed: Option<String>) {
        let naming = Naming { set, removed };
        naming.apply(&mut self.now);
        self.pending.push(naming);
    }

    fn file(&mut self, node: u64) -> Option<&mut File> {
        self.files.get_mut(*self.nodes.get(&node)?)
    }

    fn change(&mut self, node: u64, change: Change) {
        if let Some(file) = self.file(node) {
            file.pending.push(change);
        }
    }

    /// Writes files and directories that the disk may hold to paths that begin with `to`.
    pub(crate) fn write(&self, to: &str, rng: &mut Rng) -> Verdict {
        let mut names = self.synced.clone();
        let (way, mut ended) = (rng.u32(0..4), BTreeSet::new());
        for naming in &self.pending {
            let kept = match way {
                0 => false,
                1 => true,
                2 => {
                    // A beginning of the changes of each directory.
                    if rng.u32(0..4) == 0 {
                        ended.extend(naming.places());
                    }
                    !naming.places().any(|place| ended.contains(place))
                }
                _ => rng.bool(),
            };
            if kept {
                naming.apply(&mut names);
            }
        }
        // In ascending order, so that a directory comes before what is in it.
        for (name, entry) in &names {
            let is_lost =
                |above: &str| !above.is_empty() && names.get(above) != Some(&Entry::Directory);
            let mut place = above(name);
            while !is_lost(place) && !place.is_empty() {
                place = above(place);
            }
            if is_lost(place) {
                continue;
            }
            let path = format!("{to}{name}");
            match entry {
                Entry::Directory => fs::create_dir(path)?,
                Entry::File(node) => {
                    let Some(file) = self.files.get(*node) else { continue };
                    fs::write(path, file.drawn(rng))?;
                }
            }
        }
        Ok(())
    }
}
