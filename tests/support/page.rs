//! Reading documents and batches as a client does, and comparing them with what the site says is right.

use std::time::Duration;

use serde_json::Value;

use crate::{Caller, wait_until_within};

/// What a perfect extraction of one page of the site contains, and what it does not.
#[derive(Debug)]
pub struct Truth {
    pub main: Vec<String>,
    pub boilerplate: Vec<String>,
}

impl Truth {
    /// Says what is wrong with `text`; `None` when every main marker is there and no other one.
    pub fn fault_in(&self, text: &str) -> Option<String> {
        let lost: Vec<_> = self.main.iter().filter(|marker| !text.contains(*marker)).collect();
        let leaked: Vec<_> = self.boilerplate.iter().filter(|marker| text.contains(*marker)).collect();
        if lost.is_empty() && leaked.is_empty() {
            return None;
        }
        Some(format!("{} of {} main markers lost, leaked {leaked:?}", lost.len(), self.main.len()))
    }
}

/// Waits until a batch has ended, and returns its last status body (first page of results).
pub async fn finished(caller: &Caller, id: &str, bound: Duration) -> Value {
    ended_at(caller, &format!("/v2/batch/scrape/{id}"), bound).await
}

/// The same for the batch or crawl at `path`.
pub async fn ended_at(caller: &Caller, path: &str, bound: Duration) -> Value {
    wait_until_within(bound, &format!("the end of {path}"), || async {
        let body = caller.get(&format!("{path}?limit=1")).await.ok();
        (body["status"] != "scraping").then_some(body)
    })
    .await
}

/// Every document of an ended batch, by following `next`.
pub async fn documents_of(caller: &Caller, id: &str) -> Vec<Value> {
    documents_at(caller, &format!("/v2/batch/scrape/{id}")).await
}

/// The same for the batch or crawl at `path`.
pub async fn documents_at(caller: &Caller, path: &str) -> Vec<Value> {
    let mut documents = Vec::new();
    let mut next = path.to_owned();
    loop {
        let body = caller.get(&next).await.ok();
        assert_eq!(body["success"], true, "a page of results says success: {body}");
        documents.extend(body["data"].as_array().expect("data is an array").iter().cloned());
        match body["next"].as_str() {
            Some(address) => next = address.to_owned(),
            None => return documents,
        }
    }
}

/// The entries of a batch's error list.
pub async fn errors_of(caller: &Caller, id: &str) -> Vec<Value> {
    let body = caller.get(&format!("/v2/batch/scrape/{id}/errors")).await.ok();
    body["errors"].as_array().expect("errors is an array").clone()
}

/// A document's markdown; panics when there is none.
pub fn markdown_of(document: &Value) -> &str {
    document["markdown"].as_str().unwrap_or_else(|| panic!("no markdown in {document}"))
}
