//! Twelve recipes, from the data that you have to the result that you want.
//!
//! Each page takes some minutes: what you have, the command or the program, its output, what to
//! check, and where to read more. Outputs are those of stdout; notes, warnings and progress go to
//! stderr and are left out. Three dots stand for lines that differ between machines or are not
//! needed. Tests run every example and compare the output.
//!
//! | you have | page |
//! |---|---|
//! | WARC files | [A web crawl](crawl) |
//! | shards of training texts | [A training set](training_set) |
//! | new files every day | [A daily feed](daily_feed) |
//! | a service in Rust that must not store copies | [A service](service) |
//! | a data frame or a query | [pandas](mod@pandas), [Polars](mod@polars), [DuckDB](mod@duckdb) |
//! | a cluster | [Spark](mod@spark) |
//! | a program in C or C++ | [C and C++](c) |
//! | pictures, or fingerprints of any kind | [Images](images) |
//! | doubts about the settings | [Choosing settings](settings) |
//! | a page of `hamdex dedup --report` | [Reading a report](report) |

/// Keeps one capture of every page of a web crawl.
#[doc = ""]
#[doc = include_str!("crawl.md")]
pub mod crawl {}

/// Keeps the best text of every group, and none of an exam.
#[doc = ""]
#[doc = include_str!("training_set.md")]
pub mod training_set {}

/// Keeps what no earlier day had, by one command.
#[doc = ""]
#[doc = include_str!("daily_feed.md")]
pub mod daily_feed {}

/// Stores a text only if nothing near it is stored.
#[doc = ""]
#[doc = include_str!("service.md")]
///
/// - Calls: [`Index::insert_if_new`](crate::Index::insert_if_new),
///   [`Index::insert_batch_if_new`](crate::Index::insert_batch_if_new),
///   [`IndexOptions`](crate::IndexOptions), [`Durability`](crate::Durability),
///   [`Secondary`](crate::Secondary)
pub mod service {}

/// Removes near-duplicates from a data frame of pandas.
#[doc = ""]
#[doc = include_str!("pandas.md")]
pub mod pandas {}

/// Removes near-duplicates from a data frame of Polars.
#[doc = ""]
#[doc = include_str!("polars.md")]
pub mod polars {}

/// Removes near-duplicates from the result of a query.
#[doc = ""]
#[doc = include_str!("duckdb.md")]
pub mod duckdb {}

/// Deduplicates on a cluster, with the answers of one machine.
#[doc = ""]
#[doc = include_str!("spark.md")]
pub mod spark {}

/// Stores and finds fingerprints from a program in C.
#[doc = ""]
#[doc = include_str!("c.md")]
pub mod c {}

/// Finds pictures that look alike by a perceptual hash.
#[doc = ""]
#[doc = include_str!("images.md")]
///
/// - Calls: [`Index::search`](crate::Index::search), [`IndexOptions`](crate::IndexOptions),
///   [`Fingerprint`](crate::Fingerprint)
pub mod images {}

/// Shows whether the settings suit the texts, and which others do.
#[doc = ""]
#[doc = include_str!("settings.md")]
pub mod settings {}

/// Answers whether a deduplication did what you want.
#[doc = ""]
#[doc = include_str!("report.md")]
pub mod report {}
