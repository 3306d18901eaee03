//! Shapes that several of the console's answers share.

use schemars::JsonSchema;
use serde::Serialize;
use weir_shared::ids::TeamId;

/// A team as things name their owner.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ConsoleOwner")]
pub struct Team {
    pub id: TeamId,
    pub name: String,
}
