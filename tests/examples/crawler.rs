//! A crawler stores a page only if no stored page is similar.
//!
//! `cargo run --release --example crawler`

use std::error::Error;

use hamdex::{Durability, Index, IndexOptions, Pipeline, PipelineOptions};

/// Pages in fetch order, with the main text extracted from the HTML.
const FETCHED: [(&str, &str); 6] = [
    (
        "news.example/snails",
        "Researchers measured how fast snails climb wet glass. Small ones are faster than anybody \
         had thought: the fastest went up a window of one metre within eleven minutes, without a \
         single rest. The study was made in three gardens over two rainy summers.",
    ),
    (
        "city.example/bridge",
        "The old bridge over the river stays closed until spring. Divers found cracks in two of its \
         five pillars, and the town has no money for a new one. Buses go by the northern road, which \
         takes a quarter of an hour longer.",
    ),
    (
        "mirror.example/7261",
        "Researchers measured how fast snails climb wet glass. Small ones are faster than anyone \
         had thought: the fastest went up a window of one metre within eleven minutes, without a \
         single rest. The study was made in three gardens over two rainy summers!",
    ),
    (
        "news.example/bakery",
        "A bakery in the harbour bakes its bread at noon. The owner likes to sleep, and the \
         fishermen come back hungry at one. On Saturdays there is a line down to the boats, and by \
         two o'clock nothing is left but crumbs for the gulls.",
    ),
    (
        "city.example/bridge?print=1",
        "The old bridge over the river stays closed until spring. Divers found cracks in two of its \
         five pillars, and the town has no money for a new one. Buses go by the northern road, which \
         takes a quarter of an hour longer.",
    ),
    (
        "blog.example/bread",
        "Sourdough needs patience more than flour. Feed it in the evening, wake up early, and fold \
         the dough four times before it goes into the basket. What comes out of the oven after forty \
         minutes sings while it cools.",
    ),
];

/// Largest distance of two captures of one page, in bits of 64.
const DISTANCE: u32 = 8;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let pipeline = Pipeline::new(&PipelineOptions::preset("page")?)?;
    let options = IndexOptions::new().distance(DISTANCE).text(&pipeline);
    let index = Index::<u64>::create(directory.path().join("seen.idx"), &options)?;

    let mut known = 0;
    for (address, text) in FETCHED {
        let Some(sketch) = pipeline.fingerprint::<u64>(text) else { continue };
        // Search and insert are one atomic step, so threads may do this in parallel.
        let key = address.as_bytes();
        match index.insert_if_new(key, sketch.fingerprint, DISTANCE, Durability::Buffered)? {
            None => println!("new    {address}"),
            Some(near) => {
                known += 1;
                let of = String::from_utf8_lossy(&near.key);
                println!("known  {address} is like {of}, {} bits apart", near.distance);
            }
        }
    }
    // Makes the buffered inserts durable.
    index.flush()?;
    assert_eq!((known, index.len()?), (2, 4));
    Ok(())
}
