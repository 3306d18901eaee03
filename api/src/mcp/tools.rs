//! The tools: for each its words for models, and the route that does it. Names are those of the official server, of
//! today or, for batches and browsers, of its earlier releases.

use reqwest::Method;

/// A tool.
pub struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    /// What it does and when to use it, for a model that chooses.
    pub text: &'static str,
    pub effect: Effect,
    pub method: Method,
    /// The route's path, as the routes have it.
    pub path: &'static str,
    /// The argument that stands for the path's parameter.
    pub id: Option<&'static str>,
    pub result: Outcome,
}

/// What a call changes, for clients that ask their user first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Reads,
    /// It starts or does something.
    Acts,
    /// It ends something for good.
    Ends,
}

/// What of the route's answer is the tool's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Whole,
    /// The document alone, as the official server answers it.
    Document,
    /// A job that was started: with a link to what it will find.
    Job(JobLink),
    /// A job's state and documents: with a link to the next of them.
    Documents(JobLink),
}

/// What a job's resource is called in `weir://NAME/ID`, and the route that reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobLink {
    Crawl,
    Batch,
}

impl JobLink {
    pub const ALL: [Self; 2] = [Self::Crawl, Self::Batch];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Crawl => "crawl",
            Self::Batch => "batch",
        }
    }

    pub const fn path(self) -> &'static str {
        match self {
            Self::Crawl => "/v2/crawl/{id}",
            Self::Batch => "/v2/batch/scrape/{id}",
        }
    }
}

/// Going on from a page; it may open that page itself.
pub const INTERACT: &str = "firecrawl_interact";
/// A file of the caller's.
pub const PARSE: &str = "firecrawl_parse";
/// Credits, now or by month.
pub const CREDITS: &str = "firecrawl_credit_usage";

/// Monitors, whose tools the official server gives their bodies in a field of its own.
pub const MONITOR_CREATE: &str = "firecrawl_monitor_create";
pub const MONITOR_UPDATE: &str = "firecrawl_monitor_update";
/// A check has two ids.
pub const MONITOR_CHECK: &str = "firecrawl_monitor_check";

