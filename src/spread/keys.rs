//! Keys: one number per table for each fingerprint, equal if the prefixes are equal.
//!
//! ```text
//! key = 0 | 15 bits: table | 48 bits: the first bits of the prefix, low-aligned
//! ```
//!
//! Tables of all levels are numbered consecutively, shorter prefixes first, so a key identifies its
//! level. A prefix that is cut at 48 bits makes larger groups and loses no pair.

use std::ops::Range;

use crate::bits::{Bound, Owner, binomial};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::{self, MAX_TABLES, Permutation};

/// Maximum prefix bits in a key.
const PREFIX_BITS: u32 = 48;
/// Maximum number of tables of all levels, which fits a key with a first bit of 0.
const NODES_MAX: u64 = 1 << 15;
/// Size of a group that one machine splits further at the speed of its cache.
const GROUP: f64 = (1 << 18) as f64;
/// Maximum number of leading blocks at the first level.
const LEAD_MAX: u32 = 4;

/// The keys that near fingerprints share.
///
/// Levels depend only on distance and count, so every machine computes the same keys.
///
/// ```
/// use hamdex::spread::Keys;
///
/// let keys = Keys::<u64>::new(3, 8_000_000_000)?;
/// assert_eq!((keys.tables(), keys.levels()), (4, 5));
/// let key = keys.first(42).next().unwrap();
/// assert_eq!(keys.below(key, 42).count(), 4);
/// assert!(keys.splits(key));
/// assert_eq!(keys.distance(), 3);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Keys<F> {
    distance: u32,
    nodes: Vec<Node<F>>,
    /// First node of each level, and the end of the last level.
    starts: Vec<usize>,
}

/// One table of one level.
#[derive(Debug, Clone)]
struct Node<F> {
    permutation: Permutation,
    /// Number of prefix bits in its keys.
    kept: u32,
    /// Mask of those bits within a fingerprint.
    lead: F,
    /// Leads of its earlier siblings, at each level on the path to it.
    skipped: Vec<F>,
    owner: Owner<F>,
    /// The tables one level below.
    below: Range<usize>,
}

impl<F: Fingerprint> Keys<F> {
    /// Creates the keys for a distance and about `count` fingerprints.
    ///
    /// The first level has the fewest tables whose groups one machine can split within its cache,
    /// up to 128 tables. The count affects only cost.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidDistance`] if the distance exceeds a quarter of the width.
    pub fn new(distance: u32, count: u64) -> Result<Self> {
        if distance > F::MAX_DISTANCE {
            let (bits, max) = (F::BITS, F::MAX_DISTANCE);
            return Err(Error::InvalidDistance { distance, bits, max });
        }
        let levels = levels(F::BITS, distance, count);
        let mut keys = Self { distance, nodes: Vec::new(), starts: vec![0] };
        for depth in 1..=levels.len() {
            keys.add_level(&levels[..depth])?;
        }
        Ok(keys)
    }

    /// Adds the tables of the last of these levels.
    fn add_level(&mut self, levels: &[(u32, u32)]) -> Result<()> {
        let start = self.nodes.len();
        let siblings = levels.last().map_or(1, |&(blocks, lead)| binomial(blocks, lead));
        let siblings = usize::try_from(siblings).expect("a level has at most 128 tables");
        let above = self.starts.iter().rev().nth(1).copied();
        for (at, table) in plan::nested_tables(F::BITS, levels)?.iter().enumerate() {
            let permutation = table.permutation().clone();
            let kept = table.prefix_bits().min(PREFIX_BITS);
            let lead = permutation.invert(F::high_mask(kept));
            let first = start + at - at % siblings;
            let mut skipped = Vec::new();
            if let Some(above) = above {
                let parent = &mut self.nodes[above + at / siblings];
                skipped.clone_from(&parent.skipped);
                parent.below = first..first + siblings;
            }
            skipped.extend(self.nodes[first..].iter().map(|sibling| sibling.lead));
            let bounds = skipped.iter().map(|&lead| Bound::at_least(lead, 1));
            let owner = Owner::new(bounds.chain([Bound::at_most(lead, 0)]).collect());
            self.nodes.push(Node { permutation, kept, lead, skipped, owner, below: 0..0 });
        }
        self.starts.push(self.nodes.len());
        Ok(())
    }

