//! Pairs of blocks: tables that lead with two blocks of five answer small distances.
//!
//! Whatever lies within three bits agrees with the query on two of five blocks at least, so one
//! bucket of each of the ten tables holds it. Their buckets are named by more bits than one block
//! has, and stay small in sets whose single blocks have thousands of members a bucket. That is
//! the ten-table design of Manku, Jain and Das Sarma, WWW 2007, section 3.1.2.

use super::radii::Masks;
use super::search::{Close, Hit, MAX_TABLES, Probe, Sweep, Waiting};
use super::table::{Columns, Table};
use super::{BLOCK_BITS, BUCKET_MEMBERS_LOG2, cut};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::kernel::{LaneWork, Lanes};
use crate::pages::Pages;
use crate::plan::Plan;

/// The blocks, and how many of them lead a table.
const BLOCKS: (u32, u32) = (5, 2);
/// Tables of these pairs.
pub(super) const TABLES: usize = 10;
/// Up to this distance the pairs find everything.
pub(super) const DISTANCE: u32 = 3;
/// Queries whose buckets are on their way from memory at once.
const TOGETHER: usize = 4;

/// The ten tables of a set.
#[derive(Debug)]
pub(super) struct BlockPairs<F> {
    pub(super) tables: Vec<Table>,
    leads: Vec<F>,
    radii: [Option<u32>; TABLES],
    masks: Masks,
}

impl<F: Fingerprint> BlockPairs<F> {
    /// Holds distinct fingerprints; `None` where their buckets would be as large without.
    pub(super) fn build(members: &[F]) -> Result<Option<Self>> {
        let Some(bucket_bits) = bucket_bits::<F>(members.len()) else { return Ok(None) };
        let plan = Plan::uniform(F::BITS, BLOCKS.0, BLOCKS.1)?;
        let mut tables = Vec::with_capacity(TABLES);
        let mut room = Pages::zeroed(members.len());
        for table in plan.tables() {
            let permutation = table.permutation().clone();
            let table = Table::build_sorted(permutation, bucket_bits, members, room.as_mut_slice());
            if super::is_skewed(&table, members.len()) {
                return Ok(None);
            }
            tables.push(table);
        }
        let leads = plan.tables().iter();
        let leads = leads.map(|table| table.permutation().invert(F::high_mask(bucket_bits)));
        Ok(Some(Self {
            tables,
            leads: leads.collect(),
            radii: [Some(0); TABLES],
            masks: Masks::of_no_flips(),
        }))
    }

    /// Returns the bytes that so many fingerprints take; `None` where there would be no tables.
    pub(super) fn bytes_of(len: usize) -> Option<u64> {
        let cut = cut::Cut::new::<F>(bucket_bits::<F>(len)?);
        Some(TABLES as u64 * cut.bytes(len as u64))
    }

    /// The search of queries at a distance within reach.
    pub(super) fn sweep<'a, H>(
        &'a self,
        queries: &'a [F],
        distance: u32,
        hit: H,
    ) -> PairSweep<'a, F, H> {
        PairSweep(Sweep {
            tables: &self.tables,
            leads: &self.leads,
            radii: &self.radii,
            masks: &self.masks,
            queries,
            distance,
            hit,
        })
    }
}

/// Returns how many bits name a bucket, `None` unless they are more than a block has.
fn bucket_bits<F: Fingerprint>(len: usize) -> Option<u32> {
    // The pairs that have the fewest bits: two blocks of the shorter kind.
    let most = F::BITS / BLOCKS.0 * BLOCKS.1;
    let wanted = len.checked_ilog2()?.checked_sub(BUCKET_MEMBERS_LOG2)?.min(most);
    (wanted > BLOCK_BITS).then_some(wanted)
}

/// A sweep whose directories lie in memory too, so that even the place of a bucket is asked for.
pub(super) struct PairSweep<'a, F, H>(Sweep<'a, F, H>);

#[allow(clippy::inline_always)]
impl<F: Fingerprint, H: FnMut(Hit<F>)> LaneWork for PairSweep<'_, F, H> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self(mut sweep) = self;
        let mut columns = [Columns::EMPTY; MAX_TABLES];
        for (columns, table) in columns.iter_mut().zip(sweep.tables) {
            *columns = table.columns();
        }
        let mut closes = Waiting::<Close>::new();
        let mut probes: [Probe; TOGETHER * TABLES] = std::array::from_fn(|_| Probe::default());
        let mut first = 0;
        for queries in sweep.queries.chunks(TOGETHER) {
            let asked = probes.chunks_exact_mut(TABLES).zip(queries).enumerate();
            for (at, (probes, &fingerprint)) in asked {
                let of_tables = probes.iter_mut().zip(sweep.tables).zip(&columns).enumerate();
                for (table, ((probe, parts), columns)) in of_tables {
                    probe.aim = parts.parts(fingerprint);
                    probe.bucket = probe.aim.bucket;
                    (probe.query, probe.table) = (first + at, table);
                    columns.prefetch_start(probe.bucket);
                }
            }
            let probes = probes.get_mut(..queries.len() * TABLES).unwrap_or_default();
            for probe in probes.iter_mut() {
                if let Some(columns) = columns.get(probe.table) {
                    probe.range = columns.range(probe.bucket);
                    columns.prefetch(&probe.range, false);
                }
            }
            for probe in probes.iter() {
                sweep.compare(lanes, &columns, probe, &mut closes);
            }
            first += queries.len();
        }
        sweep.drain(lanes, &columns, closes);
    }
}
