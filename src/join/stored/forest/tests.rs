use super::*;
use crate::join::self_join;

/// Joins 700 fingerprints of which most are near, and returns what is left of their pairs.
fn left(documents: u64) -> (u64, Vec<[u64; 2]>) {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = fastrand::Rng::with_seed(9);
    let flipped = |fingerprint: u64| fingerprint ^ (1 << rng.u32(..64)) ^ (1 << rng.u32(..64));
    let crowd: Vec<u64> = std::iter::repeat_n(1, 700).map(flipped).collect();
    let links = Mutex::new(Links::new(Sorting::new(directory.path(), 0), documents));
    let found = self_join(&crowd, 4, &(), &|pairs| links.lock().unwrap().add(pairs)).unwrap();
    let mut sorted = links.into_inner().unwrap().finish().unwrap();
    let mut pairs = Vec::new();
    while let Some((a, b)) = sorted.next().unwrap() {
        pairs.push([a, b].map(|bytes| u64::from_bytes(bytes).unwrap()));
    }
    (found.pairs, pairs)
}

#[test]
fn pairs_are_reduced_once_they_are_more_than_the_documents() {
    let (found, all) = left(u64::MAX);
    assert_eq!(all.len() as u64, found);
    assert!(all.is_sorted_by_key(|pair| pair[0]));
    let (again, few) = left(700);
    assert_eq!(again, found);
    assert!(found > 150_000 && few.len() < 20_000, "{} of {found}", few.len());

    let mut members = all.as_flattened().to_vec();
    members.sort_unstable();
    members.dedup();
    let connect = |pairs: &[[u64; 2]]| {
        let mut sets = UnionFind::new(u32::try_from(members.len()).unwrap());
        let place = |member| u32::try_from(members.binary_search(member).unwrap()).unwrap();
        for [a, b] in pairs {
            sets.union(place(a), place(b));
        }
        (0..u32::try_from(members.len()).unwrap()).map(|at| sets.find(at)).collect::<Vec<_>>()
    };
    assert_eq!(connect(&few), connect(&all));
}

#[test]
fn records_that_the_postings_do_not_have_are_damage() {
    let directory = tempfile::tempdir().unwrap();
    let sorted = |fingerprints: &[u64]| {
        let mut sorter = Sorting::new(directory.path(), 0).sorter("test");
        for fingerprint in fingerprints {
            sorter.push(&fingerprint.to_be_bytes(), b"").unwrap();
        }
        Beside::<u64>::new(sorter.finish().unwrap()).unwrap()
    };
    let beside = sorted(&[5]);
    assert!(!beside.is_at(4).unwrap() && beside.is_at(5).unwrap());
    assert!(matches!(beside.is_at(6), Err(Error::Corrupt { .. })));
    assert!(matches!(beside.finish(), Err(Error::Corrupt { .. })));
    assert!(sorted(&[]).finish().is_ok());
}
