//! The format `attributes`: what is wanted of a page's elements, in the extraction's terms and in the document's.

use weir_shared::domain::document::AttributeValues;
use weir_shared::domain::scrape::AttributeSelector;

use crate::extract;

/// A wanted attribute in the extraction's own terms.
pub fn attribute_selector(wanted: &AttributeSelector) -> extract::AttributeSelector {
    extract::AttributeSelector { selector: wanted.selector.clone(), attribute: wanted.attribute.clone() }
}

/// The document's `attributes`: what was wanted with the values found for each, in the same order.
pub fn attribute_values(wanted: &[AttributeSelector], found: Vec<Vec<String>>) -> Vec<AttributeValues> {
    let pair = |(wanted, values): (&AttributeSelector, Vec<String>)| AttributeValues {
        selector: wanted.selector.clone(),
        attribute: wanted.attribute.clone(),
        values,
    };
    wanted.iter().zip(found).map(pair).collect()
}
