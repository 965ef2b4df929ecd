//! Tells a page that is open that the ledger has more, or that something else is wrong than before, as it happens. What is
//! new, the page asks for itself. Where there is nothing to tell, it says that it is still there.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse as _, Response};
use tokio::sync::watch;
use tokio_stream::Stream;

use super::Console;
use super::door::Visit;
use crate::callers::Look;
use crate::gateway::Listener;
use crate::http::Problem;
use crate::limits;
use crate::os::clock;

/// `GET /console/live`: one event for each entry from now on, which says no more than its number, and one for each change
/// of the condition, which says nothing. It ends with the session, and says so first.
///
/// The beats between them are events, too, each with a word: a script sees neither comments nor events without data, and
/// a page whose gateway has fallen silent must not call itself live.
pub(super) fn follow(visit: &Visit) -> Result<Response, Problem> {
    let app = &visit.console.app;
    let listening = Listening {
        console: visit.console.clone(),
        secret: visit.secret.clone(),
        listener: app.gateway.listen(app.gateway.engine().head() + 1),
        condition: app.condition.subscribe(),
        stopping: app.stopping.subscribe(),
        told_at: Instant::now(),
    };
    Ok(Sse::new(events(listening)).into_response())
}

struct Listening {
    console: Arc<Console>,
    secret: String,
    listener: Listener,
    condition: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    /// When it was told something last, if only that all is quiet.
    told_at: Instant,
}

/// What a page is told.
enum News {
    Entry(u64),
    Condition,
    Quiet,
}

impl Listening {
    fn still_holds(&self) -> bool {
        let roster = self.console.app.rules.current().roster;
        self.console.app.sessions.find(&self.secret, &roster, clock::now(), Look::Page).is_some()
    }
}

fn events(listening: Listening) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    futures_util::stream::unfold(Some(listening), |state| async move {
        let mut listening = state?;
        let look = Duration::from_millis(limits::CONSOLE_LOOK_MS);
        let beat = Duration::from_secs(limits::STREAM_HEARTBEAT_S);
        loop {
            let news = tokio::select! {
                told = listening.listener.next() => News::Entry(told?.entry.sequence),
                changed = listening.condition.changed() => {
                    changed.ok()?;
                    News::Condition
                }
                () = tokio::time::sleep(look) => News::Quiet,
                _ = listening.stopping.wait_for(|stopping| *stopping) => return None,
            };
            if !listening.still_holds() {
                return Some((Ok(Event::default().event("over").data("over")), None));
            }
            let event = match news {
                News::Entry(sequence) => Event::default().event("entry").data(sequence.to_string()),
                News::Condition => Event::default().event("condition").data("changed"),
                News::Quiet if listening.told_at.elapsed() < beat => continue,
                News::Quiet => Event::default().event("beat").data("quiet"),
            };
            listening.told_at = Instant::now();
            return Some((Ok(event), Some(listening)));
        }
    })
}
