//! Push configs as clients set and see them.
//!
//! A config is its setter's: whoever else sees the task does not see it. Its secrets are shown to nobody.

use serde_json::{Value as Json, json};
use tokio::sync::oneshot;

use super::sending::Heard;
use super::talk::Talk;
use super::tasks::Found;
use crate::a2a::{ErrorCode, PushConfig, RpcError, Submission, TaskId, Version};
use crate::engine::{EngineFault, PushFact};
use crate::http::problem::Problem;
use crate::limits;
use crate::os::{clock, random};
use crate::proof::{Digest, to_hex};
use crate::push::{BookFault, Owner, Registration};

impl Talk {
    /// Takes a message in, and has its sender told of what comes of it, if that was asked for. Whether they may be told
    /// there is asked first: a message that is refused for it changed nothing.
    pub(super) async fn take_in(&self, submission: &Submission, version: Version) -> Result<Heard, RpcError> {
        let Some(config) = &submission.configuration.push else {
            return self.hear(&submission.message, version).await;
        };
        self.may_tell(config, "/params/configuration/pushNotificationConfig").await?;
        let heard = self.hear(&submission.message, version).await?;
        // The same message again asks for what it has.
        let name = config.id.clone().unwrap_or_else(|| heard.id.to_string());
        let known = self.look_up(&heard.id, Some(name)).await?;
        if known.is_none_or(|known| known.config.url != config.url) {
            self.register(&heard.id, config, version, 1).await?;
        }
        Ok(heard)
    }

    pub(super) async fn set_push(
        &self,
        id: &TaskId,
        config: &PushConfig,
        version: Version,
    ) -> Result<Json, RpcError> {
        let found = self.find(id).await?;
        let at = match version {
            Version::V0_3 => "/params/pushNotificationConfig",
            Version::V1_0 => "/params",
        };
        self.may_tell(config, at).await?;
        // Where the task stands now is told first: it may have ended before anybody asked.
        let mut from = 1;
        if let Found::Attempt(attempt) = &found {
            attempt.stream.fold(None, |update| from = update.id());
        }
        Ok(self.register(id, config, version, from).await?.to_json(version))
    }

    pub(super) async fn get_push(
        &self,
        id: &TaskId,
        config_id: Option<&str>,
        version: Version,
    ) -> Result<Json, RpcError> {
        self.find(id).await?;
        let found = self.look_up(id, config_id.map(str::to_owned)).await?;
        found.map(|known| known.to_json(version)).ok_or_else(|| {
            RpcError::at(
                ErrorCode::TaskNotFound,
                "/params",
                "you have set no such push config for this task",
                "list those that there are",
            )
        })
    }