    /// Returns the distance for which the keys are complete.
    pub fn distance(&self) -> u32 {
        self.distance
    }

    /// Returns the number of keys of a fingerprint at the first level.
    pub fn tables(&self) -> usize {
        self.starts[1]
    }

    /// Returns the number of levels, the first one included.
    pub fn levels(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the keys of a fingerprint, one per table of the first level.
    pub fn first(&self, fingerprint: F) -> impl Iterator<Item = u64> {
        self.keys(0..self.tables(), fingerprint)
    }

    /// Returns the keys of a member one level below the key of a split group.
    ///
    /// Empty if `key` is at the last level or is not a key.
    pub fn below(&self, key: u64, member: F) -> impl Iterator<Item = u64> {
        let below = self.node(key).map_or(0..0, |node| node.below.clone());
        self.keys(below, member)
    }

    /// Returns true if the group of a key can be split.
    pub fn splits(&self, key: u64) -> bool {
        self.node(key).is_some_and(|node| !node.below.is_empty())
    }

    /// Returns true if a near pair belongs to this key.
    ///
    /// A near pair may share several keys and belongs to one of them: that of the first table, at
    /// every level. `differing` is the XOR of the two fingerprints.
    ///
    /// ```
    /// use hamdex::spread::Keys;
    ///
    /// let keys = Keys::<u64>::new(3, 1_000_000)?;
    /// let (a, b) = (0x00ff_u64, 0x00fe);
    /// let shared = keys.first(a).zip(keys.first(b)).filter(|(a, b)| a == b);
    /// assert_eq!(shared.filter(|&(key, _)| keys.owns(key, a ^ b)).count(), 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn owns(&self, key: u64, differing: F) -> bool {
        self.node(key).is_some_and(|node| node.owner.owns(differing))
    }

    /// Returns true if the number is the key of a table.
    pub(super) fn knows(&self, key: u64) -> bool {
        self.node(key).is_some()
    }

    fn node(&self, key: u64) -> Option<&Node<F>> {
        self.nodes.get(usize::try_from(key >> PREFIX_BITS).ok()?)
    }

    fn keys(&self, nodes: Range<usize>, fingerprint: F) -> impl Iterator<Item = u64> {
        let numbered = (nodes.start as u64..).zip(&self.nodes[nodes]);
        numbered.map(move |(number, node)| {
            let prefix = node.permutation.apply(fingerprint) >> (F::BITS - node.kept);
            let prefix = u64::try_from(prefix.widen()).expect("at most 48 bits");
            number << PREFIX_BITS | prefix
        })
    }
}

/// Chooses the blocks and leading blocks of each level.
pub(super) fn levels(bits: u32, distance: u32, count: u64) -> Vec<(u32, u32)> {
    // Distance 0 needs no blocks; two are the minimum.
    let apart = distance.max(1);
    let affordable = |&lead: &u32| binomial(apart + lead, lead) <= MAX_TABLES as u64;
    let prefix = |lead: u32| bits / (apart + lead) * lead;
    let small = |lead: &u32| count as f64 / f64::from(prefix(*lead)).exp2() <= GROUP;
    let leads = || (1..=LEAD_MAX).take_while(affordable);
    let lead = leads().find(small).or_else(|| leads().last());
    let lead = lead.expect("no distance has more than 128 tables with one block");
    let mut levels = vec![(apart + lead, lead)];
    let (mut rest, mut tables) = (bits, binomial(apart + lead, lead));
    let (mut nodes, mut blocks, mut lead) = (tables, apart + lead, lead);
    loop {
        // The longest lead leaves the fewest bits to the next level.
        rest -= rest.div_ceil(blocks) * lead;
        (blocks, lead) = (apart + 1, 1);
        // A split pays off if groups shrink by more than rows multiply.
        let pays = f64::from(rest / blocks).exp2() >= f64::from(2 * blocks);
        tables = tables.saturating_mul(u64::from(blocks));
        nodes = nodes.saturating_add(tables);
        if !pays || nodes > NODES_MAX || bits - rest >= PREFIX_BITS {
            return levels;
        }
        levels.push((blocks, lead));
    }
}
