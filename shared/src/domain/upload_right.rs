//! What lets a file be sent apart from the call that parses it (wire 21): an address that anybody who has it may send one
//! file to, and a ref by which the team that it was given to has that file parsed.
//!
//! Both are signed with the installation's secret, so every API process knows them and the database holds neither.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::Mac as _;
use uuid::Uuid;

use super::capability::keyed;
use crate::ids::{JobId, TeamId};
use crate::time::Timestamp;

/// A ref's bytes: the upload's id, when it expires, what tells the team, and the signature of all three.
const ID: usize = 16;
const EXPIRY: usize = 8;
const MARK: usize = 16;
const SIGNATURE: usize = 32;

/// Why an address or a ref is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It is not one that was given out.
    Signature,
    /// It was given to another team.
    Team,
    Expired,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signature => {
                "The upload's signature is not valid: use the address and the uploadRef as they were answered."
            }
            Self::Team => "This uploadRef was not made for the authenticated team.",
            Self::Expired => "The upload has expired: ask for a new address.",
        })
    }
}

/// The signature in an upload's address, 64 characters of lower-case hex.
pub fn address_signature(secret: &[u8], id: JobId, expires: Timestamp) -> String {
    hex::encode(keyed(secret, address(id, expires).as_bytes()).finalize().into_bytes())
}

/// Whether an upload's address was given out and is still good.
///
/// # Errors
/// [`Refused::Signature`] and [`Refused::Expired`].
pub fn check_address(
    secret: &[u8],
    id: JobId,
    expires: Timestamp,
    signature: &str,
    now: Timestamp,
) -> Result<(), Refused> {
    let given = hex::decode(signature).map_err(|_| Refused::Signature)?;
    keyed(secret, address(id, expires).as_bytes()).verify_slice(&given).map_err(|_| Refused::Signature)?;
    if expires <= now { Err(Refused::Expired) } else { Ok(()) }
}

/// What a team is given for an upload.
pub fn make_ref(secret: &[u8], id: JobId, team: TeamId, expires: Timestamp) -> String {
    let said = [id.0.as_bytes().as_slice(), &expires.0.to_be_bytes(), &mark(secret, id, team)].concat();
    let signature = keyed(secret, &[b"upload-ref:", said.as_slice()].concat()).finalize().into_bytes();
    BASE64_URL_SAFE_NO_PAD.encode([said.as_slice(), &signature].concat())
}

/// The upload that a ref of this team names.
///
/// # Errors
/// Every [`Refused`]; a foreign ref is told from a wrong one, and an expired one from both.
pub fn read_ref(secret: &[u8], text: &str, team: TeamId, now: Timestamp) -> Result<JobId, Refused> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| Refused::Signature)?;
    let (said, signature) = bytes.split_at_checked(ID + EXPIRY + MARK).ok_or(Refused::Signature)?;
    if signature.len() != SIGNATURE {
        return Err(Refused::Signature);
    }
    let expected = keyed(secret, &[b"upload-ref:", said].concat());
    expected.verify_slice(signature).map_err(|_| Refused::Signature)?;
    let (id, rest) = said.split_at(ID);
    let (expires, given) = rest.split_at(EXPIRY);
    let id = JobId(Uuid::from_slice(id).map_err(|_| Refused::Signature)?);
    if given != mark(secret, id, team).as_slice() {
        return Err(Refused::Team);
    }
    let expires = i64::from_be_bytes(expires.try_into().map_err(|_| Refused::Signature)?);
    if Timestamp(expires) <= now { Err(Refused::Expired) } else { Ok(id) }
}

fn address(id: JobId, expires: Timestamp) -> String {
    format!("upload-address:{id}:{}", expires.0)
}

/// Tells a team without naming it: a ref goes through hands that need not know whose it is.
fn mark(secret: &[u8], id: JobId, team: TeamId) -> [u8; MARK] {
    let whole = keyed(secret, format!("upload-team:{id}:{team}").as_bytes()).finalize().into_bytes();
    std::array::from_fn(|n| whole[n])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"a secret";
    const NOW: Timestamp = Timestamp(1_000);
    const LATER: Timestamp = Timestamp(2_000);

    #[test]
    fn a_ref_is_good_for_one_team_until_it_expires() {
        let (id, team) = (JobId::new(), TeamId::new());
        let text = make_ref(SECRET, id, team, LATER);
        assert_eq!(read_ref(SECRET, &text, team, NOW), Ok(id));
        assert_eq!(read_ref(SECRET, &text, team, LATER), Err(Refused::Expired));
        assert_eq!(read_ref(SECRET, &text, TeamId::new(), LATER), Err(Refused::Team));
        assert_eq!(read_ref(b"another", &text, team, NOW), Err(Refused::Signature));
        assert!(!text.contains(&team.to_string()));
    }

    #[test]
    fn no_character_of_a_ref_can_be_changed() {
        let team = TeamId::new();
        let text = make_ref(SECRET, JobId::new(), team, LATER);
        for at in 0..text.len() {
            let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
            let mut changed = text.clone();
            changed.replace_range(at..=at, other);
            assert_eq!(read_ref(SECRET, &changed, team, NOW), Err(Refused::Signature), "{at}");
        }
        for wrong in ["", "x", &text[1..], &format!("{text}AAAA"), &"A".repeat(10_000)] {
            assert_eq!(read_ref(SECRET, wrong, team, NOW), Err(Refused::Signature), "{wrong:.100}");
        }
    }

    #[test]
    fn an_address_is_good_for_one_upload_until_it_expires() {
        let id = JobId::new();
        let signature = address_signature(SECRET, id, LATER);
        let check = |id, expires, signature: &str, now| check_address(SECRET, id, expires, signature, now);
        assert_eq!(check(id, LATER, &signature, NOW), Ok(()));
        assert_eq!(check(id, LATER, &signature, LATER), Err(Refused::Expired));
        assert_eq!(
            check(id, Timestamp(9_000), &signature, NOW),
            Err(Refused::Signature),
            "not longer than it was given"
        );
        assert_eq!(check(JobId::new(), LATER, &signature, NOW), Err(Refused::Signature));
        for wrong in ["", "zz", &signature[..62]] {
            assert_eq!(check(id, LATER, wrong, NOW), Err(Refused::Signature), "{wrong}");
        }
    }
}
