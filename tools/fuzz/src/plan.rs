//! Plan strings: text becomes a plan that answers its distance, or is refused.

use hamdex::Plan;
use hamdex::plan::defeat;

/// Parses a plan: two bytes choose width and distance, the rest is the plan's text.
pub fn plan(bytes: &[u8]) {
    let [width, distance, text @ ..] = bytes else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let bits = [32, 64, 128, 7][usize::from(width % 4)];
    let distance = u32::from(distance % 40);
    let count = (width & 0x80 != 0).then(|| 1 << (u64::from(*width) >> 2 & 31));
    let Ok(plan) = Plan::parse(text, bits, distance, count) else { return };
    assert!(distance <= bits / 4, "{plan} takes a distance that no search may ask for");
    assert!((1..=128).contains(&plan.tables().len()), "{plan}");
    if text.contains('r') {
        assert!(plan.complete_to() >= distance, "{plan} misses what it promises");
    }
    let tables: Vec<_> = plan.tables().iter().map(|table| (table.lead(), plan.radius())).collect();
    let beyond = defeat(&tables, bits, plan.complete_to() + 1);
    assert!(beyond.is_none_or(|flips| flips > plan.complete_to()), "{plan} can be got past");
    let again = Plan::parse(&plan.to_string(), bits, distance, None).expect("what was printed");
    assert_eq!(again, plan);
}
