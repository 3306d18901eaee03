//! Answers of a worker that does not do what it was asked.

use serde::{Deserialize, Serialize};

/// Why a call was not carried out. The status of the answer says it; the text beside it is for logs and, where a call
/// says so, for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The call cannot be read, or is no WebSocket handshake where one is due.
    Malformed,
    /// The secret is missing or wrong. Until 2026-11 some calls said 403.
    WrongSecret,
    /// The worker does not have the session.
    UnknownSession,
    /// Opening: the session is not to be opened any more. A prompt: another one took all the time.
    Conflict,
    /// Opening: nothing was begun, for the session is another worker's, or this one takes none now. Until 2026-11 this was
    /// a conflict, or unavailable.
    NotHere,
    /// The session takes no more calls.
    Ended,
    /// The scrape that the session continues could not be brought back. The text is for the client.
    NotReplayed,
    /// None of the operator's proxies that the session may go through can be reached. Before 2026-11 nobody said so.
    NoProxy,
    /// Code was not begun, because a script without end had blocked a page. Before 2026-12 it was a failure like any other.
    PageBlocked,
    /// The session has as many CDP clients as it may.
    TooManyClients,
    /// The worker has no language model.
    NoModel,
    /// Code or prompt was not begun, or the session's browser does not answer.
    Failed,
    /// The worker takes no such work now.
    Unavailable,
}

impl Refusal {
    /// Each of them once.
    pub const ALL: [Self; 13] = [
        Self::Malformed,
        Self::WrongSecret,
        Self::UnknownSession,
        Self::Conflict,
        Self::NotHere,
        Self::Ended,
        Self::NotReplayed,
        Self::NoProxy,
        Self::PageBlocked,
        Self::TooManyClients,
        Self::NoModel,
        Self::Failed,
        Self::Unavailable,
    ];

    /// The status of the answer.
    pub const fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::WrongSecret => 401,
            Self::UnknownSession => 404,
            Self::Conflict => 409,
            Self::Ended => 410,
            Self::NotHere => 421,
            Self::PageBlocked => 423,
            Self::NotReplayed => 424,
            Self::TooManyClients => 429,
            Self::NoModel => 501,
            Self::Failed => 502,
            Self::Unavailable => 503,
            Self::NoProxy => 504,
        }
    }

    /// What a status says; `None`: no refusal has it.
    pub fn of_status(status: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.status() == status)
    }
}

/// Body of such an answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct RefusalBody {
    pub error: String,
}

impl RefusalBody {
    /// Longest text that the API takes over, characters.
    const LONGEST: usize = 500;

    /// The text of an answer that a worker gave, whatever its body is.
    pub fn text_of(body: &[u8]) -> String {
        let text = serde_json::from_slice::<Self>(body).map(|body| body.error);
        text.unwrap_or_else(|_| "no reason given".to_owned()).chars().take(Self::LONGEST).collect()
    }
}
