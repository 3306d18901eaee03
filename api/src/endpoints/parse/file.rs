//! A file that lies among the blobs, as a scrape of one page.

use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::scrape_request::{ParseRequest, ScrapeRequest};
use weir_shared::domain::upload::Upload;

use crate::app::AppData;
use crate::callers::auth::Caller;
use crate::endpoints::scrape::run::{Scraped, scraped};
use crate::error::ApiResult;

/// Has the file read.
///
/// # Errors
/// Those of a scrape.
pub async fn scraped_file(
    app: &AppData,
    caller: Caller,
    mut parse: ParseRequest,
    upload: Upload,
) -> ApiResult<Scraped> {
    let url = upload.name.clone();
    parse.options.upload = Some(upload);
    let (origin, integration) = (parse.origin, parse.integration);
    let scrape = ScrapeRequest { url, options: parse.options, origin, integration, version: ApiVersion::V2 };
    scraped(app, caller, scrape).await
}
