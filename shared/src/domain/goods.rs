//! What the formats `product` and `menu` answer (wire 3.4). What clients require is always there; the rest only where the
//! page says it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// In the currency's main unit; of a range the lowest.
    pub amount: f64,
    /// ISO 4217, only where the page says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// As the page writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formatted: Option<String>,
}

/// Whether something can be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Availability {
    /// It can be had now; where the page says nothing of it, whether it is offered at all.
    pub in_stock: bool,
    /// What the page says, such as `InStock` or `PreOrder`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// Absolute.
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alt: Option<String>,
}

/// The product that a page offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProductProfile {
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brand: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Absolute.
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What can be bought of it; one where it comes in one form only.
    pub variants: Vec<ProductVariant>,
}

/// A form in which a product can be bought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProductVariant {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sku: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its options, such as size and colour, by the page's names for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sale: Option<Sale>,
    pub availability: Availability,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<Image>>,
}

/// A price that was reduced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sale {
    /// What was asked before.
    pub original_price: Price,
}

/// The menu that a page shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MenuProfile {
    /// Always true: a page without a menu has no such field.
    pub is_menu: bool,
    /// How sure that is, 0 to 1, by the place it was read from: what the page says of itself as data, what its scripts
    /// keep, what it shows.
    pub confidence: f64,
    pub merchant: MenuMerchant,
    /// ISO 4217, where all prices have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    pub sections: Vec<MenuSection>,
    /// The page.
    pub source_url: String,
}

/// Whose menu it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MenuMerchant {
    /// Where nothing describes it, the name of the site, the page's title or its host.
    pub name: String,
    /// A type of schema.org, such as `Restaurant`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its address in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// A part of a menu.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MenuSection {
    /// Its place in the menu: `s1`, `s2` and so on.
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub items: Vec<MenuItem>,
}

/// A dish or a drink.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MenuItem {
    /// Its place in the menu: `s1.i1`, `s1.i2` and so on.
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub images: Vec<Image>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    pub availability: Availability,
    /// Diets that it suits, as the page names them.
    pub dietary: Vec<String>,
    /// Kilocalories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calories: Option<f64>,
    /// Always empty: no vocabulary for pages has them.
    pub option_groups: Vec<Value>,
    pub identifiers: MenuIdentifiers,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The page.
    pub source_url: String,
}

/// What others call a dish.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MenuIdentifiers {
    /// The merchant's own number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merchant_item_id: Option<String>,
}
