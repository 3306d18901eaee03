//! The steps of one task: each is written down before it is done, and what came of it before the next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use weir_shared::clock;
use weir_shared::domain::job::PageState;
use weir_shared::domain::price;
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::domain::session::SessionState;
use weir_shared::domain::task::{MAX_PAGES, MAX_TOKENS, StepKind, StopReason, TaskSpec};
use weir_shared::fault::FaultPoint;
use weir_shared::guests::Urgency;
use weir_shared::ids::PageId;
use weir_shared::llm::{Allowance, Asker, ModelError, Question, Role, Spent, TokenMeter};
use weir_shared::store::accounts::credits;
use weir_shared::store::work::jobs;
use weir_shared::store::work::pages::{self, PageRow};
use weir_shared::store::work::tasks::{self, Asked, ClaimedTask, NewStep, StepEnd, StepRow};
use weir_shared::store::{StoreError, StoreResult, sessions};

use crate::context::WorkerContext;

/// Bound on one answer of the model: as long as a page may take. A model on a machine of one's own takes minutes to read a
/// long page.
const ANSWER: Duration = Duration::from_mins(5);
/// How long what is under way may go on when the worker is stopping.
const GRACE: Duration = Duration::from_secs(8);
/// Answers of one question: a wrong one is told what was wrong.
const ANSWERS: usize = 3;
/// How often a step begins again that failed for a passing reason, and the pauses before it.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(15), Duration::from_secs(45)];
/// Bytes of a wrong answer and of what was wrong with it that the model is told again.
const ECHO: usize = 4_000;
const HINT: usize = 1_500;
/// Bytes that count as a token.
const BYTES_PER_TOKEN: usize = 4;

/// Why a program stops here.
#[derive(Debug)]
pub(super) enum Halt {
    /// Pages are on their way.
    Wait,
    /// It goes on after a pause.
    Later(Duration),
    /// The task is not this worker's any more.
    Gone,
    /// It ends.
    Stop(StopReason, String),
    Store(StoreError),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What a step came to.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub outcome: Value,
    pub spent: Spent,
    /// Billed by something else already.
    pub billed: i64,
    /// It costs nothing, as nothing came of it.
    pub is_free: bool,
}

impl Done {
    pub fn of(outcome: Value) -> Self {
        Self { outcome, ..Self::default() }
    }
}

/// Why a step came to nothing, for a reason that may pass.
pub(super) struct Passing(pub String);

/// One step.
pub(super) struct Step<'a> {
    pub key: &'a str,
    pub kind: StepKind,
    /// What it is given.
    pub says: Value,
    /// What it costs.
    pub credits: i64,
    /// Whether it may be done again when nobody knows what came of it.
    pub repeats: bool,
    /// What is counted when it is broken off.
    pub lost: Spent,
}

/// A question to the model that is asked until its answer can be used.
pub(super) struct Ask<'a> {
    pub key: &'a str,
    pub system: &'a str,
    pub user: String,
    pub name: &'static str,
    pub schema: &'a Value,
    pub max_tokens: u32,
    /// What an answer costs that can be used.
    pub credits: i64,
    /// What it is about, for those who read the steps.
    pub about: Value,
}

struct Known {
    steps: HashMap<String, StepRow>,
    last: i64,
    tokens: i64,
}

/// See the module.
pub(super) struct Journal {
    pub context: Arc<WorkerContext>,
    pub task: ClaimedTask,
    pub options: ScrapeOptions,
    /// Of an agent: what it may cost.
    pub max_credits: Option<i64>,
    known: Mutex<Known>,
    gone: CancellationToken,
}

