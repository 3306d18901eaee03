//! Bounds what half-read messages hold in memory. A message may have a hundred megabytes and more, and strangers may open
//! many connections: so past the first megabyte of a message a connection reads on only while it is one of a few of its
//! session, past the first sixteen one of a few of the whole process and of fewer of its team, and the others wait.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::PollSemaphore;
use weir_shared::clock;
use weir_shared::ids::TeamId;
use weir_shared::shares::Common;

/// Bytes of a message that any connection may have read.
const SMALL: usize = 1 << 20;
/// Messages on their way at once that are larger, in one direction of one session.
const AT_ONCE: usize = 4;
/// Bytes of a message from which on it counts for the whole process.
const LARGE: usize = 16 << 20;
/// Such messages on their way at once, in the whole process.
const LARGE_AT_ONCE: usize = 6;
/// Of these, those of one team.
const LARGE_OF_TEAM: usize = 2;
/// Time for such a message, from its first large byte until it is sent on.
pub const LARGE_TIME: Duration = Duration::from_secs(120);

static LARGE_TURNS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(LARGE_AT_ONCE)));
static TEAMS: LazyLock<Common<TeamId, Semaphore>> = LazyLock::new(Common::default);

/// What all connections of one session share, each direction by itself: a client that takes no answers keeps no other
/// from asking.
#[derive(Debug)]
pub struct Budget {
    /// For messages of clients.
    pub(super) asked: Arc<Semaphore>,
    /// For those of Chromium.
    pub(super) answered: Arc<Semaphore>,
    /// For large ones in both directions, of all sessions of the team.
    pub(super) large: Arc<Semaphore>,
}

/// One that shares nothing with others.
impl Default for Budget {
    fn default() -> Self {
        let turns = |count| Arc::new(Semaphore::new(count));
        Self { asked: turns(AT_ONCE), answered: turns(AT_ONCE), large: turns(LARGE_OF_TEAM) }
    }
}

impl Budget {
    /// One of a session of this team.
    pub fn of(team: TeamId) -> Self {
        Self { large: TEAMS.of(&team, || Semaphore::new(LARGE_OF_TEAM)), ..Self::default() }
    }
}

#[derive(Default)]
struct MessageState {
    /// Bytes read since the last message was sent on.
    bytes: usize,
    /// Held while the message is above the small bound.
    turn: Option<OwnedSemaphorePermit>,
    /// Held while the message is above the large bound.
    of_team: Option<OwnedSemaphorePermit>,
    /// The same, with its time.
    large: Option<(OwnedSemaphorePermit, Instant)>,
}

/// What a connection holds. Clones share it.
#[derive(Clone, Default)]
pub struct Meter(Arc<Mutex<MessageState>>);

impl Meter {
    fn state(&self) -> std::sync::MutexGuard<'_, MessageState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message is sent on: what was read for it is no longer held.
    pub fn reset(&self) {
        *self.state() = MessageState::default();
    }

    /// Whether a large message takes too long.
    pub fn is_overdue(&self) -> bool {
        self.state().large.as_ref().is_some_and(|(_, since)| since.elapsed() > LARGE_TIME)
    }
}

/// A stream whose reading is metered.
pub struct Metered<S> {
    inner: S,
    meter: Meter,
    turns: PollSemaphore,
    of_team: PollSemaphore,
    large: PollSemaphore,
}

impl<S> Metered<S> {
    /// `turns`: those of its session and direction; `large`: those of its team.
    pub fn new(inner: S, meter: Meter, turns: &Arc<Semaphore>, large: &Arc<Semaphore>) -> Self {
        let [turns, of_team, large] = [turns, large, &LARGE_TURNS].map(|turns| PollSemaphore::new(Arc::clone(turns)));
        Self { inner, meter, turns, of_team, large }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (waits, waits_for_team, is_large) = {
            let state = self.meter.state();
            let is_large = state.bytes > LARGE && state.large.is_none();
            (state.bytes > SMALL && state.turn.is_none(), is_large && state.of_team.is_none(), is_large)
        };
        // The semaphores are never closed.
        if waits {
            let turn = ready!(self.turns.poll_acquire(cx)).ok_or(io::ErrorKind::BrokenPipe)?;
            self.meter.state().turn = Some(turn);
        }
        if waits_for_team {
            let turn = ready!(self.of_team.poll_acquire(cx)).ok_or(io::ErrorKind::BrokenPipe)?;
            self.meter.state().of_team = Some(turn);
        }
        if is_large {
            let turn = ready!(self.large.poll_acquire(cx)).ok_or(io::ErrorKind::BrokenPipe)?;
            self.meter.state().large = Some((turn, clock::instant()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        self.meter.state().bytes += buffer.filled().len() - before;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// Connections that have read a message to `size`, and one more that wants to, of the first budget.
    async fn crowd(size: usize, budgets: &[Budget], others: usize) {
        let metered = |budget: &Budget, meter| Metered::new(tokio::io::repeat(7), meter, &budget.asked, &budget.large);
        let mut readers = Vec::new();
        for n in 0..others {
            let meter = Meter::default();
            let mut reader = metered(&budgets[n % budgets.len()], meter.clone());
            let mut bytes = vec![0; size + (1 << 20)];
            reader.read_exact(&mut bytes).await.expect("read");
            reader.read_exact(&mut bytes[..9]).await.expect("read");
            assert!(!meter.is_overdue());
            readers.push((meter, reader));
        }
        let mut late = metered(&budgets[0], Meter::default());
        let mut bytes = vec![0; size + (1 << 20)];
        let mut all =
            Box::pin(async move { late.read_exact(&mut bytes).await.and(late.read_exact(&mut [0; 9]).await) });
        assert!(tokio::time::timeout(Duration::from_millis(100), &mut all).await.is_err(), "it waits");
        readers[0].0.reset();
        tokio::time::timeout(Duration::from_secs(60), all).await.expect("its turn came").expect("read");
    }

    // One test: these share the turns of the process.
    #[tokio::test]
    async fn a_few_large_messages_are_read_a_team_has_fewer_and_the_next_waits_for_its_turn() {
        let teams: Vec<_> = (0..LARGE_AT_ONCE).map(|_| Budget::of(TeamId::new())).collect();
        crowd(LARGE, &teams, LARGE_AT_ONCE).await;
        let team = TeamId::new();
        let sessions: Vec<_> = (0..LARGE_AT_ONCE).map(|_| Budget::of(team)).collect();
        crowd(LARGE, &sessions, LARGE_OF_TEAM).await;
    }

    #[tokio::test]
    async fn clients_of_one_session_share_one_budget_and_leave_others_alone() {
        let team = TeamId::new();
        let (one, other) = (Budget::of(team), Budget::of(team));
        let asked = Arc::clone(&one.asked);
        crowd(SMALL, std::slice::from_ref(&one), AT_ONCE).await;
        // All turns of one session are taken; other sessions are not affected.
        let _all = asked.acquire_many(AT_ONCE as u32).await.expect("all turns");
        for turns in [&one.answered, &other.asked] {
            let mut bytes = vec![0; 4 * SMALL];
            let mut reader = Metered::new(tokio::io::repeat(7), Meter::default(), turns, &one.large);
            let read = async { reader.read_exact(&mut bytes).await.and(reader.read_exact(&mut [0; 9]).await) };
            tokio::time::timeout(Duration::from_secs(60), read).await.expect("in time").expect("read");
        }
    }
}
