//! What a request asks for, with its parameters typed: the same for both versions.

use std::fmt;

use serde_json::Value as Json;

use super::error::{ErrorCode, RpcError};
use super::id::TaskId;
use super::message::{Message, Speaker};
use super::method::Method;
use super::params::Params;
use super::push::PushConfig;
use super::version::Version;
use crate::json::{Value, printable};
use crate::limits;
use crate::timestamp::Timestamp;
use crate::wire::{Contracts, State};

/// A request that can be answered, or refused for what it asks.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: Method,
    /// The version that the answer is written in: the one whose name the method was called by.
    pub version: Version,
    pub ask: Ask,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub enum Ask {
    Send(Box<Submission>),
    Stream(Box<Submission>),
    GetTask {
        id: TaskId,
        history_length: Option<usize>,
    },
    ListTasks(Box<ListTasks>),
    CancelTask {
        id: TaskId,
    },
    Subscribe {
        id: TaskId,
        /// The first event that is told: a parameter of ours, for clients that cannot set a header.
        from: Option<u64>,
    },
    SetPush {
        id: TaskId,
        config: Box<PushConfig>,
    },
    GetPush {
        id: TaskId,
        config_id: Option<String>,
    },
    ListPush {
        id: TaskId,
        page_size: Option<usize>,
        page_token: Option<String>,
    },
    DeletePush {
        id: TaskId,
        config_id: String,
    },
    ExtendedCard,
    /// The method says which; what the model gateway is asked is its own matter.
    Ai {
        params: AiParams,
    },
}

/// What a model is asked: passed on as it is, and never shown.
#[derive(Clone, PartialEq)]
pub struct AiParams(pub Json);

impl fmt::Debug for AiParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AiParams")
    }
}

/// A message, and how its sender wants to be answered.
#[derive(Debug, Clone)]
pub struct Submission {
    pub message: Message,
    pub configuration: Configuration,
}

/// How a sender wants to be answered.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// Wait for a state in which the client has to act, or that ends the task; within a bound.
    pub wait: bool,
    pub history_length: Option<usize>,
    pub push: Option<PushConfig>,
}

/// Which tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListTasks {
    pub context_id: Option<String>,
    /// The states of streams that are shown as the state that was asked for. A handoff that became available again
    /// is shown as working: whoever lists by these looks at each task once more.
    pub states: Option<Vec<State>>,
    pub page_size: usize,
    pub page_token: Option<String>,
    pub history_length: Option<usize>,
    pub after: Option<Timestamp>,
    pub include_artifacts: bool,
}

impl Call {
    /// Reads the parameters of a method; `None` for a request without any.
    pub(super) fn read(
        method: Method,
        version: Version,
        params: Option<Value<'_>>,
    ) -> Result<Self, RpcError> {
        let Some(value) = params else {
            if method == Method::ExtendedCard {
                return Ok(Self { method, version, ask: Ask::ExtendedCard });
            }
            return Err(RpcError::params(
                "/params",
                "`params` is missing",
                "send an object with the parameters",
            ));
        };
        if value.is_array() {
            let hint = "send an object: parameters are known by their names";
            return Err(RpcError::params("/params", "`params` is an array", hint));
        }
        let params = Params::of(value, "/params")?;
        if let Some(tenant) = params.id("tenant")?.filter(|_| version == Version::V1_0) {
            let text = format!("there is no tenant `{}`", printable(tenant));
            return Err(RpcError::params(
                "/params/tenant",
                text,
                "leave it out: this gateway has no tenants",
            ));
        }
        let ask = match method {
            Method::SendMessage => Ask::Send(Box::new(submission(version, &params)?)),
            Method::StreamMessage => Ask::Stream(Box::new(submission(version, &params)?)),
            Method::GetTask => {
                Ask::GetTask { id: task(&params, "id")?, history_length: params.count("historyLength")? }
            }
            Method::ListTasks => Ask::ListTasks(Box::new(list_tasks(&params)?)),
            Method::CancelTask => Ask::CancelTask { id: task(&params, "id")? },
            Method::Subscribe => {
                let from = match params.count("from")? {
                    None => params.object("metadata")?.map_or(Ok(None), |metadata| metadata.count("from"))?,
                    some => some,
                };
                Ask::Subscribe { id: task(&params, "id")?, from: from.map(|from| from as u64) }
            }
            Method::SetPush => set_push(version, &params)?,
            Method::GetPush => {
                let (id, config_id) = push_names(version, &params)?;
                if version == Version::V1_0 && config_id.is_none() {
                    return Err(params.missing("id", "the id of the config"));
                }
                Ask::GetPush { id, config_id }
            }
            Method::ListPush => Ask::ListPush {
                id: task(&params, task_member(version))?,
                page_size: page_size(&params)?,
                page_token: params.text("pageToken")?.filter(|text| !text.is_empty()).map(str::to_owned),
            },
            Method::DeletePush => {
                let (id, config_id) = push_names(version, &params)?;
                let member = config_member(version);
                let config_id = config_id.ok_or_else(|| params.missing(member, "the id of the config"))?;
                Ask::DeletePush { id, config_id }
            }
            Method::ExtendedCard => Ask::ExtendedCard,
            Method::Embeddings | Method::Rerank | Method::Chat => {
                Ask::Ai { params: AiParams(params.value().to_json()) }
            }
        };
        Ok(Self { method, version, ask })
    }
}

/// A text that is no id of ours names no task, and is answered like one that was never there.
fn task(params: &Params<'_>, member: &str) -> Result<TaskId, RpcError> {
    let text = params.text(member)?.filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| params.missing(member, "the id of the task"))?;
    TaskId::parse(text).ok_or_else(|| RpcError::task_not_found(text))
}