    pub(super) async fn list_push(
        &self,
        id: &TaskId,
        page_size: Option<usize>,
        page_token: Option<&str>,
        version: Version,
    ) -> Result<Json, RpcError> {
        self.find(id).await?;
        let (courier, owner, task) = (self.app.courier.clone(), self.owner(), id.clone());
        let all = tokio::task::spawn_blocking(move || courier.book().list(&task, &owner)).await;
        let all = all.unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into())).map_err(unread)?;
        if version == Version::V0_3 {
            return Ok(all.iter().map(|known| known.to_json(version)).collect());
        }
        let bad = || {
            let text = "the token is not one that a page ended with";
            let hint = "send what `nextPageToken` was, or nothing for the first page";
            RpcError::at(ErrorCode::InvalidParams, "/params/pageToken", text, hint)
        };
        let from = match page_token {
            None => 0,
            // The one that the page before ended with; whatever was deleted since, the rest comes behind it.
            Some(token) => all.iter().position(|known| known.push_id == token).ok_or_else(bad)? + 1,
        };
        let page_size = page_size.unwrap_or(limits::PAGE_ROWS);
        let page: Vec<&Registration> = all.iter().skip(from).take(page_size).collect();
        let is_last = from + page.len() >= all.len();
        let next = page.last().filter(|_| !is_last).map_or("", |known| known.push_id.as_str());
        let configs: Vec<Json> = page.iter().map(|known| known.to_json(version)).collect();
        Ok(json!({"configs": configs, "nextPageToken": next}))
    }

    /// One that is not there is as good as deleted.
    pub(super) async fn delete_push(
        &self,
        id: &TaskId,
        config_id: &str,
        version: Version,
    ) -> Result<Json, RpcError> {
        self.find(id).await?;
        let (courier, owner) = (self.app.courier.clone(), self.owner());
        let (task, name) = (id.clone(), config_id.to_owned());
        let deleted = tokio::task::spawn_blocking(move || courier.book().delete(&task, &owner, &name)).await;
        if let Some(known) = deleted.unwrap_or(Err(interrupted())).map_err(|fault| not_kept(&fault))?
            && known.delivery.is_open()
        {
            self.note(PushFact::Removed { push_id: known.push_id, reason: "deleted" }).await?;
        }
        Ok(match version {
            Version::V0_3 => Json::Null,
            Version::V1_0 => json!({}),
        })
    }

    /// The caller's config of that name; the first one if none is named.
    async fn look_up(&self, id: &TaskId, name: Option<String>) -> Result<Option<Registration>, RpcError> {
        let (courier, owner, task) = (self.app.courier.clone(), self.owner(), id.clone());
        let look = move || courier.book().get(&task, &owner, name.as_deref());
        let found = tokio::task::spawn_blocking(look).await;
        found.unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into())).map_err(unread)
    }

    fn owner(&self) -> Owner {
        Owner::named(&self.name)
    }

    /// May a notification with this go to where it says? `at` is where the config stands.
    async fn may_tell(&self, config: &PushConfig, at: &str) -> Result<(), RpcError> {
        if let Err(member) = Registration::check_headers(config) {
            return Err(RpcError::at(
                ErrorCode::InvalidParams,
                format!("{at}/{member}"),
                format!("`{member}` cannot be sent in a header"),
                "send ASCII without line breaks, and a scheme such as `Bearer`",
            ));
        }
        self.app.courier.admit(&config.url).await.map_err(|unfit| {
            RpcError::at(ErrorCode::InvalidParams, format!("{at}/url"), unfit.to_string(), unfit.hint())
        })
    }

    /// Records that somebody is to be told, and then has them told.
    async fn register(
        &self,
        id: &TaskId,
        config: &PushConfig,
        version: Version,
        from: u64,
    ) -> Result<Registration, RpcError> {
        let random = random::secret_bytes::<16>()
            .map_err(|_| RpcError::new(ErrorCode::Internal, "there is no randomness to name it by"))?;
        let push_id = format!("push_{}", to_hex(random.as_slice()));
        let registration = Registration::new(
            push_id.clone(),
            id.clone(),
            config.clone(),
            version,
            self.owner(),
            clock::now(),
            from,
        );
        let url = Digest::of(config.url.as_bytes());
        self.note(PushFact::Created { push_id: push_id.clone(), task_id: id.to_string(), url }).await?;
        let (courier, kept) = (self.app.courier.clone(), registration.clone());
        let set = tokio::task::spawn_blocking(move || courier.set(kept)).await;
        match set.unwrap_or(Err(interrupted())) {
            Ok(Some(replaced)) if replaced.delivery.is_open() => {
                let push_id = replaced.push_id;
                self.note(PushFact::Removed { push_id, reason: "set anew" }).await?;
            }
            Ok(_) => {}
            Err(fault) => {
                self.note(PushFact::Removed { push_id, reason: "could not be kept" }).await?;
                return Err(not_kept(&fault));
            }
        }
        Ok(registration)
    }

    /// Waits until a fact is durable.
    async fn note(&self, fact: PushFact) -> Result<(), RpcError> {
        let (told, heard) = oneshot::channel();
        let engine = self.app.gateway.engine();
        let done = move |noted| drop(told.send(noted));
        engine.note_push(fact, self.who.sender(), done).map_err(Problem::from)?;
        Ok(heard.await.unwrap_or(Err(EngineFault::Stopped)).map_err(Problem::from)?)
    }
}

fn interrupted() -> BookFault {
    BookFault::Io(std::io::ErrorKind::Interrupted.into())
}

fn unread(error: std::io::Error) -> RpcError {
    tracing::error!(%error, "push configs cannot be read");
    RpcError::new(ErrorCode::Internal, "push configs cannot be read now")
}

fn not_kept(fault: &BookFault) -> RpcError {
    match fault {
        BookFault::Full(_) => RpcError::at(
            ErrorCode::UnsupportedOperation,
            "/params",
            fault.to_string(),
            "delete those that are not needed any more",
        ),
        BookFault::Io(error) => {
            tracing::error!(%error, "push configs cannot be written");
            RpcError::new(ErrorCode::Internal, "push configs cannot be kept now")
        }
    }
}
