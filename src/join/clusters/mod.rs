//! Clusters: the groups that near positions form, with and without a verification.

mod connected;
mod copies;
mod diameter;
mod directory;
mod representatives;
mod union_find;
mod units;
mod verified;

pub use self::connected::clusters;
pub use self::copies::Copies;
pub use self::diameter::{Diameter, diameter};
pub(super) use self::directory::Directory;
pub(crate) use self::representatives::{Bracket, Outlines};
pub use self::union_find::UnionFind;
pub(crate) use self::verified::{Documents, Labelled, Similarities, labelled};
pub use self::verified::{Verify, verified_clusters};
