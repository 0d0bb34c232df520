//! Exports: the first line of an exported index becomes the settings of an equal one.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hamdex::Error;
use hamdex::inspect::Header;
use hamdex::text::{Pipeline, Resources, Secret};
use hamdex::verify::FeatureSet;
use serde::{Deserialize, Serialize};

use super::inputs::Inputs;
use crate::documents::evidence::{Proofs, Wanted};
use crate::documents::reject::Reason;
use crate::formats::fields::FEATURES;

use crate::face::failure::{Failure, Result};

/// How the first line of every export begins.
const BEGINNING: &[u8] = b"{\"hamdex_export\":";

/// Version of the layout.
const VERSION: u32 = 1;

/// The settings of an exported index; never a secret, of which the pipeline has a digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    #[serde(rename = "hamdex_export")]
    version: u32,
    pub bits: u32,
    pub distance: u32,
    pub plan: String,
    pub pipeline: String,
    pub keeps_features: bool,
    /// The pipeline's tables by name, in base64.
    resources: BTreeMap<String, String>,
}

impl Export {
    pub fn new(header: &Header, resources: &Resources) -> Self {
        let resources = resources
            .parts()
            .map(|(name, bytes)| (name.to_owned(), BASE64.encode(bytes)))
            .collect();
        Self {
            version: VERSION,
            bits: header.bits,
            distance: header.distance,
            plan: header.plan.clone(),
            pipeline: header.pipeline.clone(),
            keeps_features: header.keeps_features,
            resources,
        }
    }

    pub(crate) fn parse(file: &str, line: &[u8]) -> Result<Self> {
        let refused =
            |reason: String| Failure::file(file, format!("header of an export: {reason}"));
        let export: Self = serde_json::from_slice(line).map_err(|e| refused(e.to_string()))?;
        if export.version != VERSION {
            let found = export.version;
            return Err(refused(format!("has version {found}, but this program reads {VERSION}")));
        }
        Ok(export)
    }

    /// Returns the pipeline of the index.
    ///
    /// It is `None` if the index was made from fingerprints only, or described by words of another
    /// program.
    ///
    /// # Errors
    ///
    /// [`Error::HeaderMismatch`] of `secret` without the secret that the index was made with.
    pub fn pipeline(&self, secret: Option<Secret>) -> Result<Option<Pipeline>> {
        if self.pipeline.is_empty() {
            return Ok(None);
        }
        let mut resources = Resources::default();
        for (name, text) in &self.resources {
            let bytes = BASE64.decode(text).map_err(|_| Error::InvalidOption {
                name: "export",
                reason: format!("{name} is not base64"),
            })?;
            resources.insert(name, &bytes)?;
        }
        if let Some(secret) = secret {
            resources = resources.with_secret(secret);
        }
        match Pipeline::from_descriptor_with(&self.pipeline, &resources) {
            Err(Error::InvalidOption { .. }) if self.resources.is_empty() => Ok(None),
            pipeline => Ok(Some(pipeline?)),
        }
    }
}

impl Inputs {
    /// Returns the header of the inputs that are exports; `None` without exports.
    ///
    /// # Errors
    ///
    /// [`Failure::File`] for exports of indexes that differ.
    pub fn export(&self) -> Result<Option<Export>> {
        let mut found: Option<(Export, &str)> = None;
        for source in &self.sources {
            let Some(export) = &source.export else { continue };
            match &found {
                Some((other, name)) if other != export => {
                    let reason =
                        format!("is the export of an index with other settings than {name}");
                    return Err(Failure::file(&source.name, reason));
                }
                _ => found = Some((export.clone(), &source.name)),
            }
        }
        Ok(found.map(|(export, _)| export))
    }
}

/// Returns true for the first line of an export, which is no row.
pub(crate) fn is_header(line: &[u8]) -> bool {
    line.starts_with(BEGINNING)
}

/// Returns the proofs of a row with a fingerprint and perhaps features.
pub(crate) fn proofs(wanted: Wanted, features: Option<&str>) -> Result<Proofs, Reason> {
    let Some(features) = features.filter(|_| wanted.features) else { return Ok(Proofs::default()) };
    let features =
        BASE64
            .decode(features)
            .ok()
            .filter(|bytes| FeatureSet::decode(bytes).is_ok())
            .ok_or_else(|| Reason::Record(format!("field \"{FEATURES}\" is not a feature set")))?;
    Ok(Proofs { features, ..Proofs::default() })
}
