//! Fields: the names that a user passes become places within a row.
//!
//! A name is a field, or a path into nested objects, separated by dots. A field with dots in its
//! name is found too. The path of a text may lead through lists.

use hamdex::text::Encoding;

use super::warc::WarcId;

/// Field of a fingerprint that is given instead of a text.
pub(crate) const FINGERPRINT: &str = "fingerprint";

/// Field of the features that an index keeps of a document.
pub(crate) const FEATURES: &str = "hamdex_features";

/// Default fields of the text, in the order of the search; see [`default_among`].
///
/// The last two are those of conversations; before them are Chinese and Japanese names of a text.
pub const TEXT_FIELDS: [&str; 13] = [
    "text",
    "content",
    "body",
    "raw_content",
    "document",
    "markdown",
    "article",
    "正文",
    "内容",
    "文本",
    "本文",
    "messages.content",
    "conversations.value",
];

/// Returns the name among `names` of a default field: the same, else one in another case.
///
/// Headers of CSV often have capitals: `Text`, `ID`.
pub fn default_among<'n>(names: &'n [String], field: &str) -> Option<&'n str> {
    let same = names.iter().find(|name| *name == field);
    let found = same.or_else(|| names.iter().find(|name| name.eq_ignore_ascii_case(field)));
    found.map(String::as_str)
}

/// Default field of the id; see [`default_among`].
pub const ID_FIELD: &str = "id";

/// The user's options about fields.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// `None` searches for [`ID_FIELD`].
    pub id: Option<String>,
    /// One field or several, separated by commas; `None` searches for one of [`TEXT_FIELDS`].
    pub text: Option<String>,
    /// The field that decides which of two documents is the newer one.
    pub stamp: Option<String>,
    /// The field whose value a row must not share with another one.
    pub unique: Option<String>,
    /// The field that names the source of a row.
    pub source: Option<String>,
    /// Encoding of text files; JSON is UTF-8 by its standard.
    pub encoding: Encoding,
    /// Id of the pages of a crawl.
    pub warc_id: WarcId,
    /// The byte between cells of CSV; `None` is found out from the header.
    pub delimiter: Option<u8>,
    /// Read only the fields that are named here: no default id, no fingerprints.
    pub alone: bool,
}

impl Names {
    /// Names the default field of the id as rows with these fields do.
    pub(crate) fn with_id_among(&self, found: &[String]) -> Self {
        let mut names = self.clone();
        if names.id.is_none() && !names.alone {
            names.id = default_among(found, ID_FIELD).map(str::to_owned);
        }
        names
    }
}

/// The use of a value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Id,
    /// A part of the text, by its place among the parts.
    Text(usize),
    Fingerprint,
    Features,
    Stamp,
    Unique,
    Source,
}

/// A field that matters, or the way to such a one.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) roles: Vec<Role>,
    /// Fields within the object that this field holds, or within those of its list.
    pub(crate) inner: Vec<Node>,
}

/// The fields of one source.
#[derive(Debug, Clone)]
pub struct Fields {
    pub id: String,
    /// The fields that make the text, in order.
    pub texts: Vec<String>,
    pub stamp: Option<String>,
    pub unique: Option<String>,
    pub source: Option<String>,
    pub encoding: Encoding,
    pub warc_id: WarcId,
    pub(crate) nodes: Vec<Node>,
    /// Those of the id alone.
    pub(crate) id_nodes: Vec<Node>,
    /// The default fields, a part each, for rows that lack the chosen one.
    pub(crate) others: Vec<Node>,
}

impl Default for Fields {
    fn default() -> Self {
        Self::of(&Names::default(), TEXT_FIELDS[0])
    }
}

