//! Resident memory as requests go by, half of them checks and half submits that are refused: a handoff that is under way
//! is kept in the state, so allowed ones would only show that there are more of them.

use super::load::daemon::Daemon;
use super::load::process::usage;
use super::load::specs::direct;
use super::load::{Request, load};

pub(crate) fn run(requests: usize) {
    let daemon = Daemon::start(&[]);
    println!("  requests  resident MiB");
    // No route is live.
    let refused =
        |path: &str| Request::post(path, &daemon.token, &direct("live")).answered(&[200, 403], "\"denied\"");
    let kinds = [refused("/v1/handoffs/check"), refused("/v1/handoffs")];
    let mut sent = [0; 2];
    for mark in [requests / 10, requests / 2, requests] {
        while sent.iter().sum::<usize>() < mark {
            // Whichever is behind, for a while.
            let next = usize::from(sent[1] < sent[0]);
            sent[next] += load(&[(&daemon.address, &kinds[next..=next])], 64, 0.5).latencies.len();
        }
        let resident = usage(daemon.process.id()).resident_mib;
        println!("{:>10}  {resident:>12.1}", sent.iter().sum::<usize>());
    }
}
