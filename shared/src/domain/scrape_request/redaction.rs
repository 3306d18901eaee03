//! The option `redactPII` (wire 3.2): `true`, or an object.

use serde_json::Value;

use crate::domain::scrape::{Entity, RedactMode, Redaction, ReplaceStyle};
use crate::domain::validation::Fields;

const ENTITIES: &[&str] = &["PERSON", "EMAIL", "PHONE", "LOCATION", "FINANCIAL", "SECRET"];

/// Reads it; `None` when nothing is to be taken out.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Redaction> {
    let value = fields.get("redactPII")?;
    let path = fields.path_of("redactPII");
    match value {
        Value::Bool(wanted) => wanted.then(Redaction::default),
        Value::Object(_) => {
            let mut fields = Fields::open(value, path, fields.issues)?.nulls_are_absent();
            let mode = match fields.choice("mode", &["accurate", "aggressive", "fast"]) {
                Some("aggressive") => RedactMode::Aggressive,
                Some("fast") => RedactMode::Fast,
                _ => RedactMode::Accurate,
            };
            let replace_style = match fields.choice("replaceStyle", &["tag", "mask", "remove"]) {
                Some("mask") => ReplaceStyle::Mask,
                Some("remove") => ReplaceStyle::Remove,
                _ => ReplaceStyle::Tag,
            };
            let entities = read_entities(&mut fields, mode);
            fields.finish();
            Some(Redaction { mode, entities, replace_style })
        }
        other => {
            fields.issues.wrong_union(path, "boolean or object", other);
            None
        }
    }
}

fn read_entities(fields: &mut Fields<'_, '_>, mode: RedactMode) -> Vec<Entity> {
    let mut entities = Vec::new();
    for (i, name) in fields.strings("entities", 100).unwrap_or_default().iter().enumerate() {
        let mut path = fields.path_of("entities");
        path.push(i.into());
        let known = Entity::BY_FORM.iter().chain(Entity::BY_SENSE).find(|entity| entity.as_str() == name);
        match known.copied() {
            None => fields.issues.wrong_choice(path, ENTITIES),
            Some(entity) if mode == RedactMode::Fast && Entity::BY_SENSE.contains(&entity) => {
                let text = format!("redactPII: the mode fast does not find {name}, which has no form of its own");
                fields.issues.rule(path, text);
            }
            Some(entity) if !entities.contains(&entity) => entities.push(entity),
            Some(_) => {}
        }
    }
    entities
}
