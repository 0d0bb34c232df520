//! Radii: how far the lead of each table is flipped, so that nothing is missed at the least cost.
//!
//! The leads of the tables are disjoint bits. A match that no table finds differs in more than `r`
//! bits of every lead that is probed with radius `r`. So nothing within `k` is missed if the sum of
//! all `r + 1` exceeds `k` (the general pigeonhole; Qin et al., *GPH*, ICDE 2018).

/// Returns the cheapest needs that sum to `needed`, and their cost.
///
/// A need is a radius plus one, 0 if the table is not probed. `price(table, flips, last)` returns
/// the cost to probe a table at exactly `flips` flips, given that of the flips before it; infinite
/// if it cannot be probed so. Adds the cheapest next shell until the needs suffice; this is optimal
/// if no shell is cheaper than the one before it. Returns `None` if no needs suffice.
#[allow(clippy::inline_always)]
#[inline(always)]
pub(crate) fn cheapest<const TABLES: usize>(
    tables: usize,
    needed: u32,
    mut price: impl FnMut(usize, u32, f64) -> f64,
) -> Option<([u8; TABLES], f64)> {
    debug_assert!(tables <= TABLES, "{tables} tables");
    let mut needs = [0_u8; TABLES];
    let mut next = [f64::INFINITY; TABLES];
    for (table, next) in next.iter_mut().take(tables).enumerate() {
        *next = price(table, 0, 0.0);
    }
    let mut sum = 0.0;
    for _ in 0..needed {
        let first = (0, f64::INFINITY);
        let cheaper = |best: (usize, f64), (table, &cost): (usize, &f64)| {
            if cost < best.1 { (table, cost) } else { best }
        };
        let (table, cost) = next.iter().take(tables).enumerate().fold(first, cheaper);
        if cost.is_infinite() {
            return None;
        }
        sum += cost;
        needs[table] += 1;
        next[table] = price(table, u32::from(needs[table]), cost);
    }
    Some((needs, sum))
}