impl Fields {
    /// Takes one text field, or several with commas between.
    pub fn of(names: &Names, text: &str) -> Self {
        let mut fields = Self {
            id: names.id.clone().unwrap_or_else(|| ID_FIELD.to_owned()),
            texts: text.split(',').map(|name| name.trim().to_owned()).collect(),
            stamp: names.stamp.clone(),
            unique: names.unique.clone(),
            source: names.source.clone(),
            encoding: names.encoding,
            warc_id: names.warc_id,
            nodes: Vec::new(),
            id_nodes: Vec::new(),
            others: Vec::new(),
        };
        let mut nodes = Vec::new();
        for (at, text) in fields.texts.iter().enumerate() {
            grow(&mut nodes, text, Role::Text(at));
        }
        if names.id.is_some() || !names.alone {
            grow(&mut nodes, &fields.id, Role::Id);
            grow(&mut fields.id_nodes, &fields.id, Role::Id);
        }
        if !names.alone {
            grow(&mut nodes, FINGERPRINT, Role::Fingerprint);
            grow(&mut nodes, FEATURES, Role::Features);
        }
        for (name, role) in [
            (&fields.stamp, Role::Stamp),
            (&fields.unique, Role::Unique),
            (&fields.source, Role::Source),
        ] {
            if let Some(name) = name {
                grow(&mut nodes, name, role);
            }
        }
        fields.nodes = nodes;
        fields
    }

    /// Also reads rows that lack the chosen field, from the other default fields.
    pub(crate) fn or_other_defaults(mut self) -> Self {
        for (at, text) in TEXT_FIELDS.into_iter().enumerate() {
            grow(&mut self.others, text, Role::Text(at));
        }
        self
    }

    /// Returns the text fields as the user would name them.
    pub fn text(&self) -> String {
        self.texts.join(",")
    }

    /// Returns the place of a top-level field among the parts of the text, if it is nothing else.
    #[cfg(feature = "parquet")]
    pub(crate) fn text_alone(&self, name: &str) -> Option<usize> {
        let node = self.nodes.iter().find(|node| node.name == name)?;
        match (node.roles.as_slice(), node.inner.is_empty()) {
            ([Role::Text(part)], true) => Some(*part),
            _ => None,
        }
    }

    /// Returns the top-level fields that have to be read.
    #[cfg(feature = "parquet")]
    pub(crate) fn top(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }
}

/// Adds a field by its name, and by its path if it has one.
fn grow(nodes: &mut Vec<Node>, name: &str, role: Role) {
    leaf(nodes, name, role);
    if let Some((first, rest)) = name.split_once('.')
        && !first.is_empty()
        && !rest.is_empty()
    {
        grow(&mut node(nodes, first).inner, rest, role);
    }
}

fn leaf(nodes: &mut Vec<Node>, name: &str, role: Role) {
    let roles = &mut node(nodes, name).roles;
    // A text field named like the fingerprint is the text.
    if role != Role::Fingerprint || roles.is_empty() {
        roles.push(role);
    }
}

#[allow(clippy::indexing_slicing)] // the position of a node that is there
fn node<'n>(nodes: &'n mut Vec<Node>, name: &str) -> &'n mut Node {
    let at = nodes.iter().position(|node| node.name == name).unwrap_or_else(|| {
        nodes.push(Node { name: name.to_owned(), roles: Vec::new(), inner: Vec::new() });
        nodes.len() - 1
    });
    &mut nodes[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_by_their_parts_and_as_a_whole() {
        let names = Names { id: Some("meta.id".to_owned()), ..Names::default() };
        let fields = Fields::of(&names, "title, meta.text");
        assert_eq!(fields.texts, ["title", "meta.text"]);
        assert_eq!(fields.text(), "title,meta.text");
        let tops: Vec<&str> = fields.top().collect();
        assert_eq!(tops, ["title", "meta.text", "meta", "meta.id", FINGERPRINT, FEATURES]);
        let meta = &fields.nodes[2];
        assert!(meta.roles.is_empty());
        let inner: Vec<_> = meta.inner.iter().map(|node| (&*node.name, &*node.roles)).collect();
        assert_eq!(inner, [("text", &[Role::Text(1)][..]), ("id", &[Role::Id][..])]);
    }
}
