//! What one team may have open with this process at once. A call that waits for its answer holds a connection, and a WebSocket
//! one for as long as its job runs or its session lives: there are only so many, and one team's would otherwise be all of
//! them. Such a socket takes up to three of the process's files, with what hangs it up and the connection to a session's worker.
//! A file that is sent to an address of the team's, by whoever has that, may take minutes and lies open among the blobs.

use weir_shared::error_code::ErrorCode;
use weir_shared::ids::TeamId;
use weir_shared::shares::{Share, Shares};

use crate::error::{ApiError, ApiResult};

/// One in so many connections may be a call of the same team.
const CALLS: usize = 2;
/// One in so many may be a WebSocket or a file that comes: the two further files of all of these are less than what connections
/// leave to others.
const SOCKETS: usize = 8;
/// One in so many of those may be the same team's.
const SOCKETS_OF_TEAM: usize = 2;
/// Seconds after which one more may find a place.
const RETRY_SECONDS: u64 = 5;

/// The places of a process. What is taken is given back when it is dropped.
#[derive(Debug)]
pub struct Places {
    calls: Shares<TeamId>,
    /// Of WebSockets, and of files that come.
    sockets: Shares<TeamId>,
}

impl Places {
    /// Those of a process that takes so many connections.
    pub fn among(connections: usize) -> Self {
        let sockets = (connections / SOCKETS).max(1);
        Self {
            calls: Shares::new(connections, (connections / CALLS).max(1)),
            sockets: Shares::new(sockets, (sockets / SOCKETS_OF_TEAM).max(1)),
        }
    }

    /// A place for a call of the team until it is answered.
    ///
    /// # Errors
    /// 429 when the team's others have all.
    pub fn call(&self, team: TeamId) -> ApiResult<Share> {
        self.calls.try_take(&team).ok_or_else(|| {
            let text = format!(
                "{} of your requests are waiting for their answers. Please retry after {RETRY_SECONDS}s.",
                self.calls.each()
            );
            ApiError::new(ErrorCode::RateLimited, text).retry_after(RETRY_SECONDS)
        })
    }

    /// A place for a WebSocket of the team until it is closed, or for a file until it has come.
    ///
    /// # Errors
    /// 429 when the team's others have all that it may have, or those of all teams all that there are.
    pub fn socket(&self, team: TeamId) -> ApiResult<Share> {
        self.sockets.try_take(&team).ok_or_else(|| {
            let text = format!(
                "Too many WebSockets are open and files on their way. Please end some, or retry after {RETRY_SECONDS}s."
            );
            ApiError::new(ErrorCode::RateLimited, text).retry_after(RETRY_SECONDS)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http_server::most_connections;

    #[test]
    fn no_team_has_all_calls_or_sockets_and_what_has_ended_makes_room() {
        let places = Places::among(64);
        let teams = [TeamId::new(), TeamId::new(), TeamId::new()];
        let mut sockets: Vec<_> =
            teams.map(|team| (0..32).filter_map(|_| places.socket(team).ok()).collect::<Vec<_>>()).into();
        assert_eq!(sockets.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 0]);
        let calls = |team| (0..64).filter_map(|_| places.call(team).ok()).collect::<Vec<_>>();
        let held = calls(teams[0]);
        assert_eq!((held.len(), calls(teams[1]).len()), (32, 32), "sockets take no calls away");
        assert_eq!(places.call(teams[0]).err().map(|error| error.code()), Some(ErrorCode::RateLimited));
        sockets[0].pop();
        assert!(places.socket(teams[1]).is_err() && places.socket(teams[2]).is_ok());
        drop(held);
        assert_eq!(calls(teams[0]).len(), 32);
        for files in [256, 1_024, 4_096, 65_536] {
            let connections = most_connections(files);
            assert!(connections + 2 * (connections / SOCKETS) < files as usize, "{files}");
        }
        // However few there are, everybody is served.
        let few = Places::among(1);
        assert!(few.call(teams[0]).is_ok() && few.socket(teams[0]).is_ok());
    }
}
