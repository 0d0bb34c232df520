//! The proof of completeness: how many flipped bits defeat every table.
//!
//! A probe of radius r misses a match only if more than r bits of the prefix differ. Bits that are
//! in the same leads are interchangeable and form one atom. The fewest flips that defeat all tables
//! are the minimum of the sum of `x` over atoms, where `x` is at most the size of the atom and sums
//! to at least r + 1 over the atoms of every table. The tables are complete for every distance
//! below that minimum.
//!
//! Branch and bound finds the minimum. Both lower bounds are dual solutions of that covering
//! program in integers, so rounding cannot make a proof claim too much.

use super::MAX_TABLES;
use crate::bits::low_ones;

/// Maximum nodes of one search, so that the construction of a plan always ends.
pub(super) const NODES: u32 = 20_000;

/// Maximum number of atoms: one per bit of the widest fingerprint.
const MAX_ATOMS: usize = u128::BITS as usize;

/// Returns the fewest flipped bits that defeat every table, at most `limit + 1`.
///
/// Each table is given by the mask of its lead (see [`Table::lead`](super::Table::lead)) and the
/// radius of its probes. The tables find every match within k bits if and only if the result
/// exceeds k. Without tables the result is 0. Returns `None` if the proof exceeds its limit, or if
/// there are more than [`MAX_TABLES`] tables.
///
/// ```
/// use hamdex::plan::defeat;
///
// Two halves of eight bits: one flip in each defeats radius 0, two in each defeat radius 1.
/// assert_eq!(defeat(&[(0xf0, 0), (0x0f, 0)], 8, 8), Some(2));
/// assert_eq!(defeat(&[(0xf0, 1), (0x0f, 1)], 8, 8), Some(4));
/// ```
pub fn defeat(tables: &[(u128, u32)], bits: u32, limit: u32) -> Option<u32> {
    if tables.len() > MAX_TABLES {
        return None;
    }
    let leads: Vec<u128> = tables.iter().map(|(lead, _)| lead & low_ones(bits)).collect();
    let needs: Vec<u32> = tables.iter().map(|(_, radius)| radius.saturating_add(1)).collect();
    Cover::new(&leads).smallest(&needs, limit)
}

/// The leads of all tables, reduced to atoms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cover {
    /// Number of bits of each atom.
    sizes: Vec<u32>,
    /// The atoms of each table's lead, as a set.
    tables: Vec<u128>,
}

impl Cover {
    /// Reduces at most [`MAX_TABLES`] leads to their common refinement.
    pub(super) fn new(leads: &[u128]) -> Self {
        // The signature of a bit is the set of tables that it leads.
        let mut atoms: Vec<(u128, u32)> = Vec::new();
        for bit in (0..u128::BITS).rev() {
            let tables = leads.iter().enumerate();
            let signature = tables.fold(0, |set, (table, lead)| set | (lead >> bit & 1) << table);
            match atoms.iter_mut().find(|(known, _)| *known == signature) {
                _ if signature == 0 => {}
                Some((_, size)) => *size += 1,
                None => atoms.push((signature, 1)),
            }
        }
        let tables = (0..leads.len()).map(|table| {
            let atoms = atoms.iter().enumerate();
            atoms.fold(0, |set, (atom, (signature, _))| set | (signature >> table & 1) << atom)
        });
        Self { tables: tables.collect(), sizes: atoms.iter().map(|(_, size)| *size).collect() }
    }

    /// Returns the fewest flips that defeat every table, at most `limit + 1`.
    ///
    /// `needs` is the radius plus one for each table, and 0 for unused tables. Returns `None` if
    /// the proof exceeds its limit.
    pub(super) fn smallest(&self, needs: &[u32], limit: u32) -> Option<u32> {
        let mut nodes = NODES;
        let mut search = Search::new(self, needs, limit.saturating_add(1), false, &mut nodes);
        search.run()
    }

    /// Returns true if no set of `distance` flips defeats every table.
    ///
    /// Consumes `nodes`; returns `None` if they run out.
    pub(super) fn withstands(&self, needs: &[u32], distance: u32, nodes: &mut u32) -> Option<bool> {
        let bound = distance.saturating_add(1);
        Search::new(self, needs, bound, true, nodes).run().map(|flips| flips == bound)
    }
}

/// The state of a node: the minimum and maximum flips of each atom.
#[derive(Clone, Copy)]
struct Bounds {
    low: [u32; MAX_ATOMS],
    high: [u32; MAX_ATOMS],
}

struct Search<'a> {
    atoms: usize,
    bounds: Bounds,
    /// The used tables: the set of their atoms, and the flips that defeat them.
    tables: Vec<(u128, u32)>,
    /// Only solutions with fewer flips are searched for.
    best: u32,
    /// Whether the first solution ends the search.
    any: bool,
    nodes: &'a mut u32,
}

// Atoms are numbered below MAX_ATOMS, which is the length of the arrays.
impl<'a> Search<'a> {
    fn new(cover: &Cover, needs: &[u32], best: u32, any: bool, nodes: &'a mut u32) -> Self {
        let mut bounds = Bounds { low: [0; MAX_ATOMS], high: [0; MAX_ATOMS] };
        bounds.high[..cover.sizes.len()].copy_from_slice(&cover.sizes);
        debug_assert_eq!(cover.tables.len(), needs.len(), "one need per table");
        let tables = cover.tables.iter().copied().zip(needs.iter().copied());
        let tables = tables.filter(|&(_, need)| need > 0).collect();
        Self { atoms: cover.sizes.len(), bounds, tables, best, any, nodes }
    }

