//! The official Rust SDK, unmodified, against a running service.
//!
//! Reads WEIR_URL, WEIR_KEY and SITE_URL (the test site) from the environment. Closes with "N passed, N failed".
//! With the argument `interact` it does what needs a model, and interacts with the scrape WEIR_SCRAPE (of /article/5), whose
//! id this SDK does not show; the service's language model then finishes every task with the answer "seen", reads "seen" out
//! of every page, and finds every hit of a search meaningful.

use std::collections::BTreeSet;
use std::future::Future;
use std::process::ExitCode;

use firecrawl::{
    Action, AgentOptions, AgentStatus, AttributeSelector, BatchScrapeOptions, ChangeTrackingMode,
    ChangeTrackingOptions, Client, CrawlOptions, CreateMonitorRequest, Format, HighlightsFormat, JobStatus,
    JsonOptions, MapOptions, MapResponse, MonitorSchedule, ParseFile, ParserConfig, PdfPageBlocks, QuestionFormat,
    ScrapeExecuteLanguage, ScrapeExecuteOptions, ScrapeOptions, SitemapMode, UpdateMonitorRequest,
};

type Outcome = Result<(), String>;

struct World {
    client: Client,
    base: String,
    site: String,
}

impl World {
    fn urls(&self, prefix: &str, count: usize) -> Vec<String> {
        (0..count).map(|n| format!("{}{prefix}{n}", self.site)).collect()
    }

    fn formats(formats: Vec<Format>) -> ScrapeOptions {
        ScrapeOptions { formats: Some(formats), ..Default::default() }
    }
}

