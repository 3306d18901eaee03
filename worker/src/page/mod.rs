//! One page from claim to end. The files stand in the order of their imports: each needs only those above it.
//!
//! ```text
//! error, kind, refusal       why there is no document; what a body is; whether an answer is a refusal
//! xhtml                      pages that are XML to browsers
//! scripted_hosts             which hosts need a browser
//! cpu, product, steps, task  the threads that compute; what comes of a page, and in which steps; what each works on
//! request                    where and how a page is asked for, by which proxy route
//! sent                       what a site has sent, into the store of pages and out of it
//! rest                       what a site says that wants to be asked later, and how long a page waits for it
//! draft                      a document before it is whole
//! templates                  what pages of a site have in common
//! make/                      from a site's response to a draft
//! browse, load, proxy_retry  one way to the response, all ways by one route, one route after the other
//! uploaded                   a file that the caller has sent, which needs no way
//! complete/                  what a model reads in it, redaction, changes
//! cached                     the page without asking its site
//! next_try, attempt          when a page is tried again; one try
//! settle, work               a large document to its place; from claim to end for every kind of job
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
pub mod next_try;
pub mod product;
pub mod proxy_retry;
pub mod refusal;
pub mod request;
pub mod rest;
pub mod scripted_hosts;
pub mod sent;
pub mod settle;
pub mod steps;
pub mod task;
pub mod templates;
pub mod uploaded;
pub mod work;
pub mod xhtml;