    /// Returns the fewest flips, or the initial bound if there are no fewer.
    ///
    /// If `any` is set, returns the first solution that was found.
    fn run(&mut self) -> Option<u32> {
        let bound = self.best;
        if self.tables.iter().any(|&(atoms, need)| sum(&self.bounds.high, atoms) < need) {
            return Some(bound);
        }
        if let Some(flips) = self.greedy().filter(|&flips| flips < self.best) {
            self.best = flips;
        }
        if !(self.any && self.best < bound) {
            self.explore(self.bounds)?;
        }
        Some(self.best)
    }

    /// Flips the atom in most open tables until every table is defeated.
    fn greedy(&self) -> Option<u32> {
        let Bounds { mut low, high } = self.bounds;
        for flips in 0..self.best {
            let open = self.open(&low, &high);
            if open.is_empty() {
                return Some(flips);
            }
            low[self.busiest(&degrees(&open))?] += 1;
        }
        None
    }

    /// Returns the undefeated tables: their atoms that can still be flipped, and missing flips.
    fn open(&self, low: &[u32; MAX_ATOMS], high: &[u32; MAX_ATOMS]) -> Vec<(u128, u32)> {
        let free = (0..self.atoms).filter(|&atom| low[atom] < high[atom]);
        let free = free.fold(0_u128, |set, atom| set | 1 << atom);
        let missing = |&(atoms, need): &(u128, u32)| {
            let done = sum(low, atoms);
            (done < need).then(|| (atoms & free, need - done))
        };
        self.tables.iter().filter_map(missing).collect()
    }

    /// Returns the free atom that is in most open tables.
    fn busiest(&self, degrees: &[u32; MAX_ATOMS]) -> Option<usize> {
        // `max_by_key` returns the last maximum; reversing prefers the first.
        (0..self.atoms).rev().filter(|&atom| degrees[atom] > 0).max_by_key(|&atom| degrees[atom])
    }

    fn explore(&mut self, mut bounds: Bounds) -> Option<()> {
        *self.nodes = self.nodes.checked_sub(1)?;
        let Some(spent) = self.propagate(&mut bounds) else { return Some(()) };
        let open = self.open(&bounds.low, &bounds.high);
        let degrees = degrees(&open);
        let Some(atom) = self.busiest(&degrees) else {
            self.best = spent;
            return Some(());
        };
        let missing = degree_bound(&open, &degrees).max(packing_bound(&open));
        if spent + missing >= self.best {
            return Some(());
        }
        let mut more = bounds;
        more.low[atom] += 1;
        let before = self.best;
        self.explore(more)?;
        if self.any && self.best < before {
            return Some(());
        }
        bounds.high[atom] = bounds.low[atom];
        self.explore(bounds)
    }

    /// Tightens the bounds by single tables; returns the number of flips that are certain.
    ///
    /// Returns `None` if fewer than `best` flips cannot defeat every table within the bounds.
    fn propagate(&self, bounds: &mut Bounds) -> Option<u32> {
        let Bounds { low, high } = bounds;
        loop {
            let spent = low[..self.atoms].iter().sum::<u32>();
            let room = self.best.checked_sub(spent + 1)?;
            for atom in 0..self.atoms {
                high[atom] = high[atom].min(low[atom] + room);
            }
            let mut changed = false;
            for &(atoms, need) in &self.tables {
                let slack = sum(high, atoms).checked_sub(need)?;
                for atom in members(atoms) {
                    let least = high[atom].saturating_sub(slack);
                    changed |= least > low[atom];
                    low[atom] = low[atom].max(least);
                }
            }
            if !changed {
                return Some(spent);
            }
        }
    }
}

/// Returns the sum of the flips of a set of atoms.
fn sum(flips: &[u32; MAX_ATOMS], atoms: u128) -> u32 {
    members(atoms).map(|atom| flips[atom]).sum()
}

/// Returns the members of a set of atoms.
fn members(mut atoms: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let atom = (atoms != 0).then(|| atoms.trailing_zeros() as usize)?;
        atoms &= atoms - 1;
        Some(atom)
    })
}

/// Returns the number of open tables that contain each atom.
fn degrees(open: &[(u128, u32)]) -> [u32; MAX_ATOMS] {
    let mut degrees = [0; MAX_ATOMS];
    for atom in open.iter().flat_map(|&(atoms, _)| members(atoms)) {
        degrees[atom] += 1;
    }
    degrees
}

/// Returns a lower bound: the missing flips of open tables without a common atom add up.
fn packing_bound(open: &[(u128, u32)]) -> u32 {
    let mut order: Vec<(u128, u32)> = open.to_vec();
    order.sort_by_key(|&(atoms, missing)| (std::cmp::Reverse(missing), atoms.count_ones()));
    let (mut taken, mut sum) = (0, 0);
    for (atoms, missing) in order {
        if atoms & taken == 0 {
            taken |= atoms;
            sum += missing;
        }
    }
    sum
}

/// Returns a lower bound: one flip serves at most as many tables as contain its atom.
///
/// The weight of a table is one over the largest degree of its atoms, so the weights of all tables
/// of one atom sum to at most 1: a feasible dual solution.
fn degree_bound(open: &[(u128, u32)], degrees: &[u32; MAX_ATOMS]) -> u32 {
    // Weights are rounded down to fixed point, so the sum never exceeds the exact one.
    const ONE: u64 = 1 << 32;
    let weight = |&(atoms, missing): &(u128, u32)| {
        let degree = members(atoms).map(|atom| degrees[atom]).max().unwrap_or(1);
        ONE / u64::from(degree.max(1)) * u64::from(missing)
    };
    let sum: u64 = open.iter().map(weight).sum();
    u32::try_from(sum.div_ceil(ONE)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
