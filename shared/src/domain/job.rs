//! Jobs and their pages: kinds, states and the rules of their life (spec 2.4, 3).

use super::states::states;
use super::words::words;

words! {
    /// What a job is.
    JobKind {
        /// One page somebody waits for.
        Scrape = "scrape",
        /// Many pages in the background.
        Batch = "batch",
        /// A site, page by page.
        Crawl = "crawl",
        /// The addresses of a site, which somebody waits for.
        Map = "map",
        /// The hits of a search, whose pages somebody waits for together.
        Search = "search",
        /// Data out of named pages, which a task reads.
        Extract = "extract",
        /// An answer that a task looks for by itself.
        Agent = "agent",
    }
    /// Events of a webhook (wire 7).
    WebhookEvent {
        Started = "started",
        Page = "page",
        /// A step of an agent's task.
        Action = "action",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

states! {
    /// State of a job.
    JobStatus {
        Scraping = "scraping",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
    /// How a job goes on.
    JobMove {
        /// Its last page has ended.
        Complete: Scraping => Completed,
        /// Its last page has ended, and nothing but failures came of it: see `job_after!` in the store.
        Fail: Scraping => Failed,
        /// Somebody cancelled it, or it expired.
        Cancel: Scraping => Cancelled,
        /// One of its pages is replayed.
        Reopen: Completed => Scraping,
        /// The same of a job that failed.
        Retry: Failed => Scraping,
    }

    /// State of a page. `Queued` and `Running` alternate; the others are final until a replay.
    PageState {
        Queued = "queued",
        Running = "running",
        Done = "done",
        Failed = "failed",
        Cancelled = "cancelled",
    }
    /// How a page goes on.
    PageMove {
        /// A worker takes it.
        Claim: Queued => Running,
        /// Its attempt came to nothing, and it waits for the next.
        Return: Running => Queued,
        /// It has its document.
        Finish: Running => Done,
        /// It is given up.
        Fail: Running => Failed,
        /// Clients never see it: it was a step of its job, or robots.txt forbids it.
        Hide: Running => Cancelled,
        /// It turned out to be another page again, or outside of what was asked for.
        Withdraw: Done => Cancelled,
        /// Its job ended before it was taken.
        Drop: Queued => Cancelled,
        /// The page that it was again has come to nothing.
        Revive: Cancelled => Queued,
        /// It is tried once more after it was given up.
        Replay: Failed => Queued,
    }
}

impl JobKind {
    /// Order in which a team's jobs are served: 0 somebody waits, 1 background.
    pub const fn rank(self) -> i64 {
        match self {
            Self::Scrape | Self::Map => 0,
            // Its ends are told as a job's, because they are many.
            Self::Batch | Self::Crawl | Self::Search | Self::Extract | Self::Agent => 1,
        }
    }

    /// Whether somebody waits for its one page, which has a wake-up of its own.
    pub const fn is_direct(self) -> bool {
        self.rank() == 0
    }

    /// What the ledger calls a page of this kind.
    pub const fn credit_kind(self) -> &'static str {
        match self {
            Self::Scrape => "scrape",
            Self::Batch => "batch_scrape",
            Self::Crawl => "crawl",
            Self::Map => "map",
            Self::Search => "search",
            Self::Extract => "extract",
            Self::Agent => "agent",
        }
    }

    /// Whether it is a task: it ends when the task says so, and not with its last page.
    pub const fn is_task(self) -> bool {
        matches!(self, Self::Extract | Self::Agent)
    }
}

impl WebhookEvent {
    /// Order inside a job: 0 start, 1 pages, 2 the end.
    pub const fn stage(self) -> i64 {
        match self {
            Self::Started => 0,
            Self::Page | Self::Action => 1,
            Self::Completed | Self::Failed | Self::Cancelled => 2,
        }
    }
}

/// Own failed tries after which a page is given up.
pub const MAX_TRIES: i64 = 3;

/// Claims after which a page is given up, whatever became of them: the ceiling against pages that take their
/// worker down. Well above [`MAX_TRIES`], because innocent pages die with a worker too.
pub const MAX_CLAIMS: i64 = 8;

/// Whether a page that was claimed `claims` times is given up instead of being claimed once more.
pub const fn is_worn_out(claims: i64) -> bool {
    claims >= MAX_CLAIMS
}

/// Pause before try `tries + 1`, in milliseconds, without jitter: 1 s, 4 s.
pub fn retry_pause_ms(tries: i64) -> i64 {
    1_000 << (2 * (tries - 1)).clamp(0, 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_moves_only_by_a_replay_or_out_of_sight() {
        let from = |state: PageState| PageMove::ALL.iter().copied().filter(move |step| step.from() == state);
        assert_eq!(from(PageState::Done).collect::<Vec<_>>(), [PageMove::Withdraw]);
        assert_eq!(from(PageState::Failed).collect::<Vec<_>>(), [PageMove::Replay]);
        assert_eq!(from(PageState::Cancelled).collect::<Vec<_>>(), [PageMove::Revive]);
        assert!(JobMove::ALL.iter().all(|step| step.from() != JobStatus::Cancelled));
        assert_eq!((PageMove::Claim.from().sql(), PageMove::Claim.to().sql()), ("'queued'", "'running'"));
    }
}
