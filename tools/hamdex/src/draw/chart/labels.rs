//! Labels: finds places for names next to their points that cover no point and no other name.

/// Pixels of a letter and of a line, a little more than they take.
const LETTER: i32 = 7;
const LINE: i32 = 15;

/// Pixels around a point that are the point's own.
const POINT: i32 = 5;

/// Distances from the point to try, the nearest first.
const AWAY: [i32; 12] = [8, 14, 22, 32, 44, 58, 74, 92, 112, 136, 164, 200];

/// Directions to try, in sixteenths of a turn: sideways before upright.
const TURNS: [i32; 16] = [0, 8, 14, 2, 10, 6, 12, 4, 15, 1, 9, 7, 13, 3, 11, 5];

/// Left, top, right and bottom in pixels.
type Box4 = [i32; 4];

/// Where a label goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) left: i32,
    /// The middle of the line.
    pub(super) middle: i32,
    /// The end of a line to the point, for a label that is not right beside it.
    pub(super) tie: Option<(i32, i32)>,
}

/// Places every label, the last ones as well as possible.
pub(super) fn places(labels: &[((i32, i32), usize)], within: Box4) -> Vec<Place> {
    let mut taken: Vec<Box4> =
        labels.iter().map(|&((x, y), _)| [x - POINT, y - POINT, x + POINT, y + POINT]).collect();
    let mut places = Vec::new();
    for &(point, letters) in labels {
        let width = LETTER * i32::try_from(letters).unwrap_or(100);
        let tries = AWAY
            .iter()
            .flat_map(|&away| TURNS.map(|turn| (away, beside(point, width, away, turn))));
        let free = |place: &Box4| {
            let [left, top, right, bottom] = *place;
            let inside =
                left >= within[0] && top >= within[1] && right <= within[2] && bottom <= within[3];
            inside && !taken.iter().any(|other| overlap(place, other))
        };
        let found = tries.clone().find(|(_, place)| free(place));
        let Some((away, place)) = found.or_else(|| tries.clone().next()) else { continue };
        taken.push(place);
        let [left, top, right, bottom] = place;
        let tie = (away > 14).then(|| (point.0.clamp(left, right), point.1.clamp(top, bottom)));
        places.push(Place { left, middle: i32::midpoint(top, bottom), tie });
    }
    places
}

/// Returns the box of a label of that width, `away` pixels off in that direction.
#[allow(clippy::cast_possible_truncation)] // some pixels
fn beside((x, y): (i32, i32), width: i32, away: i32, turn: i32) -> Box4 {
    let angle = f64::from(turn) * std::f64::consts::TAU / 16.0;
    let (across, down) = (angle.cos(), -angle.sin());
    let far = f64::from(away);
    let (right, low) = ((across * far).round() as i32, (down * far).round() as i32);
    let left = match across {
        across if across > 0.3 => x + right,
        across if across < -0.3 => x + right - width,
        _ => x + right - width / 2,
    };
    let top = y + low - LINE / 2;
    [left, top, left + width, top + LINE]
}

fn overlap(a: &Box4, b: &Box4) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_a_crowd_cover_neither_points_nor_each_other() {
        let crowd: Vec<((i32, i32), usize)> =
            (0..40).map(|n| ((300 + 9 * (n % 8), 200 + 11 * (n / 8)), 6)).collect();
        let places = places(&crowd, [0, 0, 900, 600]);
        assert_eq!(places.len(), crowd.len());
        let boxes: Vec<Box4> = places
            .iter()
            .map(|place| [place.left, place.middle - 7, place.left + 42, place.middle + 8])
            .collect();
        for (at, one) in boxes.iter().enumerate() {
            assert!(!boxes[at + 1..].iter().any(|other| overlap(one, other)), "{places:?}");
            assert!(crowd.iter().all(|&((x, y), _)| !overlap(one, &[x - 1, y - 1, x + 1, y + 1])));
        }
    }

    #[test]
    fn a_label_alone_stands_to_the_right_and_at_the_edge_to_the_left() {
        let place = |x| places(&[((x, 50), 4)], [0, 0, 200, 100])[0];
        assert_eq!(place(20), Place { left: 28, middle: 50, tie: None });
        assert_eq!(place(190), Place { left: 190 - 8 - 28, middle: 50, tie: None });
    }
}
