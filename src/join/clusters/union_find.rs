//! Union-find: disjoint sets of items, merged by links.
//!
//! The smaller of two roots becomes the root of both, so a set is named by its smallest item, and
//! path halving keeps the path from an item to its root short.

/// Disjoint sets over items numbered from 0, joined one link at a time.
///
/// m links over n items take O(m log n) steps in any order (Tarjan and van Leeuwen, JACM 1984), and
/// 4 bytes per item.
///
/// ```
/// use hamdex::join::UnionFind;
///
/// let mut sets = UnionFind::new(4);
/// assert!(sets.union(0, 2));
/// assert!(!sets.union(2, 0));
/// assert_eq!(sets.find(0), sets.find(2));
/// assert_ne!(sets.find(0), sets.find(1));
/// assert_eq!(sets.find(4), None);
/// assert_eq!((sets.len(), sets.is_empty()), (4, false));
/// ```
#[derive(Debug, Clone, Default)]
pub struct UnionFind {
    parents: Vec<u32>,
}

impl UnionFind {
    /// Creates `len` items, each in a separate set.
    pub fn new(len: u32) -> Self {
        Self { parents: (0..len).collect() }
    }

    /// Adds an item in a separate set and returns its number.
    pub(crate) fn push(&mut self) -> u32 {
        let item = u32::try_from(self.parents.len()).expect("at most u32::MAX items");
        self.parents.push(item);
        item
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Returns true if there are no items.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// Returns the root of an item's set; `None` for an unknown item.
    ///
    /// The root is the smallest item of the set, so a later [`union`](Self::union) may change it.
    #[inline]
    pub fn find(&mut self, item: u32) -> Option<u32> {
        let mut item = item;
        let mut parent = self.parent(item)?;
        while parent != item {
            let grandparent = self.parents[parent as usize];
            self.parents[item as usize] = grandparent;
            item = grandparent;
            parent = self.parents[item as usize];
        }
        Some(item)
    }

    /// Returns the root of an existing item's set; panics for an unknown item.
    #[inline]
    pub(crate) fn root(&mut self, item: u32) -> u32 {
        self.find(item).expect("the item exists")
    }

    /// Merges the sets of two items; returns true if they were separate.
    ///
    /// Does nothing if an item is unknown.
    #[inline]
    pub fn union(&mut self, a: u32, b: u32) -> bool {
        self.link(a, b) == Some(true)
    }

    fn link(&mut self, a: u32, b: u32) -> Option<bool> {
        let (a, b) = (self.find(a)?, self.find(b)?);
        if a == b {
            return Some(false);
        }
        self.parents[a.max(b) as usize] = a.min(b);
        Some(true)
    }

    #[inline]
    fn parent(&self, item: u32) -> Option<u32> {
        self.parents.get(item as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_any_order_give_the_same_sets() {
        let links = [(0, 1), (2, 3), (1, 3), (5, 6), (6, 5), (8, 8)];
        for rotation in 0..links.len() {
            let mut sets = UnionFind::new(9);
            let mut order = links;
            order.rotate_left(rotation);
            let joined = order.iter().filter(|&&(a, b)| sets.union(a, b)).count();
            assert_eq!(joined, 4, "rotation {rotation}");
            let roots: Vec<_> = (0..9).map(|item| sets.find(item)).collect();
            for (a, b, same) in [(0, 3, true), (5, 6, true), (0, 5, false), (4, 7, false)] {
                assert_eq!(roots[a] == roots[b], same, "{a} {b} rotation {rotation}");
            }
        }
    }

    #[test]
    fn a_long_chain_becomes_one_shallow_set() {
        let mut sets = UnionFind::new(100_000);
        assert!((1..100_000).all(|item| sets.union(item - 1, item)));
        let root = sets.find(0);
        assert!((0..100_000).all(|item| sets.find(item) == root));
        let shallow = |item| sets.parent(sets.parent(item).unwrap()) == root;
        assert!((0..100_000).all(shallow));
    }

    #[test]
    fn unknown_items_change_nothing() {
        let mut sets = UnionFind::new(1);
        assert!(!sets.union(0, 1));
        assert!(!sets.union(7, 7));
        assert_eq!((sets.find(0), sets.find(1), sets.len()), (Some(0), None, 1));
        assert!(UnionFind::new(0).is_empty());
    }
}