impl Journal {
    /// Reads the steps so far. `None`: the job is removed.
    pub async fn open(
        context: &Arc<WorkerContext>,
        task: &ClaimedTask,
        gone: CancellationToken,
    ) -> StoreResult<Option<Self>> {
        let db = &context.process.db;
        let Some(spec) = context.spec(task.job).await? else { return Ok(None) };
        let rows = tasks::steps(db, task.job).await?;
        let last = rows.iter().map(|row| row.number).max().unwrap_or(0);
        let steps = rows.into_iter().map(|row| (row.key.clone(), row)).collect();
        let known = Mutex::new(Known { steps, last, tokens: task.spent.sent + task.spent.received });
        Ok(Some(Self {
            context: Arc::clone(context),
            task: task.clone(),
            options: spec.options.clone(),
            max_credits: match &task.spec {
                TaskSpec::Agent(spec) => Some(spec.max_credits),
                TaskSpec::Extract(_) => None,
            },
            known,
            gone,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The model; the task has ended without one.
    pub fn model(&self) -> Result<Asker, Halt> {
        let none = || Halt::Stop(StopReason::Failed, "No language model is configured here (WEIR_LLM_URL).".to_owned());
        self.context.process.asker((self.task.team, Urgency::Background)).ok_or_else(none)
    }

    /// How long the task has been there, milliseconds.
    pub fn age(&self) -> i64 {
        self.context.process.db.now().ms_since(self.task.created_at)
    }

    /// How long it may still take by the caller's own bound, if there is one.
    pub fn left(&self) -> Option<Duration> {
        match &self.task.spec {
            TaskSpec::Extract(spec) => {
                Some(Duration::from_millis(u64::try_from(spec.timeout - self.age()).unwrap_or(0)))
            }
            TaskSpec::Agent(_) => None,
        }
    }

    /// The caller's own bound on the time.
    pub fn in_time(&self) -> Result<(), Halt> {
        if self.left().is_some_and(|left| left.is_zero()) {
            return Err(Halt::Stop(StopReason::TimeLimit, "The extraction did not end within its timeout.".to_owned()));
        }
        Ok(())
    }

    fn number(&self, key: &str) -> i64 {
        let mut known = self.lock();
        if let Some(row) = known.steps.get(key) {
            return row.number;
        }
        known.last += 1;
        known.last
    }

    /// Whether a step was begun before: it goes on whatever there is to begin one with now.
    pub fn has_begun(&self, key: &str) -> bool {
        self.lock().steps.contains_key(key)
    }

    /// Keeps so many numbers for steps that are written elsewhere; returns the one before them.
    pub fn reserve(&self, count: i64) -> i64 {
        let mut known = self.lock();
        known.last += count;
        known.last - count
    }

    fn done(&self, key: &str) -> Option<Value> {
        let known = self.lock();
        let outcome = known.steps.get(key)?.outcome.as_ref()?;
        Some(serde_json::from_str(outcome).unwrap_or(Value::Null))
    }

    fn begun(&self, key: &str) -> Option<StepRow> {
        self.lock().steps.get(key).cloned()
    }

    /// What was done under this key, or what `work` does now.
    pub async fn step(&self, step: Step<'_>, work: impl Future<Output = Result<Done, Passing>>) -> Result<Value, Halt> {
        let db = &self.context.process.db;
        if let Some(outcome) = self.done(step.key) {
            return Ok(outcome);
        }
        if self.begun(step.key).is_some() && !step.repeats {
            let billed = self.lost_bill(&step).await?;
            return self.end(&step, Done { billed, ..Done::of(json!({ "unknown": true })) }).await;
        }
        self.in_time()?;
        self.afford(step.credits).await?;
        let number = self.number(step.key);
        let new = NewStep { key: step.key, number, kind: step.kind, says: step.says.to_string() };
        let tries = tasks::begin_step(db, &self.task, &new, db.now()).await?.ok_or(Halt::Gone)?;
        db.faults().reach(FaultPoint::StepBegun)?;
        let came = tokio::select! {
            biased;
            () = self.gone.cancelled() => {
                self.lose(step.lost).await;
                return Err(Halt::Gone);
            }
            () = self.stopping() => {
                self.lose(step.lost).await;
                return Err(Halt::Later(Duration::ZERO));
            }
            halt = self.overtime() => {
                self.lose(step.lost).await;
                return Err(halt);
            }
            came = work => came,
        };
        let done = match came {
            Ok(done) => done,
            Err(Passing(why)) => {
                let pause = usize::try_from(tries - 1).ok().and_then(|tries| PAUSES.get(tries));
                if let Some(pause) = pause.filter(|_| step.repeats) {
                    tracing::info!(job.id = %self.task.job, why, tries, "a step of a task is tried again later");
                    return Err(Halt::Later(*pause));
                }
                Done::of(json!({ "error": why }))
            }
        };
        db.faults().reach(FaultPoint::StepDone)?;
        self.end(&step, done).await
    }

    /// What the browser of a step cost whose worker is gone; others end it, and bill it then.
    async fn lost_bill(&self, step: &Step<'_>) -> Result<i64, Halt> {
        let Ok(page) = serde_json::from_value::<PageId>(step.says["page"].clone()) else { return Ok(0) };
        match sessions::of_page(&self.context.process.db, page).await? {
            None => Ok(0),
            Some(row) if row.state == SessionState::Destroyed => Ok(row.credits),
            Some(_) => Err(Halt::Later(Duration::from_secs(1))),
        }
    }

    async fn end(&self, step: &Step<'_>, done: Done) -> Result<Value, Halt> {
        let db = &self.context.process.db;
        let failed = done.outcome.get("error").is_some() || done.outcome.get("unknown").is_some();
        let end = StepEnd {
            outcome: done.outcome.to_string(),
            spent: done.spent,
            // What came to nothing costs nothing.
            credits: if failed || done.is_free { 0 } else { step.credits },
            billed: done.billed,
            is_action: step.kind != StepKind::Model && self.max_credits.is_some(),
        };
        let ended = tasks::end_step(db, &self.task, step.key, &end, db.now()).await?;
        db.faults().reach(FaultPoint::StepStored)?;
        if !ended {
            return Err(Halt::Gone);
        }
        self.lock().tokens += done.spent.sent + done.spent.received;
        Ok(done.outcome)
    }

    /// The worker is stopping, and what was under way has had its time.
    async fn stopping(&self) {
        self.context.draining.cancelled().await;
        tokio::time::sleep(GRACE).await;
    }

    /// The caller's time is over, whatever is under way.
    async fn overtime(&self) -> Halt {
        loop {
            if let Err(halt) = self.in_time() {
                return halt;
            }
            match self.left() {
                Some(left) => self.context.process.db.clock().sleep(left).await,
                None => std::future::pending().await,
            }
        }
    }

    /// What was asked and will not be heard is spent all the same.
    async fn lose(&self, spent: Spent) {
        self.context.process.spent(self.task.team, self.task.key, spent).await;
    }

    /// Whether so many credits more may be spent.
    pub async fn afford(&self, credits: i64) -> Result<(), Halt> {
        if self.lock().tokens > MAX_TOKENS {
            let text = format!("The task reached its bound of {MAX_TOKENS} tokens.");
            return Err(Halt::Stop(StopReason::TokenLimit, text));
        }
        if credits == 0 {
            return Ok(());
        }
        let db = &self.context.process.db;
        let limit = |text: String| Err(Halt::Stop(StopReason::CreditLimit, text));
        if let Some(most) = self.max_credits {
            let used = jobs::load(db, self.task.job).await?.map_or(0, |job| job.credits_used);
            if used + credits > most {
                return limit(format!("Max credits exceeded: the task may use {most}, and has used {used}."));
            }
        }
        if self.context.process.settings.limits.metered
            && credits::balance(db, self.task.team).await?.is_some_and(|balance| balance.left() < credits)
        {
            return limit("The team's credits are used up.".to_owned());
        }
        Ok(())
    }

    /// Asks the model until `check` takes its answer. The inner error says why none could be used.
    pub async fn ask<T>(
        &self,
        ask: Ask<'_>,
        check: impl Fn(Value) -> Result<T, String>,
    ) -> Result<Result<T, String>, Halt> {
        let model = self.model()?;
        let mut turns = vec![(Role::User, ask.user)];
        let mut wrong = String::new();
        for n in 1..=ANSWERS {
            let key = format!("{}/{n}", ask.key);
            let length: usize = ask.system.len() + turns.iter().map(|turn| turn.1.len()).sum::<usize>();
            let lost = Spent { sent: (length / BYTES_PER_TOKEN) as i64, received: 0 };
            let question = Question {
                system: ask.system,
                turns: &turns,
                picture: None,
                name: ask.name,
                schema: ask.schema,
                strict: false,
                max_tokens: ask.max_tokens,
            };
            let step = Step {
                key: &key,
                kind: StepKind::Model,
                says: json!({ "asks": ask.name, "about": ask.about }),
                credits: ask.credits,
                repeats: true,
                lost,
            };
            let work = async {
                let done = self.answer(&model, &question).await?;
                let is_used = done.outcome.get("answer").is_some_and(|answer| check(answer.clone()).is_ok());
                Ok(Done { is_free: !is_used, ..done })
            };
            let said = self.step(step, work).await?;
            let (echo, hint) = if let Some(answer) = said.get("answer") {
                match check(answer.clone()) {
                    Ok(value) => return Ok(Ok(value)),
                    Err(problem) => {
                        wrong = format!("the language model's answer could not be used: {}", cut(&problem, HINT));
                        (answer.to_string(), format!("{} Answer again, with this put right.", cut(&problem, HINT)))
                    }
                }
            } else if let Some(text) = said["text"].as_str() {
                wrong = ModelError::NoJson(String::new()).to_string();
                (text.to_owned(), "That was no JSON object. Answer with one that fits the schema.".to_owned())
            } else {
                return Ok(Err(said["error"].as_str().unwrap_or("the language model failed").to_owned()));
            };
            turns.push((Role::Assistant, cut(&echo, ECHO).to_owned()));
            turns.push((Role::User, hint));
        }
        Ok(Err(wrong))
    }

    async fn answer(&self, model: &Asker, question: &Question<'_>) -> Result<Done, Passing> {
        let meter = TokenMeter::default();
        let said = model.ask_for_json(question, &Allowance::of_background(clock::deadline(ANSWER)), &meter).await;
        let spent = meter.read();
        let metrics = &self.context.process.metrics.model_tokens;
        metrics.with_label_values(&["sent"]).inc_by(spent.sent.unsigned_abs());
        metrics.with_label_values(&["received"]).inc_by(spent.received.unsigned_abs());
        let outcome = match said {
            Ok(answer) => json!({ "answer": answer }),
            Err(ModelError::NoJson(text)) => json!({ "text": cut(&text, ECHO) }),
            Err(error) => {
                let may_pass = matches!(
                    error,
                    ModelError::Timeout
                        | ModelError::Unreachable
                        | ModelError::Unreadable
                        | ModelError::Status(408 | 429 | 500..=599)
                );
                if may_pass {
                    // Not with the step, which begins again.
                    self.lose(spent).await;
                    return Err(Passing(error.to_string()));
                }
                json!({ "error": error.to_string() })
            }
        };
        Ok(Done { outcome, spent, ..Done::default() })
    }

    /// The pages of these addresses, once they have ended. They are scraped as those of a batch are.
    pub async fn pages(&self, key: &str, urls: &[String]) -> Result<Vec<PageRow>, Halt> {
        let db = &self.context.process.db;
        let ids = match self.begun(key) {
            Some(row) => pages_of(&row),
            None => {
                let price = price::most(&self.options);
                self.afford(price * urls.len() as i64).await?;
                let number = self.number(key);
                let step = NewStep { key, number, kind: StepKind::Pages, says: String::new() };
                let says = |ids: &[PageId]| json!({ "urls": urls, "pages": ids }).to_string();
                let metered = self.context.process.settings.limits.metered;
                match tasks::begin_pages(db, &self.task, step, (urls, price, metered), says).await? {
                    Asked::Queued(ids) => {
                        db.faults().reach(FaultPoint::StepBegun)?;
                        ids
                    }
                    Asked::Short => {
                        let text = "The team's credits are not enough for further pages.".to_owned();
                        return Err(Halt::Stop(StopReason::CreditLimit, text));
                    }
                    Asked::NotOurs => return Err(Halt::Gone),
                }
            }
        };
        let all = pages::list(db, self.task.job, None, MAX_PAGES as i64 * 2).await?;
        let rows: Vec<PageRow> = ids.iter().filter_map(|id| all.iter().find(|row| row.id == *id).cloned()).collect();
        if self.done(key).is_some() {
            return Ok(rows);
        }
        if rows.iter().any(|row| matches!(row.state, PageState::Queued | PageState::Running)) {
            return Err(Halt::Wait);
        }
        let done = rows.iter().filter(|row| row.state == PageState::Done).count();
        let step =
            Step { key, kind: StepKind::Pages, says: Value::Null, credits: 0, repeats: true, lost: Spent::default() };
        self.end(&step, Done::of(json!({ "done": done, "failed": rows.len() - done }))).await?;
        Ok(rows)
    }
}

/// The pages that a step has asked for.
fn pages_of(row: &StepRow) -> Vec<PageId> {
    let says: Value = serde_json::from_str(&row.says).unwrap_or_default();
    serde_json::from_value(says["pages"].clone()).unwrap_or_default()
}

/// The beginning of a text.
pub(super) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// What came of steps at once. Each is let go to its end, because what it asked for is paid; then the first halt counts.
pub(super) fn all<T>(came: Vec<Result<T, Halt>>) -> Result<Vec<T>, Halt> {
    let rank = |halt: &Halt| match halt {
        Halt::Gone => 0,
        Halt::Store(_) => 1,
        Halt::Stop(..) => 2,
        Halt::Later(_) => 3,
        Halt::Wait => 4,
    };
    let mut done = Vec::with_capacity(came.len());
    let mut halts = Vec::new();
    for one in came {
        match one {
            Ok(value) => done.push(value),
            Err(halt) => halts.push(halt),
        }
    }
    match halts.into_iter().min_by_key(rank) {
        Some(halt) => Err(halt),
        None => Ok(done),
    }
}
