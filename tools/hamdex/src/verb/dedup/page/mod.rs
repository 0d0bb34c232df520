//! `dedup --report`: a deduplication becomes one HTML page.

mod body;
pub(in crate::verb) mod difference;
mod figures;
mod prints;
mod seen;
mod summary;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hamdex::Fingerprint;
use hamdex::dedup::{Cluster, Decisions};
use hamdex::text::Pipeline;

pub(super) use self::seen::Seen;
pub(super) use self::summary::Summary;

use self::prints::Prints;
use self::seen::Notes;
use super::report::Report;
use crate::draw::plot;
use crate::failure::Result;
use crate::output::{Output, Overwrite};

/// Groups whose texts are shown, the largest.
const SHOWN: usize = 10;

/// The file of the page, as named on the command line.
#[derive(Debug, Clone)]
pub(super) struct PageFile(PathBuf);

impl FromStr for PageFile {
    type Err = &'static str;

    fn from_str(path: &str) -> Result<Self, Self::Err> {
        match plot::extension(Path::new(path)).as_str() {
            "html" | "htm" => Ok(Self(path.into())),
            _ => Err("expected a name that ends in .html"),
        }
    }
}

/// A page in the making: a file, and the rows seen so far.
#[derive(Debug)]
pub(super) struct Page {
    output: Output,
    /// Nothing before the second pass.
    seen: Seen,
    pub(super) notes: Notes,
    prints: Prints,
    groups: Vec<Group>,
}

/// A group to show: its kept document and the removed one that is farthest from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Group {
    cluster: u32,
    size: u64,
    /// Positions of the two.
    kept: u32,
    far: u32,
    distance: u32,
}

impl PageFile {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Opens the file before the work, so that an unwritable one is reported first.
    pub(super) fn open(&self, overwrite: Overwrite) -> Result<Page> {
        Ok(Page {
            output: Output::file(&self.0, overwrite)?,
            seen: Seen::default(),
            notes: Notes::default(),
            prints: Prints::default(),
            groups: Vec::new(),
        })
    }
}

impl Page {
    /// Chooses the documents whose texts the second pass collects, from all decisions.
    pub(super) fn choose<F: Fingerprint>(
        &mut self,
        decisions: &Decisions<F>,
        pipeline: Option<&Pipeline>,
    ) -> &mut Seen {
        self.prints = Prints::of(decisions.fingerprints());
        self.groups = groups(decisions);
        let wanted = self.groups.iter().flat_map(|group| [group.kept, group.far]);
        self.seen = Seen::new(pipeline, wanted);
        &mut self.seen
    }

    /// Writes the page, complete but without its name yet; told are groups by their size.
    pub(super) fn write(
        mut self,
        report: &Report<'_>,
        sizes: &BTreeMap<usize, u64>,
    ) -> Result<Output> {
        let page = body::page(&self, report, sizes)?;
        self.output.with(|out| out.write_all(page.as_bytes()))?;
        Ok(self.output)
    }
}

/// Returns the largest groups, each with its first member farthest from the kept one.
fn groups<F: Fingerprint>(decisions: &Decisions<F>) -> Vec<Group> {
    let group = |Cluster { number, kept, members, .. }: Cluster<'_>| {
        let apart = |at: u32| decisions.fingerprint(at).distance(decisions.fingerprint(kept));
        let others = members.iter().copied().filter(|&at| at != kept);
        // Of equally far ones the last to come counts: the first member.
        let far = others.rev().max_by_key(|&at| apart(at)).unwrap_or(kept);
        let size = members.len() as u64;
        Group { cluster: number, size, kept, far, distance: apart(far) }
    };
    decisions.clusters().take(SHOWN).map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_by_their_extension() {
        assert!("a.html".parse::<PageFile>().is_ok() && "b/A.HTM".parse::<PageFile>().is_ok());
        for other in ["", "html", "a.pdf", "a.html.gz"] {
            assert!(other.parse::<PageFile>().is_err(), "{other}");
        }
    }
}
