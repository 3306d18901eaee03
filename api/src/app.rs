//! What every handler can reach: settings, database, wake-ups, limits. One per process, shared by its threads.

use std::sync::Arc;

use actix_web::{HttpMessage, HttpRequest, web};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use weir_shared::blobs::Blobs;
use weir_shared::config::Settings;
use weir_shared::domain::target::{RequestContext, fetch_url};
use weir_shared::domain::validation::ValidationError;
use weir_shared::error_code::ErrorCode;
use weir_shared::figures::Counter;
use weir_shared::guard::AddressGuard;
use weir_shared::guests::Urgency;
use weir_shared::ids::TeamId;
use weir_shared::llm::{Asker, Model};
use weir_shared::search::Backends;
use weir_shared::shares::Share;
use weir_shared::store::Db;
use weir_shared::store::work::documents::{Found, Packed, StoredDocument};
use weir_shared::traces;
use weir_shared::wake::Wake;
use weir_shared::witness::Witness;

use crate::callers::auth::{Caller, CallerCache, CallerTeam, Credentials, SignedIn, credentials};
use crate::callers::ended_jobs::EndedJobs;
use crate::callers::limits::{Bucket, Limiter};
use crate::callers::places::Places;
use crate::callers::queue_headroom::QueueHeadroom;
use crate::callers::turns::Turns;
use crate::console::state::Console;
use crate::error::{ApiError, ApiResult};
use crate::http::answers::{Answers, Room};
use crate::http::bodies::Bodies;
use crate::metrics::Metrics;
use crate::workers::direct_dispatch::DirectDispatch;
use crate::workers::relay_target::RelayTargets;
use crate::workers::silent_workers::SilentWorkers;
use crate::workers::worker_client::WorkerClient;

/// The process's state.
pub struct App {
    pub settings: Settings,
    pub db: Db,
    pub blobs: Blobs,
    pub wake: Wake,
    pub guard: AddressGuard,
    pub callers: CallerCache,
    pub console: Console,
    /// What is counted for the console.
    pub figures: Arc<Counter>,
    pub bodies: Bodies,
    pub answers: Answers,
    pub ended_jobs: EndedJobs,
    pub limiter: Limiter,
    /// What each team has open.
    pub places: Places,
    pub queue_headroom: QueueHeadroom,
    pub turns: Turns,
    /// The language model, where there is one.
    pub model: Option<Arc<Model>>,
    /// Where searches are made.
    pub search: Backends,
    /// Whether workers may be judged by their silence.
    pub witness: Witness,
    /// The runtime that serves the connections to Postgres; requests have others.
    pub runtime: tokio::runtime::Handle,
    pub metrics: Metrics,
    /// What the addresses of sessions are made from; the same in every process of the installation.
    pub internal_secret: String,
    pub workers: Arc<WorkerClient>,
    /// Which of them let a session's call wait in vain.
    pub silent_workers: SilentWorkers,
    /// Workers that take scrapes past the queue.
    pub direct_dispatch: DirectDispatch,
    /// Where sessions live, for their CDP clients and viewers.
    pub relay_targets: Arc<dyn RelayTargets>,
    /// Cancelled when the process has been told to stop: whoever waits cuts it short.
    pub stopping: CancellationToken,
}

/// How handlers get it.
pub type AppData = web::Data<App>;

impl App {
    /// Who calls, within the bucket's rate: the first step of every `/v2` and `/v1` route (spec 5, wire 11.1).
    ///
    /// # Errors
    /// 401 for a missing or unknown key, 429 over the rate.
    pub async fn authorize(&self, request: &HttpRequest, bucket: Bucket) -> ApiResult<Caller> {
        let caller = self.caller(request).await?;
        self.admit(&caller, bucket).await?;
        Ok(caller)
    }

    /// The language model as a caller of this team asks it, where there is one.
    pub fn asker(&self, team: TeamId) -> Option<Asker> {
        self.model.as_ref().map(|model| model.asked_by((team, Urgency::Direct)))
    }

