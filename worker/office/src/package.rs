//! The relationships between parts of an OOXML package.

use std::collections::HashMap;

use crate::archive::Archive;
use crate::text::decode_xml;
use crate::xml::Tree;
use crate::{ConvertError, Converted, Limits, properties};

/// What a part refers to.
#[derive(Clone, Debug)]
pub struct Relation {
    /// The end of its type: `hyperlink`, `slide`.
    pub kind: String,
    /// A part's name, or an address outside.
    pub target: String,
    pub is_outside: bool,
}

/// What a part refers to, by id.
#[derive(Clone, Debug, Default)]
pub struct Relations(HashMap<String, Relation>);

impl Relations {
    /// Those of a part; none if it has none.
    ///
    /// # Errors
    /// When they are damaged.
    pub fn of(archive: &mut Archive<'_>, part: &str, limits: &Limits) -> Result<Self, ConvertError> {
        let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
        let name = format!("{folder}{}_rels/{file}.rels", if folder.is_empty() { "" } else { "/" });
        let Some(source) = archive.read(&name)?.map(decode_xml) else { return Ok(Self::default()) };
        let tree = Tree::read(&source, &name, limits)?;
        let mut relations = HashMap::new();
        for element in tree.root().children().filter(|element| element.name() == "Relationship") {
            let (Some(id), Some(target)) = (element.attr("Id"), element.attr("Target")) else { continue };
            let is_outside = element.attr("TargetMode").is_some_and(|mode| mode == "External");
            let kind = element.attr("Type").unwrap_or_default();
            let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
            let target = if is_outside { target.into_owned() } else { join(folder, &target) };
            relations.insert(id.into_owned(), Relation { kind, target, is_outside });
        }
        Ok(Self(relations))
    }

    /// What an id stands for.
    pub fn get(&self, id: &str) -> Option<&Relation> {
        self.0.get(id)
    }

    /// The part of a kind.
    pub fn of_kind(&self, kind: &str) -> Option<&str> {
        self.0.values().find(|relation| relation.kind == kind && !relation.is_outside).map(|r| r.target.as_str())
    }
}

/// The name of the part that a reference out of a folder leads to.
pub fn join(folder: &str, target: &str) -> String {
    let target = target.split('#').next().unwrap_or_default();
    let mut path: Vec<&str> = if target.starts_with('/') { Vec::new() } else { folder.split('/').collect() };
    for step in target.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                path.pop();
            }
            step => path.push(step),
        }
    }
    path.retain(|step| !step.is_empty());
    path.join("/")
}

/// The name of the main part, and what the package says of itself.
///
/// # Errors
/// When the package is damaged.
pub fn open(archive: &mut Archive<'_>, usual: &str, limits: &Limits) -> Result<(String, Converted), ConvertError> {
    let relations = Relations::of(archive, "", limits)?;
    let core = relations.of_kind("core-properties").unwrap_or("docProps/core.xml").to_owned();
    let app = relations.of_kind("extended-properties").unwrap_or("docProps/app.xml").to_owned();
    let main = relations.of_kind("officeDocument").unwrap_or(usual).to_owned();
    let (core, app) = (archive.read(&core)?, archive.read(&app)?);
    Ok((main, properties::of_ooxml(core, app, limits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_lead_out_of_their_folder() {
        assert_eq!(join("ppt/slides", "../notesSlides/n1.xml"), "ppt/notesSlides/n1.xml");
        assert_eq!(join("xl", "/xl/worksheets/s.xml"), "xl/worksheets/s.xml");
        assert_eq!(join("", "word/document.xml"), "word/document.xml");
        assert_eq!(join("a", "../../../b"), "b");
    }
}
