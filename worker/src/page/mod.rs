//! One page from claim to end. The files stand in the order of their imports: each needs only those above it.
//!
//! ```text
//! error, kind, refusal       why there is no document; what a body is; whether it is a refusal
//! cpu, product, task         where is computed; what comes of a page; what every step works on
//! request                    where and how a page is asked for, by which proxy route
//! cached, draft              what the cache has of it; a document before it is whole
//! make/                      from a site's response to a draft
//! browse, load, proxy_retry  one way to the response, all ways by one route, one route after the other
//! complete/                  what a model reads in it, redaction, changes
//! attempt, work              one try; from claim to end for every kind of job
//! ```

pub mod attempt;
pub mod browse;
pub mod cached;
pub mod complete;
pub mod cpu;
pub mod draft;
pub mod error;
pub mod kind;
pub mod load;
pub mod make;
pub mod product;
pub mod proxy_retry;
pub mod refusal;
pub mod request;
pub mod scripted_hosts;
pub mod task;
pub mod work;
