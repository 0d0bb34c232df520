//! The proof of completeness: how many flipped bits it takes to get past every table.
//!
//! A probe of radius r misses a match only if more than r bits of the prefix differ. Bits that
//! lie in the same leads are interchangeable, so they count as one atom; the fewest flips
//! that defeat all tables are the minimum of the sum of `x` over atoms, where `x` is at most the
//! atom's size and sums to at least r + 1 over the atoms of every table. The tables are complete
//! for every distance below that minimum.
//!
//! The minimum is found by branch and bound. Both lower bounds are dual solutions of that
//! covering program in whole numbers, so rounding can never make a proof say too much.

use super::MAX_TABLES;
use super::permutation::low_ones;

/// Nodes of one search before it is given up, so that no plan can hang its construction.
pub(super) const NODES: u32 = 20_000;

/// The most atoms there can be: one for every bit of the widest fingerprint.
const MAX_ATOMS: usize = u128::BITS as usize;

/// Returns the fewest flipped bits that defeat every table, at most `limit + 1`.
///
/// Tables are given as the mask of their lead (see [`Table::lead`](super::Table::lead)) and the
/// radius their prefix is probed with. They find every match within k bits exactly when the
/// answer is above k. No tables are defeated by 0 flips. `None` if the proof was given up, or
/// there are more than [`MAX_TABLES`] tables.
///
/// ```
/// use hamdex::plan::defeat;
///
/// // Two halves of eight bits: one flip in each gets past exact probes, four past one flip.
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
    /// Number of bits of every atom.
    sizes: Vec<u32>,
    /// The atoms of every table's lead, as a set.
    tables: Vec<u128>,
}

impl Cover {
    /// Reduces leads, [`MAX_TABLES`] at most, to their common refinement.
    pub(super) fn new(leads: &[u128]) -> Self {
        // A bit's signature is the set of tables that lead with it.
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

    /// Returns the fewest flips that defeat every table, `limit + 1` if that is more.
    ///
    /// `needs` is the radius plus one for every table, 0 for tables that are not used. `None` if
    /// the proof was given up.
    pub(super) fn smallest(&self, needs: &[u32], limit: u32) -> Option<u32> {
        let mut nodes = NODES;
        let mut search = Search::new(self, needs, limit.saturating_add(1), false, &mut nodes);
        search.run()
    }

    /// Proves or disproves that no set of `distance` flips defeats every table.
    ///
    /// Takes what it uses from `nodes`; `None` when they run out.
    pub(super) fn withstands(&self, needs: &[u32], distance: u32, nodes: &mut u32) -> Option<bool> {
        let bound = distance.saturating_add(1);
        Search::new(self, needs, bound, true, nodes).run().map(|flips| flips == bound)
    }
}

/// What a node of the search knows: how often each atom is flipped at least and at most.
#[derive(Clone, Copy)]
struct Bounds {
    low: [u32; MAX_ATOMS],
    high: [u32; MAX_ATOMS],
}

struct Search<'a> {
    atoms: usize,
    bounds: Bounds,
    /// Used tables: the set of their atoms, and the flips that defeat them.
    tables: Vec<(u128, u32)>,
    /// Only fewer flips than this are looked for.
    best: u32,
    /// Whether any solution ends the search.
    any: bool,
    nodes: &'a mut u32,
}

// Atoms are below MAX_ATOMS by construction and the arrays have that length.
impl<'a> Search<'a> {
    fn new(cover: &Cover, needs: &[u32], best: u32, any: bool, nodes: &'a mut u32) -> Self {
        let mut bounds = Bounds { low: [0; MAX_ATOMS], high: [0; MAX_ATOMS] };
        bounds.high[..cover.sizes.len()].copy_from_slice(&cover.sizes);
        debug_assert_eq!(cover.tables.len(), needs.len(), "every table has a need");
        let tables = cover.tables.iter().copied().zip(needs.iter().copied());
        let tables = tables.filter(|&(_, need)| need > 0).collect();
        Self { atoms: cover.sizes.len(), bounds, tables, best, any, nodes }
    }

    /// Returns the fewest flips, or the bound it began with if there are no fewer.
    ///
    /// When any solution will do, that is the one found first.
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

    /// Flips the atom that helps most until every table is defeated.
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

    /// Returns the tables not yet defeated: atoms that can still be flipped, flips missing.
    fn open(&self, low: &[u32; MAX_ATOMS], high: &[u32; MAX_ATOMS]) -> Vec<(u128, u32)> {
        let free = (0..self.atoms).filter(|&atom| low[atom] < high[atom]);
        let free = free.fold(0_u128, |set, atom| set | 1 << atom);
        let missing = |&(atoms, need): &(u128, u32)| {
            let done = sum(low, atoms);
            (done < need).then(|| (atoms & free, need - done))
        };
        self.tables.iter().filter_map(missing).collect()
    }

    /// Returns the free atom in most open tables.
    fn busiest(&self, degrees: &[u32; MAX_ATOMS]) -> Option<usize> {
        // The last of equal maxima would win, so count backwards.
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

    /// Tightens the bounds as far as single tables tell; returns the flips already certain.
    ///
    /// `None` if fewer than `best` flips cannot defeat every table within these bounds.
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

/// Adds up the flips of a set of atoms.
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

/// Returns in how many open tables every atom is.
fn degrees(open: &[(u128, u32)]) -> [u32; MAX_ATOMS] {
    let mut degrees = [0; MAX_ATOMS];
    for atom in open.iter().flat_map(|&(atoms, _)| members(atoms)) {
        degrees[atom] += 1;
    }
    degrees
}

/// Bounds the flips from below: open tables without a common atom add up.
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

/// Bounds the flips from below: every flip counts for as many tables as its atom is in.
///
/// A table weighs one over the largest degree among its atoms, so the weights of the tables
/// around one atom add up to 1 at most: a feasible dual solution.
fn degree_bound(open: &[(u128, u32)], degrees: &[u32; MAX_ATOMS]) -> u32 {
    // Weights are rounded down to fixed point, so the sum never exceeds the true one.
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
