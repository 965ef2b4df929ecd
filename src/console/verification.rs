//! Verifying the whole ledger from a page: one at a time, with how far it has come, and what the last one found.

use std::sync::{Mutex, MutexGuard, PoisonError};

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::Value as Json;

use super::door::Visit;
use super::facts::{When, grouped};
use super::frame::{Frame, page, see_other};
use super::shown::Markup;
use crate::http::{Problem, Verifying};
use crate::os::clock;
use crate::timestamp::Timestamp;

#[derive(Debug, Default)]
pub(super) struct Verification {
    state: Mutex<State>,
}

#[derive(Debug, Default, Clone)]
enum State {
    #[default]
    Never,
    Running {
        by: String,
        entries: u64,
        percent: u64,
    },
    Done {
        by: String,
        at: Timestamp,
        report: Json,
    },
}

impl Verification {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Template)]
#[template(path = "verify.html")]
struct VerifyPage {
    frame: Frame,
    state: State,
    head: u64,
}

impl VerifyPage {
    fn grouped(&self, number: &u64) -> String {
        grouped(*number)
    }

    fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    fn button(&self) -> &'static str {
        if matches!(self.state, State::Never) { "Verify now" } else { "Verify again" }
    }

    fn when(&self, at: &Timestamp) -> Markup<When> {
        When::of(&at.to_milliseconds(), self.frame.now)
    }
}

/// `GET /console/audit/verify`.
pub(super) async fn show(visit: &Visit) -> Result<Response, Problem> {
    let state = visit.console.verification.lock().clone();
    let is_running = matches!(state, State::Running { .. });
    let head = visit.console.app.gateway.engine().head();
    let frame = visit.frame("Verify the ledger", "audit");
    let mut response = page(StatusCode::OK, &VerifyPage { frame, state, head });
    if is_running {
        // Goes on without a script.
        response.headers_mut().insert(header::REFRESH, HeaderValue::from_static("1"));
    }
    Ok(response)
}

/// `POST /console/audit/verify`.
pub(super) fn start(visit: &Visit) -> Result<Response, Problem> {
    let verifying = Verifying::begin(&visit.console.app)?;
    let (verification, by) = (visit.console.verification.clone(), visit.session.caller.name().to_string());
    *verification.lock() = State::Running { by: by.clone(), entries: 0, percent: 0 };
    tokio::task::spawn_blocking(move || {
        let told = verification.clone();
        let name = by.clone();
        let report = verifying.run(&mut move |progress| {
            let percent = progress.bytes_done.saturating_mul(100) / progress.bytes.max(1);
            let (by, entries) = (name.clone(), progress.entries);
            *told.lock() = State::Running { by, entries, percent: percent.min(100) };
        });
        *verification.lock() = State::Done { by, at: clock::now(), report };
    });
    Ok(see_other("/console/audit/verify"))
}