fn submission(version: Version, params: &Params<'_>) -> Result<Submission, RpcError> {
    let Some(value) = params.get("message") else {
        return Err(params.missing("message", "the message that is sent"));
    };
    let message = Message::read(version, value, &params.at("message"))?;
    if message.role != Speaker::User {
        return Err(RpcError::params(
            "/params/message/role",
            "the message is said to be ours",
            "who sends is the user: `user` in 0.3, `ROLE_USER` in 1.0",
        ));
    }
    // Two TaskSpecs, or one in another context, are refused before anything is recorded.
    message.task_spec()?;
    if let Some(id) = message.task_id.as_deref().filter(|id| TaskId::parse(id).is_none()) {
        return Err(RpcError::task_not_found(id));
    }
    if let Some(n) = message.reference_task_ids.iter().position(|id| TaskId::parse(id).is_none()) {
        return Err(RpcError::params(
            format!("/params/message/referenceTaskIds/{n}"),
            "this is not the id of a task",
            "refer to tasks by the ids that this gateway gave them",
        ));
    }
    let configuration = match params.object("configuration")? {
        None => Configuration { wait: true, history_length: None, push: None },
        Some(given) => {
            let wait = match version {
                Version::V0_3 => given.flag("blocking")?,
                Version::V1_0 => given.flag("returnImmediately")?.map(|at_once| !at_once),
            };
            let push = match version {
                Version::V0_3 => given.object("pushNotificationConfig")?,
                // Both names have been in use for 1.0.
                Version::V1_0 => match given.object("taskPushNotificationConfig")? {
                    None => given.object("pushNotificationConfig")?,
                    some => some,
                },
            };
            Configuration {
                wait: wait.unwrap_or(true),
                history_length: given.count("historyLength")?,
                push: push.map(|push| PushConfig::read(version, &push)).transpose()?,
            }
        }
    };
    Ok(Submission { message, configuration })
}

fn page_size(params: &Params<'_>) -> Result<Option<usize>, RpcError> {
    let Some(size) = params.count("pageSize")? else { return Ok(None) };
    let known = i64::try_from(size).is_ok_and(|size| limits::A2A_PAGE_TASKS.contains(&size));
    let refused = || {
        let (low, high) = (limits::A2A_PAGE_TASKS.start(), limits::A2A_PAGE_TASKS.end());
        RpcError::params(
            "/params/pageSize",
            format!("a page of {size} cannot be had"),
            format!("ask for {low} to {high}"),
        )
    };
    known.then_some(Some(size)).ok_or_else(refused)
}

fn list_tasks(params: &Params<'_>) -> Result<ListTasks, RpcError> {
    let states = match params.text("status")? {
        None | Some("" | "TASK_STATE_UNSPECIFIED") => None,
        Some(word) => {
            let contracts = Contracts::embedded();
            let shown_so =
                |state: &State| contracts.a2a_state(*state).is_some_and(|shown| shown.v1_0 == word);
            let states: Vec<State> = State::ALL.into_iter().filter(shown_so).collect();
            if states.is_empty() {
                let text = format!("`{}` is no state that a task can be in", printable(word));
                return Err(RpcError::params("/params/status", text, "ask for one of the TASK_STATE_ words"));
            }
            Some(states)
        }
    };
    let after = match params.text("statusTimestampAfter")? {
        None | Some("") => None,
        Some(text) => Some(Timestamp::parse(text).ok_or_else(|| {
            let message = format!("`{}` is not an RFC 3339 date-time", printable(text));
            RpcError::params("/params/statusTimestampAfter", message, "such as `2026-02-18T19:31:00.000Z`")
        })?),
    };
    Ok(ListTasks {
        context_id: params.id("contextId")?.map(str::to_owned),
        states,
        page_size: page_size(params)?.unwrap_or(limits::PAGE_ROWS),
        page_token: params.text("pageToken")?.filter(|text| !text.is_empty()).map(str::to_owned),
        history_length: params.count("historyLength")?,
        after,
        include_artifacts: params.flag("includeArtifacts")?.unwrap_or(false),
    })
}

fn task_member(version: Version) -> &'static str {
    match version {
        Version::V0_3 => "id",
        Version::V1_0 => "taskId",
    }
}

fn config_member(version: Version) -> &'static str {
    match version {
        Version::V0_3 => "pushNotificationConfigId",
        Version::V1_0 => "id",
    }
}

fn push_names(version: Version, params: &Params<'_>) -> Result<(TaskId, Option<String>), RpcError> {
    let id = task(params, task_member(version))?;
    Ok((id, params.id(config_member(version))?.map(str::to_owned)))
}

fn set_push(version: Version, params: &Params<'_>) -> Result<Ask, RpcError> {
    let id = task(params, "taskId")?;
    let config = match version {
        Version::V0_3 => match params.object("pushNotificationConfig")? {
            Some(config) => PushConfig::read(version, &config)?,
            None => {
                return Err(params.missing("pushNotificationConfig", "an object with the `url` to be told"));
            }
        },
        Version::V1_0 => PushConfig::read(version, params)?,
    };
    Ok(Ask::SetPush { id, config: Box::new(config) })
}

/// A stream cannot be one answer among several.
pub(super) fn not_in_a_batch(method: Method, version: Version) -> Result<(), RpcError> {
    if !method.only_streams(version) {
        return Ok(());
    }
    Err(RpcError::at(
        ErrorCode::UnsupportedOperation,
        "/method",
        "a stream cannot be part of a batch",
        "send it as a request of its own",
    ))
}
