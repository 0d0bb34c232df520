//! Images: finds pictures that were scaled, brightened and made noisy, by a perceptual hash.
//!
//! Any 64-bit hash works that differs in few bits for similar pictures. This one is the difference
//! hash: it shrinks a picture to 9 by 8 pixels, and each bit is set if a pixel is darker than the
//! one to its right.
//!
//! `cargo run --release --example images`

use std::error::Error;

use hamdex::{Index, IndexOptions, Query};

/// Largest distance of two versions of a picture, in bits of 64.
const DISTANCE: u32 = 6;

const PICTURES: u64 = 500;

/// A picture in grey values from 0 to 1.
struct Picture {
    width: usize,
    pixels: Vec<f32>,
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let options = IndexOptions::new().distance(DISTANCE);
    let index = Index::<u64>::create(directory.path().join("pictures.idx"), &options)?;
    for number in 0..PICTURES {
        index.insert(&number.to_be_bytes(), difference_hash(&Picture::drawn(number, 96)))?;
    }

    let (mut found, mut others) = (0, 0);
    for number in (0..PICTURES).step_by(5) {
        // The same picture as another user would post it.
        let posted = Picture::drawn(number, 60).worked_over(number);
        let near = index.search(Query::new(difference_hash(&posted)).distance(DISTANCE))?;
        let own = near.iter().filter(|found| found.key == number.to_be_bytes()).count();
        found += own;
        others += near.len() - own;
    }
    println!("{found} of {} pictures found, {others} wrong matches", PICTURES / 5);
    assert_eq!(found as u64, PICTURES / 5);
    assert!(others <= 5, "{others} wrong matches");
    Ok(())
}

impl Picture {
    /// Draws smooth stripes and spots, the same for every width.
    fn drawn(number: u64, width: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(number);
        let waves: Vec<[f32; 4]> = (0..6)
            .map(|_| {
                let [x, y] = [random.f32() * 24.0 - 12.0, random.f32() * 24.0 - 12.0];
                [x, y, random.f32() * std::f32::consts::TAU, 0.3 + random.f32()]
            })
            .collect();
        let shade = |x: usize, y: usize| {
            let (x, y) = (x as f32 / width as f32, y as f32 / width as f32);
            let sum: f32 = waves
                .iter()
                .map(|[a, b, phase, weight]| weight * (a * x + b * y + phase).sin())
                .sum();
            (0.5 + sum / 8.0).clamp(0.0, 1.0)
        };
        let pixels = (0..width * width).map(|at| shade(at % width, at / width)).collect();
        Self { width, pixels }
    }

    /// Brightens a picture and adds noise.
    fn worked_over(mut self, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed + 1_000_000);
        for pixel in &mut self.pixels {
            *pixel = (*pixel * 0.8 + 0.15 + 0.05 * random.f32()).clamp(0.0, 1.0);
        }
        self
    }

    /// Returns the mean grey value of one of 9 by 8 fields.
    fn field(&self, column: usize, row: usize) -> f32 {
        let edge = |at: usize, of: usize| at * self.width / of;
        let (mut sum, mut count) = (0.0, 0.0);
        for y in edge(row, 8)..edge(row + 1, 8) {
            for x in edge(column, 9)..edge(column + 1, 9) {
                sum += self.pixels.get(y * self.width + x).copied().unwrap_or_default();
                count += 1.0;
            }
        }
        sum / f32::max(count, 1.0)
    }
}

/// Returns one bit per field, set if it is darker than the field to its right.
fn difference_hash(picture: &Picture) -> u64 {
    let mut hash = 0;
    for row in 0..8 {
        for column in 0..8 {
            let darker = picture.field(column, row) < picture.field(column + 1, row);
            hash = hash << 1 | u64::from(darker);
        }
    }
    hash
}