    /// Who sent the request (wire 2.1), which has one of the team's places from here until it is answered. The access log
    /// finds the team in the request's extensions.
    ///
    /// # Errors
    /// 401 without a header, without a token, or with an unknown one, 429 when the team's other calls have all places.
    pub async fn caller(&self, request: &HttpRequest) -> ApiResult<Caller> {
        let signed_in = request.extensions().get::<SignedIn>().map(|signed_in| signed_in.0.clone());
        let caller = match signed_in {
            Some(caller) => caller,
            None => {
                let caller = self.caller_with(credentials(request.headers())).await?;
                request.extensions_mut().insert(CallerTeam(caller.team_id()));
                caller
            }
        };
        if !request.extensions().contains::<Share>() {
            let place = self.places.call(caller.team_id())?;
            request.extensions_mut().insert(place);
        }
        Ok(caller)
    }

    /// The same for credentials from elsewhere: a WebSocket's subprotocol.
    ///
    /// # Errors
    /// As [`App::caller`].
    pub async fn caller_with(&self, credentials: Credentials<'_>) -> ApiResult<Caller> {
        self.callers.find(&self.db, self.settings.api.auth_required, credentials).await
    }

    /// Counts a request of a caller.
    ///
    /// # Errors
    /// 429 over the rate.
    pub async fn admit(&self, caller: &Caller, bucket: Bucket) -> ApiResult<()> {
        self.limiter.admit(&self.db, caller, bucket, self.settings.limits.rates.as_ref()).await
    }

    /// Runs work of many statements apart from the threads that answer requests, where the database is Postgres. Dropping it
    /// ends the work.
    ///
    /// # Errors
    /// Those of the work.
    pub async fn beside_database<T: Send + 'static>(
        &self,
        work: impl Future<Output = ApiResult<T>> + Send + 'static,
    ) -> ApiResult<T> {
        if matches!(self.db, Db::Sqlite(_)) {
            return work.await;
        }
        let task = AbortOnDropHandle::new(self.runtime.spawn(traces::under(traces::current(), work.in_current_span())));
        task.await.map_err(|error| ApiError::internal(&error))?
    }

    /// Documents of a team, and the room that they take until they are sent.
    ///
    /// # Errors
    /// 429 when the team's other answers leave no room for long, and the store's.
    pub async fn open(&self, team: TeamId, found: Found) -> ApiResult<(Vec<StoredDocument>, Room)> {
        let room = self.answers.room(team, found.bytes()).await?;
        Ok((found.open(&self.db, &self.blobs).await?, room))
    }

    /// The same of one page.
    ///
    /// # Errors
    /// As those of [`App::open`].
    pub async fn unpack(&self, team: TeamId, packed: Packed) -> ApiResult<(StoredDocument, Room)> {
        let room = self.answers.room(team, packed.bytes()).await?;
        Ok((packed.open(&self.blobs).await?, room))
    }

    /// Parses a body with what this installation knows of hosts.
    ///
    /// # Errors
    /// What the parser says.
    pub fn parse<T>(
        &self,
        parser: impl FnOnce(RequestContext<'_>) -> Result<T, ValidationError>,
    ) -> Result<T, ValidationError> {
        let knows_host = |host: &str| self.settings.net.allow_hosts.contains_key(host);
        parser(RequestContext { knows_host: &knows_host })
    }

    /// Refuses a URL whose host is plainly an address that may not be reached. Names are judged when they are
    /// resolved, by the worker.
    ///
    /// # Errors
    /// 403 (wire 2.3).
    pub fn check_target(&self, requested: &str) -> ApiResult<()> {
        let url = fetch_url(requested).map_err(|e| ApiError::new(ErrorCode::BadRequest, e.to_string()))?;
        self.guard.check_url(&url).map_err(|e| ApiError::new(ErrorCode::AddressBlocked, e.to_string()))
    }
}
