//! Tells a page that is open that the ledger has more, as it does. What is new, the page asks for itself.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
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

/// `GET /console/live`: one event for each entry from now on, which says no more than its number. It ends with the
/// session, and says so first.
pub(super) fn follow(visit: &Visit) -> Result<Response, Problem> {
    let app = &visit.console.app;
    let listening = Listening {
        console: visit.console.clone(),
        secret: visit.secret.clone(),
        listener: app.gateway.listen(app.gateway.engine().head() + 1),
        stopping: app.stopping.subscribe(),
    };
    let beat = KeepAlive::new().interval(Duration::from_secs(limits::STREAM_HEARTBEAT_S)).text("");
    Ok(Sse::new(events(listening)).keep_alive(beat).into_response())
}

struct Listening {
    console: Arc<Console>,
    secret: String,
    listener: Listener,
    stopping: watch::Receiver<bool>,
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
        loop {
            let told = tokio::select! {
                told = listening.listener.next() => Some(told?),
                () = tokio::time::sleep(look) => None,
                _ = listening.stopping.wait_for(|stopping| *stopping) => return None,
            };
            if !listening.still_holds() {
                return Some((Ok(Event::default().event("over").data("")), None));
            }
            if let Some(told) = told {
                let event = Event::default().event("entry").data(told.entry.sequence.to_string());
                return Some((Ok(event), Some(listening)));
            }
        }
    })
}