fn ensure(holds: bool, what: impl Into<String>) -> Outcome {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn told<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

async fn a_scrape_gives_each_format_in_its_field(world: &World) -> Outcome {
    let formats =
        vec![Format::Markdown, Format::Html, Format::RawHtml, Format::Links, Format::Images, Format::Screenshot];
    let document = told(world.client.scrape(format!("{}/article/1", world.site), World::formats(formats)).await)?;
    ensure(document.markdown.is_some_and(|text| text.contains("MAIN")), "markdown")?;
    ensure(document.html.is_some_and(|text| text.contains("MAIN")), "html")?;
    ensure(document.raw_html.is_some_and(|text| text.contains("window.__state")), "rawHtml")?;
    ensure(document.links.is_some_and(|links| !links.is_empty()), "links")?;
    ensure(document.images.is_some(), "images")?;
    ensure(document.screenshot.is_some(), "screenshot")?;
    let metadata = document.metadata.ok_or("metadata")?;
    ensure(metadata.status_code == Some(200), format!("{:?}", metadata.status_code))
}

async fn pdfs_attributes_branding_and_media_have_their_fields(world: &World) -> Outcome {
    let parser = ParserConfig::Pdf {
        parser_type: "pdf".into(),
        mode: Some("auto".into()),
        max_pages: Some(2),
        pages: Some(true),
        blocks: Some(true),
        page_markers: None,
    };
    let options = ScrapeOptions { parsers: Some(vec![parser]), ..World::formats(vec![Format::Markdown]) };
    let document = told(world.client.scrape(format!("{}/files/report.pdf", world.site), options).await)?;
    ensure(document.pages.is_some_and(|pages| pages.len() == 2), "pages")?;
    let blocks = document.blocks.ok_or("blocks")?;
    let is_text = |page: &PdfPageBlocks| page.items.iter().any(|item| item.block_type == "text" && item.bbox.is_some());
    ensure(blocks.len() == 2 && blocks.iter().all(is_text), "blocks of both pages")?;
    let metadata = document.metadata.ok_or("metadata")?;
    ensure(metadata.num_pages == Some(2), format!("{:?}", metadata.num_pages))?;

    let selector = AttributeSelector { selector: "audio source".into(), attribute: "type".into() };
    let formats = vec![Format::Audio, Format::Video, Format::Attributes, Format::Branding];
    let options = ScrapeOptions { attribute_selectors: Some(vec![selector]), ..World::formats(formats) };
    let document = told(world.client.scrape(format!("{}/media", world.site), options).await)?;
    ensure(document.audio.is_some_and(|url| url.ends_with("/files/audio.wav")), "audio")?;
    ensure(document.video.is_some_and(|url| url.ends_with("/files/film.webm")), "video")?;
    ensure(document.attributes.is_some_and(|found| found[0].values == ["audio/wav"]), "attributes")?;
    ensure(document.branding.is_some_and(|branding| branding["colors"].is_object()), "branding")
}

async fn actions_give_their_results(world: &World) -> Outcome {
    let actions = vec![
        Action::Click { selector: "#count".to_owned() },
        Action::Wait { milliseconds: Some(20), selector: None },
        Action::Screenshot { full_page: Some(true), quality: None, viewport: None },
        Action::ExecuteJavascript { script: "+n.textContent".to_owned() },
        Action::Scrape,
    ];
    let options = ScrapeOptions { actions: Some(actions), ..Default::default() };
    let document = told(world.client.scrape(format!("{}/actions", world.site), options).await)?;
    let done = document.actions.ok_or("actions")?;
    let count = |name: &str| done.get(name).and_then(|list| list.as_array()).map(Vec::len);
    ensure(
        ["screenshots", "scrapes", "javascriptReturns", "pdfs"].map(count) == [Some(1), Some(1), Some(1), Some(0)],
        format!("{:?}", done.keys()),
    )?;
    ensure(done["javascriptReturns"][0]["value"] == 1, done["javascriptReturns"].to_string())
}

async fn errors_have_the_services_text(world: &World) -> Outcome {
    let refused = world.client.scrape("ftp://files.example/x", None).await.err().ok_or("refused")?.to_string();
    ensure(refused.contains("unsupported protocol"), refused)?;
    let stranger = told(Client::new_selfhosted(&world.base, Some("nobodys-key")))?;
    let refused = stranger.scrape(format!("{}/small/1", world.site), None).await.err().ok_or("refused")?.to_string();
    ensure(refused.contains("Unauthorized"), refused)
}

async fn the_waiter_returns_every_document(world: &World) -> Outcome {
    let options = BatchScrapeOptions {
        options: Some(World::formats(vec![Format::Markdown])),
        poll_interval: Some(500),
        ..Default::default()
    };
    let job = told(world.client.batch_scrape(world.urls("/mix/", 30), options).await)?;
    ensure(job.status == JobStatus::Completed, format!("{:?}", job.status))?;
    ensure((job.completed, job.total, job.credits_used) == (30, 30, Some(30)), "counts")?;
    let seen: BTreeSet<_> = job.data.iter().filter_map(|d| d.metadata.as_ref()?.source_url.clone()).collect();
    ensure(seen.len() == 30, format!("{} addresses", seen.len()))
}

async fn pages_of_results_are_followed(world: &World) -> Outcome {
    let options = BatchScrapeOptions { poll_interval: Some(500), ..Default::default() };
    let job = told(world.client.batch_scrape(world.urls("/small/", 230), options).await)?;
    ensure(job.data.len() == 230, format!("{} documents", job.data.len()))
}

async fn failed_pages_are_in_the_errors(world: &World) -> Outcome {
    let urls = vec![format!("{}/small/1", world.site), format!("{}/cut/reset", world.site)];
    let started = told(world.client.start_batch_scrape(urls, None).await)?;
    loop {
        let status = told(world.client.get_batch_scrape_status(&started.id).await)?;
        if status.status != JobStatus::Scraping {
            ensure((status.completed, status.total) == (1, 1), format!("{} of {}", status.completed, status.total))?;
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let errors = told(world.client.get_batch_scrape_errors(&started.id).await)?.errors;
    ensure(errors.len() == 1, format!("{} errors", errors.len()))
}

async fn append_invalid_addresses_and_idempotency_work(world: &World) -> Outcome {
    let mut urls = world.urls("/slow?ms=2000&n=", 1);
    urls.push("http://nodot/".to_owned());
    let key = format!("0190c0de-0000-7000-8000-{:012x}", std::process::id());
    let options = BatchScrapeOptions { idempotency_key: Some(key), ..Default::default() };
    let started = told(world.client.start_batch_scrape(urls.clone(), options.clone()).await)?;
    ensure(started.invalid_urls == Some(vec!["http://nodot/".to_owned()]), format!("{:?}", started.invalid_urls))?;
    let append = BatchScrapeOptions { append_to_id: Some(started.id.clone()), ..Default::default() };
    let again = told(world.client.start_batch_scrape(world.urls("/small/", 2), append).await)?;
    ensure(again.id == started.id, "the same id")?;
    let refused = world.client.start_batch_scrape(urls, options).await.err().ok_or("refused")?.to_string();
    ensure(refused.contains("Idempotency key already used"), refused)
}

async fn a_map_works_in_every_mode(world: &World) -> Outcome {
    let at = |path: &str| format!("{}{path}", world.site);
    let urls = |map: &MapResponse| map.links.iter().map(|link| link.url.clone()).collect::<BTreeSet<_>>();
    let only = MapOptions { sitemap: Some(SitemapMode::Only), limit: Some(100_000), ..Default::default() };
    let only = told(world.client.map(at("/"), only).await)?;
    ensure(urls(&only).len() > 10_000, format!("{} links", only.links.len()))?;
    let skip = MapOptions { sitemap: Some(SitemapMode::Skip), ..Default::default() };
    let skip = told(world.client.map(at("/crawl/5/"), skip).await)?;
    ensure(urls(&skip).contains(&at("/crawl/5/9/")) && !urls(&skip).contains(&at("/docs/9998")), "the page's links")?;
    let search = MapOptions { search: Some("whales".to_owned()), limit: Some(3), ..Default::default() };
    let found = told(world.client.map(at("/maps/sitemap.xml"), search).await)?;
    ensure(found.links[0].title.as_deref() == Some("Watching whales & dolphins"), format!("{:?}", found.links[0]))?;
    let late = MapOptions { timeout: Some(500), ..Default::default() };
    let refused = world.client.map(at("/hang"), late).await.err().ok_or("refused")?.to_string();
    ensure(refused.contains("timed out"), refused)
}

async fn a_search_finds_pages(world: &World) -> Outcome {
    let found = told(world.client.search("whales", None).await)?;
    let web = found.data.web.ok_or("web")?;
    ensure(web.len() == 3, format!("{web:?}"))
}

async fn a_crawl_returns_every_page_once(world: &World) -> Outcome {
    let options = CrawlOptions {
        sitemap: Some(SitemapMode::Skip),
        max_discovery_depth: Some(2),
        ignore_query_parameters: Some(true),
        scrape_options: Some(World::formats(vec![Format::Markdown])),
        poll_interval: Some(500),
        ..Default::default()
    };
    let job = told(world.client.crawl(format!("{}/crawl/", world.site), options).await)?;
    ensure(job.status == JobStatus::Completed, format!("{:?}", job.status))?;
    ensure((job.completed, job.total, job.credits_used) == (111, 111, Some(111)), "counts")?;
    let seen: BTreeSet<_> = job.data.iter().filter_map(|d| d.metadata.as_ref()?.source_url.clone()).collect();
    ensure(seen.len() == 111, format!("{} addresses", seen.len()))
}

async fn a_crawl_is_started_cancelled_and_tells_its_errors(world: &World) -> Outcome {
    let options = CrawlOptions { sitemap: Some(SitemapMode::Skip), delay: Some(1), ..Default::default() };
    let started = told(world.client.start_crawl(format!("{}/trap/", world.site), options).await)?;
    let running = told(world.client.get_crawl_status(&started.id).await)?;
    ensure(running.status == JobStatus::Scraping, format!("{:?}", running.status))?;
    ensure(told(world.client.cancel_crawl(&started.id).await)?.status == "cancelled", "the answer to a cancel")?;
    let status = told(world.client.get_crawl_status(&started.id).await)?.status;
    ensure(status == JobStatus::Cancelled, format!("{status:?}"))?;
    let errors = told(world.client.get_crawl_errors(&started.id).await)?;
    ensure(errors.errors.is_empty() && errors.robots_blocked.is_empty(), "no errors")?;
    let wrong = CrawlOptions { include_paths: Some(vec!["(".to_owned()]), ..Default::default() };
    let refused = world.client.start_crawl(format!("{}/crawl/", world.site), wrong).await.err().ok_or("refused")?;
    ensure(refused.to_string().contains("not a valid pattern"), refused.to_string())
}

async fn run(name: &str, test: impl Future<Output = Outcome>, failed: &mut usize) {
    match tokio::time::timeout(std::time::Duration::from_secs(90), test).await {
        Ok(Ok(())) => println!("ok   {name}"),
        outcome => {
            *failed += 1;
            println!("FAIL {name}: {outcome:?}");
        }
    }
}

async fn code_in_three_languages_a_prompt_and_a_stop(world: &World) -> Outcome {
    let scrape = std::env::var("WEIR_SCRAPE").map_err(|_| "WEIR_SCRAPE is not set")?;
    let code = |language, code: &str| ScrapeExecuteOptions {
        code: Some(code.to_owned()),
        language: Some(language),
        timeout: Some(60),
        ..Default::default()
    };
    let node = told(world.client.interact(&scrape, code(ScrapeExecuteLanguage::Node, "await page.title()")).await)?;
    ensure(node.success && node.exit_code == Some(0) && node.killed == Some(false), format!("{node:?}"))?;
    ensure(node.live_view_url.is_some() && node.interactive_live_view_url.is_some(), format!("{node:?}"))?;
    let title = node.result.filter(|title| !title.is_empty()).ok_or("a title")?;
    for (language, text) in [
        (ScrapeExecuteLanguage::Python, "print(await page.title())"),
        (ScrapeExecuteLanguage::Bash, "agent-browser get title"),
    ] {
        let ran = told(world.client.interact(&scrape, code(language, text)).await)?;
        ensure(ran.stdout.as_deref().map(str::trim) == Some(&title), format!("{ran:?}"))?;
    }
    let task = ScrapeExecuteOptions { prompt: Some("What do you see?".to_owned()), ..Default::default() };
    let agent = told(world.client.interact(&scrape, task).await)?;
    ensure(agent.success && agent.output.as_deref() == Some("seen"), format!("{agent:?}"))?;
    ensure(agent.result.is_some_and(|page| page.contains(&title)), "the last snapshot")?;
    let ended = told(world.client.stop_interaction(&scrape).await)?;
    ensure(ended.success && ended.credits_billed == Some(2), format!("{ended:?}"))?;
    let gone = world.client.interact(&scrape, code(ScrapeExecuteLanguage::Node, "1")).await;
    ensure(gone.err().is_some_and(|error| error.to_string().contains("destroyed")), "it is gone")
}

async fn formats_that_a_model_reads(world: &World) -> Outcome {
    let schema = serde_json::json!({"type": "object", "properties": {"seen": {"type": "string"}}});
    let options = ScrapeOptions {
        json_options: Some(JsonOptions {
            schema: Some(schema),
            prompt: Some("what is seen".to_owned()),
            ..Default::default()
        }),
        change_tracking_options: Some(ChangeTrackingOptions {
            modes: Some(vec![ChangeTrackingMode::GitDiff]),
            tag: Some("rust".to_owned()),
            ..Default::default()
        }),
        redact_pii: Some(true),
        ..World::formats(vec![
            Format::Markdown,
            Format::Summary,
            Format::Json,
            Format::ChangeTracking,
            Format::Question(QuestionFormat { question: "What?".to_owned() }),
            Format::Highlights(HighlightsFormat { query: "the main thing".to_owned() }),
        ])
    };
    let document = told(world.client.scrape(format!("{}/article/9", world.site), options).await)?;
    ensure(document.markdown.is_some_and(|text| text.contains("MAIN")), "markdown")?;
    ensure(document.summary.as_deref() == Some("seen"), format!("{:?}", document.summary))?;
    ensure(document.json == Some(serde_json::json!({"seen": "seen"})), format!("{:?}", document.json))?;
    ensure(document.answer.as_deref() == Some("seen"), format!("{:?}", document.answer))?;
    ensure(document.highlights.is_some_and(|text| text.starts_with("MAIN")), "highlights")?;
    let tracking = document.change_tracking.ok_or("changeTracking")?;
    ensure(tracking["changeStatus"] == "new", tracking.to_string())
}

async fn a_monitor_is_made_and_its_judged_hits_are_read(world: &World) -> Outcome {
    let request = CreateMonitorRequest {
        name: "Whales".to_owned(),
        schedule: MonitorSchedule { cron: "0 * * * *".to_owned(), timezone: None },
        targets: vec![serde_json::json!({"type": "search", "queries": ["whales"]})],
        webhook: None,
        notification: None,
        retention_days: Some(7),
        goal: Some("whales".to_owned()),
        judge_enabled: None,
    };
    let client = &world.client;
    let made = told(client.create_monitor(request).await)?;
    ensure(made.judge_enabled && made.retention_days == 7, format!("{made:?}"))?;
    ensure(told(client.list_monitors(Some(5), None).await)?.iter().any(|one| one.id == made.id), "it is listed")?;
    let run = told(client.run_monitor(&made.id).await)?;
    let check = loop {
        let check = told(client.get_monitor_check(&made.id, &run.id, None, None, None).await)?;
        if check.check.finished_at.is_some() {
            break check;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    ensure(check.check.status == "completed" && check.pages.len() == 3, format!("{check:?}"))?;
    for page in &check.pages {
        let judged = page.judgment.as_ref().ok_or_else(|| format!("{page:?}"))?;
        ensure(judged.meaningful && judged.confidence == "high" && judged.fields.is_empty(), format!("{judged:?}"))?;
    }
    let checks = told(client.list_monitor_checks(&made.id, Some(5), None).await)?;
    ensure(checks.len() == 1 && checks[0].id == run.id, format!("{checks:?}"))?;
    let update = UpdateMonitorRequest { status: Some("paused".to_owned()), ..Default::default() };
    let paused = told(client.update_monitor(&made.id, update).await)?;
    ensure(paused.status == "paused" && paused.next_run_at.is_none(), format!("{paused:?}"))?;
    ensure(told(client.delete_monitor(&made.id).await)?, "it is deleted")
}

async fn an_agent_is_waited_for_and_told_of(world: &World) -> Outcome {
    let options = AgentOptions { prompt: "What is seen?".to_owned(), poll_interval: Some(100), ..Default::default() };
    let client = &world.client;
    let started = told(client.start_agent(options.clone()).await)?;
    ensure(started.success && started.thread_turn == Some(1), format!("{started:?}"))?;
    let ended = told(client.agent(options).await)?;
    ensure(matches!(ended.status, AgentStatus::Completed), format!("{ended:?}"))?;
    ensure(ended.data == Some(serde_json::json!({"seen": "seen"})), format!("{ended:?}"))?;
    let listed = told(client.list_agents(None).await)?.agents.ok_or("a list")?;
    ensure(listed.iter().any(|agent| agent.id == started.id), format!("{listed:?}"))?;
    let trace = told(client.get_agent_trace(&started.id, false).await)?;
    ensure(trace.events.is_some_and(|events| !events.is_empty()), "events")
}

async fn a_file_is_parsed(world: &World) -> Outcome {
    let file = include_bytes!("../../../../worker/office/tests/files/tables.docx").to_vec();
    let document = told(world.client.parse(ParseFile::from_bytes("tables.docx", file), None).await)?;
    ensure(document.markdown.is_some_and(|text| text.contains("| --- |")), "the table is there")?;
    let formats = told(world.client.get_parse_formats().await)?;
    ensure(formats.iter().any(|row| row.format == "docx"), "docx is among the formats")
}

/// Every method that the specification does not have: its route is not there, or not yet, and says so in words that only
/// a JSON answer brings here.
async fn what_there_is_not_says_so(world: &World) -> Outcome {
    let (client, id) = (&world.client, "0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f");
    macro_rules! refusals {
        ($($call:ident($($argument:expr),*)),+ $(,)?) => {
            vec![$((stringify!($call), client.$call($($argument),*).await.err().map(|error| error.to_string()))),+]
        };
    }
    let refusals = refusals![
        search_papers("x", None),
        inspect_paper("x"),
        read_paper("x", "y", None),
        related_papers("x", "y", None),
        developer_search("x", None),
        search_github("x", None),
        get_agent_status(id),
        get_agent_trace(id, false),
        get_agent_snapshot(id, id),
        get_monitor(id),
        delete_monitor(id),
        run_monitor(id),
        list_monitor_checks(id, None, None),
        get_monitor_check(id, id, None, None, None),
    ];
    ensure(client.cancel_agent(id).await.ok() != Some(true), "nothing is cancelled")?;
    // Lists have nothing in them, which is no refusal.
    ensure(
        client.list_agents(None).await.is_ok() && client.list_monitors(None, None).await.is_ok(),
        "lists are lists",
    )?;
    for (name, error) in refusals {
        let error = error.ok_or_else(|| format!("{name}: no error"))?;
        // The client drops the text of an answer whose call is about a status or a cancellation.
        let is_told = ["Cannot ", "404", "not found"].iter().any(|words| error.contains(words));
        ensure(is_told, format!("{name}: {error}"))?;
    }
    Ok(())
}

macro_rules! run_all {
    ($world:expr, $($name:ident),+ $(,)?) => {{
        let mut failed = 0;
        let names = [$(stringify!($name)),+];
        $(run(stringify!($name), $name($world), &mut failed).await;)+
        (names.len() - failed, failed)
    }};
}

#[tokio::main]
async fn main() -> ExitCode {
    let setting = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let (base, key) = (setting("WEIR_URL"), setting("WEIR_KEY"));
    let client = Client::new_selfhosted(&base, Some(key)).expect("the client is made");
    let world = World { client, base, site: setting("SITE_URL") };
    if std::env::args().nth(1).as_deref() == Some("interact") {
        let (passed, failed) = run_all!(
            &world,
            formats_that_a_model_reads,
            code_in_three_languages_a_prompt_and_a_stop,
            a_monitor_is_made_and_its_judged_hits_are_read,
            an_agent_is_waited_for_and_told_of,
        );
        return close(passed, failed);
    }
    let (passed, failed) = run_all!(
        &world,
        a_scrape_gives_each_format_in_its_field,
        pdfs_attributes_branding_and_media_have_their_fields,
        actions_give_their_results,
        errors_have_the_services_text,
        the_waiter_returns_every_document,
        pages_of_results_are_followed,
        failed_pages_are_in_the_errors,
        append_invalid_addresses_and_idempotency_work,
        a_map_works_in_every_mode,
        a_search_finds_pages,
        a_file_is_parsed,
        a_crawl_returns_every_page_once,
        a_crawl_is_started_cancelled_and_tells_its_errors,
        what_there_is_not_says_so,
    );
    close(passed, failed)
}

fn close(passed: usize, failed: usize) -> ExitCode {
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
