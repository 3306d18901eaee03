//! The kinds of job that wake-ups call a worker for, one file each.

mod deliver_webhook;
mod job;
mod places;
mod receivers;
mod run_task;
mod serve_page;
mod serve_team;

pub use self::job::{Job, Kind};
pub use self::serve_page::ServePage;
pub use self::serve_team::ServeTeam;

/// Every kind of job.
pub const KINDS: [Kind; 4] = [
    Kind::of::<ServePage>(),
    Kind::of::<ServeTeam>(),
    Kind::of::<deliver_webhook::DeliverWebhook>(),
    Kind::of::<run_task::RunTask>(),
];
