//! Looking once more, where another replica may just have answered for what is not found here.
//!
//! What others appended is seen here a moment later, and a caller may be sooner: told by one replica, it asks another one. So
//! before it is said that there is no such thing, the database is asked, and what is new is taken in. Lists and pages are not
//! held up for that: they may be as old as the last look.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;

use super::App;
use super::problem::{Kind, Problem};
use crate::limits;
use crate::views::{Reader, ViewsFault};

/// When the last look began that everything was taken in of. One is made at a time, and it is everybody's who asked before it
/// began: those who ask for what never was share the looks of all others who miss something.
#[derive(Debug, Default)]
pub(super) struct Lookout(Mutex<Option<Instant>>);

impl App {
    /// Asks the views for one thing that has a name, and before there is none, looks whether others know of it.
    pub(crate) async fn find<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl Fn(&Reader) -> Result<Option<T>, ViewsFault> + Send + Sync + 'static,
    ) -> Result<Option<T>, Problem> {
        let (asked, question) = (Instant::now(), Arc::new(question));
        let again = question.clone();
        let found = self.ask(move |reader| question(reader)).await?;
        if found.is_some() || !self.catches_up(asked).await? {
            return Ok(found);
        }
        self.ask(move |reader| again(reader)).await
    }

    /// The same for what is known without the views.
    pub(super) async fn find_now<T, E>(
        &self,
        question: impl Fn() -> Result<T, E>,
    ) -> Result<Result<T, E>, Problem> {
        let (asked, found) = (Instant::now(), question());
        let looks = found.is_err() && self.catches_up(asked).await?;
        Ok(if looks { question() } else { found })
    }

    /// Takes in what was appended up to when it was asked, if others append at all. Who cannot know it does not say that
    /// there is nothing.
    pub(super) async fn catches_up(&self, asked: Instant) -> Result<bool, Problem> {
        let engine = self.gateway.engine();
        if engine.behind_for().is_none() {
            return Ok(false);
        }
        let look = async {
            let mut last = self.lookout.0.lock().await;
            if last.is_none_or(|began| began < asked) {
                let began = Instant::now();
                let (told, heard) = oneshot::channel();
                engine.take_in(move |taken| drop(told.send(taken))).ok()?;
                heard.await.ok()?.ok()?;
                *last = Some(began);
            }
            Some(())
        };
        let looked = timeout(Duration::from_millis(limits::LOOKOUT_WAIT_MS), look).await;
        let unknown = || {
            let why =
                "it is not known here, and the database does not say whether another replica knows of it";
            Problem::new(Kind::ViewsBehind, why).hint("try again shortly")
        };
        looked.ok().flatten().map(|()| true).ok_or_else(unknown)
    }
}
