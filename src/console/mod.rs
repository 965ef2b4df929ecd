//! The console: pages for the people who watch the gateway and answer for it.
//!
//! A door. Pages are rendered here (askama) and work without a script; the one script of our own only keeps them up
//! to date. Whatever is shown or done goes through the API from inside (`http/inside.rs`): the same table, rights,
//! checks and handlers, so there is nothing to do here that the API does not do, and the ledger has the person's name.
//!
//! `door.rs` stands before every page: session, form word, headers; `login.rs` is the way in. `pages/` has one file for each page, `acts/` what
//! a person does with a confirmation before it, `tree.rs` and `facts.rs` how untrusted JSON becomes text.
//!
//! Deliberately absent: markup that is put together by hand. Every text reaches a page through a template, which
//! escapes it, and what would not be seen in it (`shown.rs`).

mod acts;
mod assets;
mod changes;
mod chart;
mod door;
mod export;
mod facts;
mod filters;
mod flash;
mod form;
mod frame;
mod kept;
mod listing;
mod live;
mod login;
mod pages;
mod paging;
mod prose;
mod shown;
mod told;
mod tree;
mod verification;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::routing::any;

use crate::http::App;
use flash::Flashes;
// Templates escape with it (askama.toml).
use shown::Visible;
use verification::Verification;

/// What all pages share.
#[derive(Debug)]
struct Console {
    app: Arc<App>,
    flashes: Flashes,
    verification: Arc<Verification>,
}

/// Everything under `/console`.
pub(crate) fn pages(app: Arc<App>) -> Router {
    let console = Arc::new(Console {
        app,
        flashes: Flashes::default(),
        verification: Arc::new(Verification::default()),
    });
    let enter = move |request: Request| door::enter(console.clone(), request);
    Router::new()
        .route("/console", any(enter.clone()))
        .route("/console/", any(enter.clone()))
        .route("/console/{*path}", any(enter))
}
