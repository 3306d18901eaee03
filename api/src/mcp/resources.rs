//! What jobs find, as resources: `weir://crawl/ID` and `weir://batch/ID`, with `skip` and `limit` as over HTTP.
//!
//! Not the address of the route: clients fetch `https://` by themselves, and they have no key for it.

use rmcp::model::{Resource, ResourceTemplate};
use serde_json::Value;
use url::Url;

use super::tools::JobLink;
use super::weir::Query;

const KIND: &str = "application/json";

/// The link that a started job is answered with.
pub fn of_started(job: JobLink, body: &Value) -> Option<Resource> {
    let id = body["id"].as_str()?;
    let text = "The job's status and what it has found so far. Read it again until the status is completed, failed or \
        cancelled.";
    Some(link(job, id, None, text))
}

/// The link to the documents that come after those of this answer.
pub fn of_next(job: JobLink, id: &str, body: &Value) -> Option<Resource> {
    let next = Url::parse(body["next"].as_str()?).ok()?;
    Some(link(job, id, next.query(), "What the job has found after these documents, or will find."))
}

fn link(job: JobLink, id: &str, query: Option<&str>, text: &str) -> Resource {
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let name = job.name();
    Resource::new(format!("weir://{name}/{id}{query}"), format!("{name} {id}"))
        .with_description(text)
        .with_mime_type(KIND)
}

/// What resources there are.
pub fn templates() -> Vec<ResourceTemplate> {
    let each = |job: JobLink| {
        let name = job.name();
        ResourceTemplate::new(format!("weir://{name}/{{id}}{{?skip,limit}}"), format!("{name} results"))
            .with_description("A job's status, counts and documents, in the order in which they were done.")
            .with_mime_type(KIND)
    };
    JobLink::ALL.into_iter().map(each).collect()
}

/// The job that an address names, its id, and what it says of the documents wanted.
pub fn read(uri: &str) -> Option<(JobLink, String, Query)> {
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "weir")?;
    let job = JobLink::ALL.into_iter().find(|job| url.host_str() == Some(job.name()))?;
    let id = url.path().strip_prefix('/').filter(|id| !id.is_empty() && !id.contains('/'))?;
    Some((job, id.to_owned(), url.query_pairs().into_owned().collect()))
}
