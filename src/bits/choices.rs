//! Choices: how many ways there are to choose blocks or flipped bits, and which.

/// Returns the number of subsets of size `k` of `n` items, saturating.
pub(crate) fn binomial(n: u32, k: u32) -> u64 {
    if k > n {
        return 0;
    }
    let k = k.min(n - k);
    let mut out = 1_u128;
    for i in 0..k {
        // Exact: the product of i + 1 consecutive numbers is divisible by (i + 1)!.
        out = out * u128::from(n - i) / u128::from(i + 1);
        if out > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    u64::try_from(out).unwrap_or(u64::MAX)
}

/// Returns the number of ways to flip at most `radius` of `bits` bits, saturating.
pub(crate) fn ball(bits: u32, radius: u32) -> u64 {
    (0..=radius.min(bits)).fold(0, |sum: u64, flips| sum.saturating_add(binomial(bits, flips)))
}

/// Returns the probability that two random numbers of `bits` bits are within the distance.
pub(crate) fn share_within(bits: f64, distance: u32) -> f64 {
    let (mut ways, mut sum) = (1.0, 1.0);
    for flips in (1..=distance).map(f64::from).take_while(|&flips| flips <= bits) {
        ways *= (bits - flips + 1.0) / flips;
        sum += ways;
    }
    (sum / bits.exp2()).min(1.0)
}

/// Returns every choice of `lead` of at most 128 blocks as a bit set, first blocks first.
pub(crate) fn choices(blocks: u32, lead: u32) -> Vec<u128> {
    fn extend(from: u32, blocks: u32, lead: u32, set: u128, out: &mut Vec<u128>) {
        if lead == 0 {
            out.push(set);
            return;
        }
        for block in from..=blocks - lead {
            extend(block + 1, blocks, lead - 1, set | 1 << block, out);
        }
    }
    let mut out = Vec::new();
    extend(0, blocks, lead, 0, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_distinct_and_ordered() {
        assert_eq!(choices(4, 2), [0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100]);
        assert_eq!(choices(3, 3), [0b111]);
        assert_eq!(choices(9, 4).len(), 126);
    }

    #[test]
    fn binomials_are_exact_until_they_saturate() {
        assert_eq!(binomial(64, 3), 41_664);
        assert_eq!(binomial(64, 32), 1_832_624_140_942_590_534);
        assert_eq!(binomial(5, 6), 0);
        assert_eq!(binomial(5, 0), 1);
        assert_eq!(binomial(128, 64), u64::MAX);
    }

    #[test]
    fn a_ball_holds_all_flips_up_to_its_radius() {
        assert_eq!([0, 1, 3, 64, 200].map(|radius| ball(4, radius)), [1, 5, 15, 16, 16]);
        assert_eq!(ball(128, 128), u64::MAX);
        let share = |bits: u32, distance| {
            let all = ball(bits, distance) as f64 / f64::from(bits).exp2();
            (share_within(f64::from(bits), distance) / all - 1.0).abs()
        };
        for (bits, distance) in [(1, 0), (32, 1), (64, 3), (64, 8), (20, 20), (7, 100)] {
            assert!(share(bits, distance) < 1e-9, "{bits} {distance}");
        }
    }
}