/// The tool of this name.
pub fn named(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Every tool, in the order in which they are listed.
pub static TOOLS: &[Tool] = &[
    Tool {
        name: "firecrawl_scrape",
        title: "Scrape a page",
        text: "Reads one page whose address is known: as markdown, or as HTML, links, images, a screenshot, or data \
            that fits a JSON schema. `formats` says what to answer, `maxAge: 0` asks for a fresh page. \
            `metadata.scrapeId` of the document leads on with firecrawl_interact. For many pages use \
            firecrawl_batch_scrape or firecrawl_crawl, to find pages firecrawl_map or firecrawl_search.",
        effect: Effect::Acts,
        method: Method::POST,
        path: "/v2/scrape",
        id: None,
        result: Outcome::Document,
    },
    Tool {
        name: "firecrawl_map",
        title: "Map a site",
        text: "Lists the addresses of a site without reading its pages. `search` orders them by words. Use it to find \
            the page to scrape, or to see what a crawl would meet.",
        effect: Effect::Reads,
        method: Method::POST,
        path: "/v2/map",
        id: None,
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_search",
        title: "Search the web",
        text: "Searches the web, its news or its pictures. Operators of search engines work in `query` (quotes, -word, \
            site:, intitle:). With `scrapeOptions.formats` the pages of the hits are read too; leave it out and scrape \
            the hits that matter when only a few do.",
        effect: Effect::Reads,
        method: Method::POST,
        path: "/v2/search",
        id: None,
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_extract",
        title: "Extract data",
        text: "Starts to read data out of several pages or a whole site (`https://example.com/*`), by a prompt or a JSON schema, \
            and answers at once with an id. Ask firecrawl_extract_status until the status is completed or failed. For one \
            page use firecrawl_scrape with a json format.",
        effect: Effect::Acts,
        method: Method::POST,
        path: "/v2/extract",
        id: None,
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_extract_status",
        title: "Status of an extraction",
        text: "The state of an extraction, and its data when it is completed.",
        effect: Effect::Reads,
        method: Method::GET,
        path: "/v2/extract/{id}",
        id: Some("id"),
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_agent",
        title: "Start an agent",
        text: "Starts an agent that looks for an answer by itself over several pages: it searches, reads, and uses forms where \
            it must. It takes minutes, and answers at once with an id: ask firecrawl_agent_status every 15 to 30 seconds \
            until the status is completed or failed. With `schema` the answer is data. For pages that are known use \
            firecrawl_scrape or firecrawl_extract.",
        effect: Effect::Acts,
        method: Method::POST,
        path: "/v2/agent",
        id: None,
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_agent_status",
        title: "Status of an agent",
        text: "The state of an agent, and its answer when it is completed.",
        effect: Effect::Reads,
        method: Method::GET,
        path: "/v2/agent/{id}",
        id: Some("id"),
        result: Outcome::Whole,
    },
    Tool {
        name: PARSE,
        title: "Parse a file",
        text: "Reads a file of the user's: Word, OpenDocument, RTF, Excel, PowerPoint, EPUB, PDF, HTML, CSV or a picture, as \
            markdown or in other formats. Give its `filePath`. The answer is the document; or, where this server cannot \
            read the user's files, a command that uploads the file and the call to make after it, with `uploadRef`. Files at \
            an address of the web are read by firecrawl_scrape.",
        effect: Effect::Reads,
        method: Method::POST,
        path: "/v2/parse",
        id: None,
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_crawl",
        title: "Crawl a site",
        text: "Starts to read the pages of a site, found by its links and sitemaps, and answers at once with the \
            crawl's id and a link to what it finds. Read that resource, or ask firecrawl_check_crawl_status, until the \
            status is completed, failed or cancelled. Set `limit`: results can be large.",
        effect: Effect::Acts,
        method: Method::POST,
        path: "/v2/crawl",
        id: None,
        result: Outcome::Job(JobLink::Crawl),
    },
    Tool {
        name: "firecrawl_check_crawl_status",
        title: "Status of a crawl",
        text: "The state of a crawl and the pages that it has read so far, oldest first. Where there are more, read on \
            with `skip`.",
        effect: Effect::Reads,
        method: Method::GET,
        path: "/v2/crawl/{id}",
        id: Some("id"),
        result: Outcome::Documents(JobLink::Crawl),
    },
    Tool {
        name: "firecrawl_batch_scrape",
        title: "Scrape many pages",
        text: "Starts to read many pages whose addresses are known, and answers at once with the batch's id and a link \
            to what it finds. Read that resource, or ask firecrawl_check_batch_status, until the status is completed, \
            failed or cancelled.",
        effect: Effect::Acts,
        method: Method::POST,
        path: "/v2/batch/scrape",
        id: None,
        result: Outcome::Job(JobLink::Batch),
    },
    Tool {
        name: "firecrawl_check_batch_status",
        title: "Status of a batch",
        text: "The state of a batch scrape and the pages that it has read so far. Where there are more, read on with \
            `skip`.",
        effect: Effect::Reads,
        method: Method::GET,
        path: "/v2/batch/scrape/{id}",
        id: Some("id"),
        result: Outcome::Documents(JobLink::Batch),
    },
    Tool {
        name: INTERACT,
        title: "Go on in a page",
        text: "Clicks, fills in forms, goes on to further pages or runs code in a browser that stands on a page: one \
            that was scraped (`scrapeId`) or a new one (`url`). Say what to do in `prompt`, or give `code` (node and \
            python have Playwright's `page`, bash has agent-browser). Every further call with the same `scrapeId` \
            finds the page as the last one left it. This acts on the live site. End it with firecrawl_interact_stop.",
        effect: Effect::Acts,
        method: Method::POST,
        path: "/v2/scrape/{id}/interact",
        id: Some("scrapeId"),
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_interact_stop",
        title: "Leave a page",
        text: "Ends the browser of firecrawl_interact for this `scrapeId`.",
        effect: Effect::Ends,
        method: Method::DELETE,
        path: "/v2/scrape/{id}/interact",
        id: Some("scrapeId"),
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_browser_create",
        title: "Open a browser",
        text: "Opens a browser of one's own, empty or with a profile, for work over many pages. It answers the \
            session's id for firecrawl_browser_execute, its address for CDP clients and those of its live views. It \
            costs credits while it is open: close it with firecrawl_browser_delete.",
        effect: Effect::Acts,
        method: Method::POST,
        path: "/v2/browser",
        id: None,
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_browser_execute",
        title: "Run code in a browser",
        text: "Runs code beside a browser session: node and python have Playwright's `page`, `context` and `browser`, \
            bash has agent-browser (`agent-browser open URL`, `agent-browser snapshot -i`, `agent-browser click @e1`).",
        effect: Effect::Acts,
        method: Method::POST,
        path: "/v2/browser/{id}/execute",
        id: Some("sessionId"),
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_browser_list",
        title: "List browsers",
        text: "The team's browser sessions, newest first.",
        effect: Effect::Reads,
        method: Method::GET,
        path: "/v2/browser",
        id: None,
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_browser_delete",
        title: "Close a browser",
        text: "Closes a browser session, and saves its profile if it has one.",
        effect: Effect::Ends,
        method: Method::DELETE,
        path: "/v2/browser/{id}",
        id: Some("sessionId"),
        result: Outcome::Whole,
    },
    Tool {
        name: MONITOR_CREATE,
        title: "Watch pages",
        text: "Has pages, crawls or searches looked at by a schedule and tells what is new, changed or removed since the \
            last look. `targets` says what, `schedule` when (`{\"text\": \"every 30 minutes\"}` or cron), `goal` what \
            changes matter. It goes on until it is deleted: every check costs credits.",
        effect: Effect::Acts,
        method: Method::POST,
        path: "/v2/monitor",
        id: None,
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_monitor_list",
        title: "List monitors",
        text: "The team's monitors, newest first.",
        effect: Effect::Reads,
        method: Method::GET,
        path: "/v2/monitor",
        id: None,
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_monitor_get",
        title: "Show a monitor",
        text: "One monitor: what it watches, when it looks next, and what the last check came to.",
        effect: Effect::Reads,
        method: Method::GET,
        path: "/v2/monitor/{id}",
        id: Some("id"),
        result: Outcome::Whole,
    },
    Tool {
        name: MONITOR_UPDATE,
        title: "Change a monitor",
        text: "Changes a monitor's fields; `status` pauses it (`paused`) or has it go on (`active`).",
        effect: Effect::Acts,
        method: Method::PATCH,
        path: "/v2/monitor/{id}",
        id: Some("id"),
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_monitor_delete",
        title: "Delete a monitor",
        text: "Ends a monitor for good, with its checks and what they found.",
        effect: Effect::Ends,
        method: Method::DELETE,
        path: "/v2/monitor/{id}",
        id: Some("id"),
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_monitor_run",
        title: "Look now",
        text: "Has a monitor look at once, beside its schedule. It answers the check, which \
            firecrawl_monitor_check reads until it is completed, partial or failed.",
        effect: Effect::Acts,
        method: Method::POST,
        path: "/v2/monitor/{id}/run",
        id: Some("id"),
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_monitor_checks",
        title: "List checks",
        text: "The checks of a monitor with their counts, newest first.",
        effect: Effect::Reads,
        method: Method::GET,
        path: "/v2/monitor/{id}/checks",
        id: Some("id"),
        result: Outcome::Whole,
    },
    Tool {
        name: MONITOR_CHECK,
        title: "Show a check",
        text: "What a check found of each page: same, new, changed, removed or error, with the difference where there is \
            one. `status` chooses.",
        effect: Effect::Reads,
        method: Method::GET,
        path: "/v2/monitor/{id}/checks/{check}",
        id: Some("id"),
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_search_feedback",
        title: "Rate a search",
        text: "Notes how good a search was, for whoever runs this service: which hits were worth it, what was missing. Once for \
            each search, by the `id` that it answered.",
        effect: Effect::Acts,
        method: Method::POST,
        path: "/v2/search/{id}/feedback",
        id: Some("searchId"),
        result: Outcome::Whole,
    },
    Tool {
        name: "firecrawl_feedback",
        title: "Rate a result",
        text: "Notes how good a search, scrape, parse or map was, for whoever runs this service. Once for each, by its id: of a \
            scrape or parse the `metadata.scrapeId` of its document.",
        effect: Effect::Acts,
        method: Method::POST,
        path: "/v2/feedback",
        id: None,
        result: Outcome::Whole,
    },
    Tool {
        name: CREDITS,
        title: "Credits",
        text: "The team's credits that are left, or what it used by month (`view: historical`).",
        effect: Effect::Reads,
        method: Method::GET,
        path: "/v2/team/credit-usage",
        id: None,
        result: Outcome::Document,
    },
];
