use super::*;

#[test]
fn a_wake_up_is_due_by_the_databases_clock() {
    // A time of long ago: this machine's clock must not matter.
    let now = Timestamp(1_000_000_000_000);
    let at = |pause| run_at(now, pause).duration_since(SystemTime::UNIX_EPOCH).map(|at| at.as_millis());
    assert_eq!(at(Duration::ZERO).ok(), Some(999_999_995_000));
    assert_eq!(at(Duration::from_secs(2)).ok(), Some(1_000_000_002_999));
}
