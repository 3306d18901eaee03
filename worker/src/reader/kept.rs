//! Answers that are kept with a stored page: the same question about the same text, by the same team to the same model, is
//! not asked twice. An answer is found by all that the model is told, so a page that reads differently, another wording of
//! ours or another model is another question.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use weir_shared::config::ModelSettings;
use weir_shared::domain::cache::short;
use weir_shared::ids::TeamId;
use weir_shared::store::Db;
use weir_shared::store::contents::derived::{self, Piece};
use weir_shared::time::Timestamp;

use super::PageText;
use super::ask::{SYSTEM, Task};
use super::passages::Excerpt;

/// Where answers about one page are looked for, and what becomes of new ones.
pub struct KeptAnswers {
    db: Db,
    team: TeamId,
    /// The content that the page was made of, where it came out of the store, and how old an answer may be.
    stored: Option<(String, Timestamp)>,
    /// Whether new answers may be kept.
    keeps: bool,
    new: Mutex<Vec<(String, Value)>>,
}

impl KeptAnswers {
    /// Of a page that came out of the store, with the time from which on answers count, or of one that came now.
    pub fn new(db: Db, team: TeamId, stored: Option<(String, Timestamp)>, keeps: bool) -> Self {
        Self { db, team, stored, keeps, new: Mutex::default() }
    }

    /// What an answer is found by.
    pub(super) fn key(
        &self,
        model: &ModelSettings,
        page: PageText<'_>,
        excerpt: &Excerpt<'_>,
        task: &Task<'_>,
    ) -> String {
        let told = (
            "answer",
            self.team,
            (model.url.as_str(), &model.name),
            (SYSTEM, task.rules, &task.wish, task.name, task.schema, task.strict, task.max_tokens),
            (page.url.as_str(), &excerpt.structured, &excerpt.text),
        );
        let mut digest = Sha256::new();
        // Texts and maps with texts as keys are always JSON.
        digest.update(serde_json::to_vec(&told).unwrap_or_default());
        short(digest)
    }

    /// The answer, as the model has given it.
    pub(super) async fn get(&self, key: &str) -> Option<Value> {
        let (digest, from) = self.stored.as_ref()?;
        match derived::get(&self.db, digest, key, *from).await {
            Ok(said) => said,
            Err(error) => {
                tracing::warn!(%error, "what a model has said of a stored page cannot be read");
                None
            }
        }
    }

    /// Remembers an answer that was found good.
    pub(super) fn put(&self, key: String, said: Value) {
        if self.keeps {
            self.new.lock().unwrap_or_else(PoisonError::into_inner).push((key, said));
        }
    }

    /// The new ones, ready to be stored. Computes.
    pub fn into_pieces(self) -> Vec<Piece> {
        let new = self.new.into_inner().unwrap_or_else(PoisonError::into_inner);
        new.into_iter().filter_map(|(key, said)| Piece::pack(key, &said).ok().flatten()).collect()
    }
}
