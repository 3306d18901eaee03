// Error codes in plain words, with what can be done. The codes are those of the API; `tests` hold this table to them.
const WORDS = {
  SCRAPE_DNS_RESOLUTION_ERROR: ["The name of the site does not exist or could not be looked up.",
    "Check the spelling of the host. If it is right, check the resolver of the worker's machine."],
  SCRAPE_SSL_ERROR: ["The site's certificate is not trusted, or no encrypted connection came about.",
    "If you trust the site, set skipTlsVerification. Otherwise its operator has to renew the certificate."],
  SCRAPE_SITE_ERROR: ["The site refused the connection, cut it, or did not speak HTTP as it should.",
    "It is often over soon: replay it. If it stays, the site may be down or may turn away this machine's address: try another proxy."],
  SCRAPE_ALL_ENGINES_FAILED: ["Fetching failed, and so did the browser.",
    "Replay it. If it happens with many sites, look at the workers: memory, browsers, the log."],
  SCRAPE_TIMEOUT: ["The page did not finish within its timeout.",
    "Raise timeout, or lower waitFor. If many sites are slow, the workers may have too much to do."],
  CONCURRENCY_QUEUE_TIMEOUT: ["The page waited too long for a free place of its team.",
    "Raise the team's concurrency, or start more workers."],
  SCRAPE_PAGE_TOO_LARGE: ["The page is larger than what is read.",
    "Nothing helps but a smaller page: the bound protects the workers."],
  SCRAPE_UNSUPPORTED_FILE_ERROR: ["The address leads to a file of a kind that is not read.",
    "Look at the address in a browser. Files that are read are listed by /v2/parse/formats."],
  SCRAPE_PDF_ANTIBOT_ERROR: ["What should be a PDF is a page against robots.",
    "Try a stealth proxy, or fetch the file once by hand and use parse."],
  SCRAPE_PDF_INSUFFICIENT_TIME_ERROR: ["The PDF takes longer to read than the timeout leaves.",
    "Raise timeout, or read fewer pages of it (parsers, maxPages)."],
  SCRAPE_PDF_OCR_REQUIRED: ["The PDF's pages are pictures, and their text is not recognised here.",
    "Install Tesseract on the worker, or allow recognition in parsers."],
  SCRAPE_AUDIO_UNSUPPORTED_URL: ["The page offers no sound.", "Leave the audio format out for this site."],
  SCRAPE_VIDEO_UNSUPPORTED_URL: ["The page offers no film.", "Leave the video format out for this site."],
  UNSUPPORTED_FILE_TYPE: ["The file is of a kind that is not read.", "See /v2/parse/formats for what is."],
  PARSE_UNSUPPORTED_OPTIONS: ["An option of the call means nothing for a file.", "Leave it out."],
  SCRAPE_BRANDING_NOT_SUPPORTED: ["Only rendered pages have colours and fonts; this address gives a file.",
    "Leave the branding format out."],
  SCRAPE_OPTION_NOT_AVAILABLE: ["The call asked for an option that this version does not have.",
    "Leave it out, or update the service."],
  SCRAPE_ACTION_ERROR: ["An action on the page could not be carried out.",
    "See the error for which one. Most often its selector matches nothing yet: wait for the element first."],
  SCRAPE_ACTIONS_NOT_SUPPORTED: ["There are actions, but the address gives a file and no page.",
    "Leave the actions out for this address."],
  SCRAPE_MODEL_NOT_CONFIGURED: ["A format or option needs a language model, and none is configured.",
    "Set WEIR_LLM_URL on the workers."],
  SCRAPE_MODEL_FAILED: ["The language model failed, or its answers could not be used.",
    "Replay it. If it stays, look at the model's endpoint and limits."],
  SCRAPE_PROMPT_INJECTION_DETECTED: ["The page's text tries to give orders to a language model.",
    "Do not feed this page to one. checkPromptInjection asked to be told."],
  SCRAPE_NO_CACHED_DATA: ["Only a cached result was wanted, and there is none old enough.",
    "Leave minAge out to fetch the page."],
  SCRAPE_LOCKDOWN_CACHE_MISS: ["Only the cache may answer, and it does not hold the page.",
    "Leave lockdown out to fetch the page."],
  SCRAPE_PROFILE_BUSY: ["Another session or page is writing to the profile.",
    "Wait until it ends, or open the profile without saving."],
  SCRAPE_JOB_CANCELLED: ["The job was cancelled before the page was done.",
    "Start the job again if it is still wanted."],
  MAP_TIMEOUT: ["The map was not done within its timeout.", "Raise timeout, or ask for fewer links."],
  MAP_FAILED: ["Neither the page nor a sitemap of the site could be read.",
    "Look at the site in a browser, then replay it."],
  SCRAPE_RETRY_LIMIT: ["The page took its worker down each time it was tried.",
    "Look at the worker's memory and log before you replay it."],
  unsafe_domain_blocked: ["The address is not one of the public web, or a rule blocks it.",
    "If this service may reach it, add its network to WEIR_ALLOW_NETS."],
  BROWSER_FAILED: ["The browser failed before anything was done.",
    "Replay it. If it repeats, look at the worker's memory and log."],
  BROWSER_NOT_CONFIGURED: ["No worker here runs browsers.",
    "Install Chromium on a worker's machine: weir doctor tells what is missing."],
  UNKNOWN_ERROR: ["Something failed that is not the page's fault.", "The service's log has the details. Replay it."],
  QUEUE_FULL: ["The team has as many pages waiting as it may.", "Wait, or let the operator raise the bound."],
  RATE_LIMITED: ["The team makes more requests a minute than it may.",
    "Slow down, or let the operator raise the team's rates."],
  INSUFFICIENT_CREDITS: ["The team has no credits left.", "The operator grants more: weir credits grant."],
  BAD_REQUEST: ["The request breaks the API's schema.", "The error names the field."],
  UNAVAILABLE: ["The database or every worker was away.", "Replay it when the service is healthy."],
};

/// What a code means, and what to do. Unknown codes get no invented words.
export function explain(code) {
  const found = code ? WORDS[code] : undefined;
  return found ? { what: found[0], todo: found[1] } : null;
}

export const ROLES = { team: "Team key", operator: "Operator", reader: "Operator, read only" };
/// Who somebody is that is signed in.
export const nameOf = (me) => (me.team ? `${me.team.name} (${ROLES[me.role]})` : ROLES[me.role] || me.role);

export const KINDS = {
  scrape: "Scrape", batch: "Batch", crawl: "Crawl", map: "Map", parse: "Parse", search: "Search", browser: "Browser",
    interact: "Interact", extract: "Extract", llmstxt: "llms.txt", agent: "Agent",
};
export const kindName = (kind) => KINDS[kind] || String(kind);
