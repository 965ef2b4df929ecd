//! Views that cannot be written, and the pauses between tries.

use super::*;

/// Counts what comes through.
struct Nobody;

impl Follower for Nobody {
    fn durable(&mut self, _entries: &[Entry]) -> Option<Notice> {
        None
    }
}

fn entry(sequence: u64) -> Entry {
    Entry {
        sequence,
        consensus_timestamp: String::new(),
        running_hash: Head::genesis("gw_test").running_hash,
        wire: String::new(),
    }
}

fn follower() -> (ViewsFollower<Nobody>, Receiver<Vec<Entry>>, Arc<ViewsProgress>) {
    let (feed, work) = channel();
    let progress = Arc::<ViewsProgress>::default();
    (ViewsFollower { next: Nobody, feed, progress: progress.clone() }, work, progress)
}

fn sent(work: &Receiver<Vec<Entry>>) -> Vec<u64> {
    work.try_iter().flatten().map(|entry| entry.sequence).collect()
}

#[test]
fn while_the_views_cannot_be_written_nothing_is_kept_for_them_and_nobody_waits() {
    const FAR: u64 = limits::VIEW_ENTRIES_BEHIND_MAX;
    let (mut follower, work, progress) = follower();
    follower.durable(&[entry(1), entry(2)]);
    assert_eq!(sent(&work), [1, 2]);
    progress.fails("full".to_owned());
    // Much further than the writer would go on by itself.
    for sequence in [3, 2 * FAR] {
        follower.durable(&[entry(sequence)]);
    }
    assert!(sent(&work).is_empty(), "the ledger has them");
    assert_eq!(progress.fault().as_deref(), Some("full"));
    let own = Own { views: Some(7), beside: [Some(8), None] };
    // Not before the views are near what was not handed over.
    let near = 2 * FAR - limits::VIEW_GATHER_ENTRIES as u64;
    assert_eq!(progress.follows_again(near - 1, own), Err(2 * FAR));
    assert_eq!((progress.fault().is_some(), progress.opening()), (true, 0));
    assert_eq!(progress.follows_again(near, own), Ok(2 * FAR));
    assert_eq!((progress.fault(), progress.applied(), progress.opening()), (None, near, 1));
    assert_eq!(progress.lock().files, own);
    // From the very next entry on they are handed over again.
    follower.durable(&[entry(2 * FAR + 1)]);
    assert_eq!(sent(&work), [2 * FAR + 1]);
}

#[test]
fn a_pause_ends_when_the_gateway_stops() {
    let (follower, _work, progress) = follower();
    assert!(progress.rest(Duration::ZERO));
    drop(follower);
    assert!(!progress.rest(Duration::from_secs(60 * 60)));
}
