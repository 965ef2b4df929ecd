//! Why a request cannot be answered, in the forms of both versions.

use serde_json::{Map, Value as Json, json};

use super::version::{UnknownVersion, Version};
use crate::json::BodyFault;

/// The codes of JSON-RPC 2.0 and of A2A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    Parse,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    TaskNotFound,
    TaskNotCancelable,
    PushNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    InvalidAgentResponse,
    NoExtendedCard,
    ExtensionRequired,
    VersionNotSupported,
}

impl ErrorCode {
    pub const ALL: [Self; 14] = [
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::NoExtendedCard,
        Self::ExtensionRequired,
        Self::VersionNotSupported,
    ];

    /// Wire contract of the protocol.
    pub fn number(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::TaskNotFound => -32001,
            Self::TaskNotCancelable => -32002,
            Self::PushNotSupported => -32003,
            Self::UnsupportedOperation => -32004,
            Self::ContentTypeNotSupported => -32005,
            Self::InvalidAgentResponse => -32006,
            Self::NoExtendedCard => -32007,
            Self::ExtensionRequired => -32008,
            Self::VersionNotSupported => -32009,
        }
    }

    /// The word for it in the `ErrorInfo` of 1.0.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Parse => "PARSE_ERROR",
            Self::InvalidRequest => "INVALID_REQUEST",
            Self::MethodNotFound => "METHOD_NOT_FOUND",
            Self::InvalidParams => "INVALID_PARAMS",
            Self::Internal => "INTERNAL_ERROR",
            Self::TaskNotFound => "TASK_NOT_FOUND",
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE",
            Self::PushNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION",
            Self::ContentTypeNotSupported => "CONTENT_TYPE_NOT_SUPPORTED",
            Self::InvalidAgentResponse => "INVALID_AGENT_RESPONSE",
            Self::NoExtendedCard => "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            Self::ExtensionRequired => "EXTENSION_SUPPORT_REQUIRED",
            Self::VersionNotSupported => "VERSION_NOT_SUPPORTED",
        }
    }
}

/// One thing that is wrong, and what can be done about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finding {
    /// A code of handoffd's own, where there is one.
    pub code: Option<String>,
    /// JSON pointer into the request.
    pub pointer: String,
    pub message: String,
    pub hint: Option<String>,
}

/// An error that a JSON-RPC answer carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    pub code: ErrorCode,
    pub message: String,
    pub findings: Vec<Finding>,
    /// The trace that the request belongs to.
    pub traceparent: Option<String>,
}

impl RpcError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), findings: Vec::new(), traceparent: None }
    }

    /// Something at one place of the request is wrong.
    pub fn at(
        code: ErrorCode,
        pointer: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let message = message.into();
        let finding = Finding {
            code: None,
            pointer: pointer.into(),
            message: message.clone(),
            hint: Some(hint.into()),
        };
        Self { findings: vec![finding], ..Self::new(code, message) }
    }

    /// The parameters are not what the method takes.
    pub(super) fn params(
        pointer: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::at(ErrorCode::InvalidParams, pointer, message, hint)
    }

    /// There is no such task, or the caller does not see it: the same words, so that nobody learns which.
    pub fn task_not_found(id: &str) -> Self {
        let message = format!("there is no task `{}`", crate::json::printable(id));
        Self::new(ErrorCode::TaskNotFound, message)
    }

    /// The body is not one strict JSON document.
    pub fn unreadable(fault: &BodyFault) -> Self {
        let finding = Finding {
            code: Some("A2A_BODY_INVALID".to_owned()),
            pointer: fault.pointer.clone(),
            message: fault.to_string(),
            hint: Some(fault.hint().to_owned()),
        };
        let message = format!("the body cannot be read: {fault}");
        Self { findings: vec![finding], ..Self::new(ErrorCode::Parse, message) }
    }

    #[must_use]
    pub fn traced(mut self, traceparent: Option<&str>) -> Self {
        self.traceparent = traceparent.map(str::to_owned);
        self
    }

    /// The error object of an answer.
    pub fn to_json(&self, version: Version) -> Json {
        let mut error = json!({"code": self.code.number(), "message": self.message});
        let data = match version {
            Version::V0_3 => self.data_0_3(),
            Version::V1_0 => Some(self.data_1_0()),
        };
        if let (Some(error), Some(data)) = (error.as_object_mut(), data) {
            error.insert("data".to_owned(), data);
        }
        error
    }

    fn codes(&self) -> Vec<&str> {
        let mut codes: Vec<&str> = Vec::new();
        for code in self.findings.iter().filter_map(|finding| finding.code.as_deref()) {
            if !codes.contains(&code) {
                codes.push(code);
            }
        }
        codes
    }

    fn data_0_3(&self) -> Option<Json> {
        let mut data = Map::new();
        if !self.findings.is_empty() {
            let findings: Vec<Json> = self.findings.iter().map(finding_0_3).collect();
            data.insert("codes".to_owned(), json!(self.codes()));
            data.insert("findings".to_owned(), json!(findings));
        }
        if let Some(traceparent) = &self.traceparent {
            data.insert("traceparent".to_owned(), json!(traceparent));
        }
        (!data.is_empty()).then_some(Json::Object(data))
    }

    fn data_1_0(&self) -> Json {
        let mut metadata = Map::new();
        let codes = self.codes();
        if !codes.is_empty() {
            metadata.insert("codes".to_owned(), json!(codes.join(",")));
        }
        if let Some(traceparent) = &self.traceparent {
            metadata.insert("traceparent".to_owned(), json!(traceparent));
        }
        // Not the request's fault: with a BadRequest beside it, clients take -32603 for -32602 and do not come back.
        let is_theirs = self.code != ErrorCode::Internal;
        let hint = self.findings.iter().find_map(|finding| finding.hint.as_ref());
        if let Some(hint) = hint.filter(|_| !is_theirs) {
            metadata.insert("hint".to_owned(), json!(hint));
        }
        let mut data = vec![json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.code.reason(),
            "domain": "a2a-protocol.org",
            "metadata": metadata,
        })];
        if is_theirs && !self.findings.is_empty() {
            let violations: Vec<Json> = self.findings.iter().map(violation).collect();
            data.push(json!({
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": violations,
            }));
        }
        Json::Array(data)
    }
}

fn finding_0_3(finding: &Finding) -> Json {
    let mut shown = json!({"pointer": finding.pointer, "message": finding.message});
    if let Some(shown) = shown.as_object_mut() {
        shown.extend(finding.code.as_ref().map(|code| ("code".to_owned(), json!(code))));
        shown.extend(finding.hint.as_ref().map(|hint| ("hint".to_owned(), json!(hint))));
    }
    shown
}

fn violation(finding: &Finding) -> Json {
    let description = match &finding.hint {
        Some(hint) => format!("{}; {hint}", finding.message),
        None => finding.message.clone(),
    };
    let mut shown = json!({"field": finding.pointer, "description": description});
    if let Some(shown) = shown.as_object_mut() {
        shown.extend(finding.code.as_ref().map(|code| ("reason".to_owned(), json!(code))));
    }
    shown
}

impl From<UnknownVersion> for RpcError {
    fn from(unknown: UnknownVersion) -> Self {
        let spoken = Version::ALL.map(|version| format!("`A2A-Version: {}`", version.as_str())).join(" or ");
        Self::at(
            ErrorCode::VersionNotSupported,
            "A2A-Version",
            unknown.to_string(),
            format!("send {spoken}; without the header it is 0.3"),
        )
    }
}
