//! What is not a decision: a problem, as RFC 9457 has it, with a stable code.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value as Json, json};

use crate::engine::EngineFault;
use crate::json::{BodyFault, printable};
use crate::views::ViewsFault;

macro_rules! kinds {
    ($($variant:ident = $code:literal, $status:ident, $title:literal;)*) => {
        /// The kind of a problem. Wire contract: a code is never renamed and never reused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kind { $($variant),* }

        impl Kind {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub(crate) fn code(self) -> &'static str {
                match self { $(Self::$variant => $code),* }
            }

            pub(crate) fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status),* }
            }

            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),* }
            }
        }
    };
}

kinds! {
    BodyInvalid = "A2A_BODY_INVALID", BAD_REQUEST, "The body could not be read";
    QueryInvalid = "HTTP_QUERY_INVALID", BAD_REQUEST, "A query parameter is not right";
    HeadInvalid = "HTTP_HEAD_INVALID", BAD_REQUEST, "A header is missing, there twice, or against another";
    RequestInvalid = "HTTP_REQUEST_INVALID", BAD_REQUEST, "The request is not right";
    AuthRequired = "AUTH_REQUIRED", UNAUTHORIZED, "A token is needed";
    AuthTokenUnknown = "AUTH_TOKEN_UNKNOWN", UNAUTHORIZED, "The token is not known";
    AuthSignatureInvalid = "AUTH_SIGNATURE_INVALID", UNAUTHORIZED, "The request's signature is not right";
    AuthTimestampWindow = "AUTH_TIMESTAMP_WINDOW_EXCEEDED", UNAUTHORIZED, "The request was not signed at a time that counts";
    AuthNonceReused = "AUTH_NONCE_REUSED", UNAUTHORIZED, "The request's nonce was used before";
    AuthNoncesExhausted = "AUTH_NONCES_EXHAUSTED", TOO_MANY_REQUESTS, "Too many signed requests to remember";
    Forbidden = "AUTH_FORBIDDEN", FORBIDDEN, "The caller may not do this";
    NotFound = "HTTP_NOT_FOUND", NOT_FOUND, "There is no such thing";
    MethodNotAllowed = "HTTP_METHOD_NOT_ALLOWED", METHOD_NOT_ALLOWED, "The path has no such method";
    Timeout = "HTTP_TIMEOUT", REQUEST_TIMEOUT, "The request took too long to arrive";
    Conflict = "HTTP_CONFLICT", CONFLICT, "It is not as the request takes it to be";
    TooLarge = "HTTP_BODY_TOO_LARGE", PAYLOAD_TOO_LARGE, "The body is too large";
    UriTooLong = "HTTP_URI_TOO_LONG", URI_TOO_LONG, "The address is too long";
    HeadTooLarge = "HTTP_HEADERS_TOO_LARGE", REQUEST_HEADER_FIELDS_TOO_LARGE, "The headers are too large";
    MediaType = "HTTP_MEDIA_TYPE", UNSUPPORTED_MEDIA_TYPE, "The body is not of a type that is taken";
    RateLimited = "HTTP_RATE_LIMITED", TOO_MANY_REQUESTS, "Too many requests from this caller";
    BodiesFull = "HTTP_BUSY", SERVICE_UNAVAILABLE, "Too much is being sent at once";
    Busy = "ENGINE_BUSY", SERVICE_UNAVAILABLE, "Too many decisions are waiting";
    NotDurable = "ENGINE_NOT_DURABLE", SERVICE_UNAVAILABLE, "The decision could not be made durable";
    RulesDiffer = "ENGINE_RULES_DIFFER", SERVICE_UNAVAILABLE, "This replica's rules are not those in force";
    PolicyWaits = "ENGINE_POLICY_WAITS", SERVICE_UNAVAILABLE, "A changed policy set waits for an operator's yes";
    RulesBroken = "RULES_BROKEN", CONFLICT, "The changed files cannot be put in force";
    Stopping = "ENGINE_STOPPING", SERVICE_UNAVAILABLE, "The gateway is stopping";
    WireInvalid = "WIRE_INVALID", UNPROCESSABLE_ENTITY, "It is not an event of Agent Wire v1.1";
    WireTooLarge = "WIRE_TOO_LARGE", PAYLOAD_TOO_LARGE, "The event is too large";
    WireStream = "WIRE_STREAM", UNPROCESSABLE_ENTITY, "The event does not belong into this stream";
    WireSender = "WIRE_SENDER", FORBIDDEN, "The event is not for this sender to send";
    WireHalted = "WIRE_HALTED", CONFLICT, "The handoff is halted";
    WireDuplicate = "WIRE_DUPLICATE", CONFLICT, "The event's id stands for another event";
    WireSequence = "WIRE_SEQUENCE", CONFLICT, "The event is not the next in its stream";
    WireTerminal = "WIRE_TERMINAL", CONFLICT, "The stream has ended";
    WireTransition = "WIRE_TRANSITION", CONFLICT, "The event does not follow from where the handoff stands";
    WireArtifact = "WIRE_ARTIFACT", UNPROCESSABLE_ENTITY, "The artifacts are not as the event says";
    ActInvalid = "ACT_INVALID", UNPROCESSABLE_ENTITY, "The body does not say what it must";
    AuthorizationNotHuman = "AUTHORIZATION_NOT_HUMAN", FORBIDDEN, "Only a person can make a grant";
    AuthorizationOwn = "AUTHORIZATION_OWN", FORBIDDEN, "Nobody grants their own";
    AuthorizationFull = "AUTHORIZATION_FULL", SERVICE_UNAVAILABLE, "There are as many grants as can be kept";
    AuthorizationUnknown = "AUTHORIZATION_UNKNOWN", NOT_FOUND, "There is no such grant";
    AuthorizationRevoked = "AUTHORIZATION_REVOKED", CONFLICT, "The grant was revoked before";
    ApprovalNotHuman = "APPROVAL_NOT_HUMAN", FORBIDDEN, "Only a person can answer for a person";
    ApprovalOwn = "APPROVAL_OWN", FORBIDDEN, "Nobody approves their own";
    ApprovalNotWaiting = "APPROVAL_NOT_WAITING", CONFLICT, "The handoff does not wait for anybody";
    ApprovalExpired = "APPROVAL_EXPIRED", CONFLICT, "The time to answer is over";
    ApprovalTwice = "APPROVAL_TWICE", CONFLICT, "The same person said yes before";
    ApprovalHeld = "APPROVAL_HELD", CONFLICT, "It would not be allowed now, and still waits";
    ApprovalOtherTaskSpec = "APPROVAL_OTHER_TASK_SPEC", CONFLICT, "What waits is not what was looked at";
    ApprovalFull = "APPROVAL_FULL", SERVICE_UNAVAILABLE, "As many handoffs wait for a person as can be kept";
    PolicyNotHuman = "POLICY_NOT_HUMAN", FORBIDDEN, "Only a person can say yes to a policy set";
    PolicyNotWaiting = "POLICY_NOT_WAITING", CONFLICT, "No such policy set waits";
    PolicyOtherSet = "POLICY_OTHER_SET", CONFLICT, "What waits is not the set that was looked at";
    PolicyRejected = "POLICY_REJECTED", CONFLICT, "The policy set was rejected before";
    FreezeNotSet = "FREEZE_NOT_SET", CONFLICT, "Exactly this is not frozen";
    MentionPhaseSame = "MENTION_PHASE_SAME", CONFLICT, "Mentions are in this phase already";
    MentionPhaseSkipped = "MENTION_PHASE_SKIPPED", CONFLICT, "The phase goes up one step at a time";
    MentionMarkedAlready = "MENTION_MARKED_ALREADY", CONFLICT, "The mention was marked before";
    MentionAmbiguous = "MENTION_AMBIGUOUS", CONFLICT, "The message led to several handoffs";
    RouteGateOutOfOrder = "ROUTE_GATE_OUT_OF_ORDER", CONFLICT, "It is not this gate's turn";
    RouteBlocked = "ROUTE_BLOCKED", CONFLICT, "The route is blocked";
    RouteUndeclared = "ROUTE_UNDECLARED", CONFLICT, "The route is not declared";
    RouteSuperseded = "ROUTE_SUPERSEDED", CONFLICT, "The route changed while the gate was looked at";
    RouteMoved = "ROUTE_MOVED", CONFLICT, "Handoffs keep ending on the route";
    RouteNotBlocked = "ROUTE_NOT_BLOCKED", CONFLICT, "There is nothing to lift";
    RouteEvidenceOwn = "ROUTE_EVIDENCE_OWN", FORBIDDEN, "Nobody vouches for their own work";
    StreamAhead = "STREAM_AHEAD", CONFLICT, "The stream does not go as far as the place to begin with";
    LedgerUnreadable = "LEDGER_UNREADABLE", SERVICE_UNAVAILABLE, "The ledger cannot be read back";
    ViewsBehind = "VIEWS_UNAVAILABLE", SERVICE_UNAVAILABLE, "The views cannot be asked now";
}

/// Whoever is told to come back is told when: in a moment, where nobody knows better.
pub(crate) fn say_when_to_come_back(response: &mut Response) {
    if matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        let moment = HeaderValue::from_static("1");
        response.headers_mut().entry(header::RETRY_AFTER).or_insert(moment);
    }
}

/// The table of all problems, for `docs/api.md`.
pub fn problems_markdown() -> String {
    let mut text = String::from("| code | status | |\n| --- | --- | --- |\n");
    for kind in Kind::ALL {
        let row = format!("| `{}` | {} | {} |\n", kind.code(), kind.status().as_u16(), kind.title());
        text.push_str(&row);
    }
    text
}

/// A problem, on its way to the caller. Small, for it is the rare case of every handler's result.
#[derive(Debug)]
pub(crate) struct Problem(Box<Told>);

#[derive(Debug)]
struct Told {
    kind: Kind,
    detail: String,
    /// Into the body, or the name of the parameter or header.
    pointer: Option<String>,
    hint: Option<String>,
    /// What else a program needs to know.
    members: Vec<(&'static str, Json)>,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self(Box::new(Told {
            kind,
            detail: detail.into(),
            pointer: None,
            hint: None,
            members: Vec::new(),
            header: None,
        }))
    }

    pub(crate) fn kind(&self) -> Kind {
        self.0.kind
    }

    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    pub(crate) fn at(mut self, pointer: impl Into<String>) -> Self {
        self.0.pointer = Some(pointer.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// A member of its own.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Json>) -> Self {
        self.0.members.push((name, value.into()));
        self
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.header = Some((name, value));
        self
    }

    /// What a header says of it.
    pub(crate) fn header(&self) -> Option<(&HeaderName, &HeaderValue)> {
        self.0.header.as_ref().map(|(name, value)| (name, value))
    }

    /// There is nothing here, or nothing that this caller may know of: the two look the same.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(Kind::NotFound, format!("there is no such {what}, or it is not yours to see"))
    }

    /// What is in the ledger could not be read back. Why is for the log: it may name files.
    pub(crate) fn ledger_unreadable(why: impl std::fmt::Display) -> Self {
        tracing::error!(why = %printable(&why.to_string()), "the ledger could not be read back");
        Self::new(Kind::LedgerUnreadable, "an entry that is in the ledger, or its body, could not be read back")
            .hint("/readyz says whether the ledger was changed; on the gateway's machine, run: handoffd audit verify")
    }

    pub(crate) fn to_json(&self) -> Json {
        let told = &*self.0;
        let mut json = json!({
            "type": format!("urn:handoffd:problem:{}", told.kind.code()),
            "title": told.kind.title(),
            "status": told.kind.status().as_u16(),
            "code": told.kind.code(),
            "detail": told.detail,
        });
        let mut set = |name: &str, value: Json| {
            if let Some(members) = json.as_object_mut() {
                members.insert(name.to_owned(), value);
            }
        };
        if let Some(pointer) = &told.pointer {
            set("pointer", pointer.as_str().into());
        }
        if let Some(hint) = &told.hint {
            set("hint", hint.as_str().into());
        }
        for (name, value) in &told.members {
            set(name, value.clone());
        }
        json
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.0.kind.status(), self.to_json().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.0.kind.status() == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"handoffd\""));
        }
        if let Some((name, value)) = self.0.header {
            headers.insert(name, value);
        }
        response
    }
}

impl From<EngineFault> for Problem {
    fn from(fault: EngineFault) -> Self {
        const AGAIN: &str =
            "try again with the same idempotencyKey: it is decided once, however often it is sent";
        match fault {
            EngineFault::Busy => Self::new(Kind::Busy, fault.to_string()).hint(AGAIN),
            EngineFault::NotDurable(_) => Self::new(Kind::NotDurable, fault.to_string()).hint(AGAIN),
            EngineFault::Stopped => Self::new(Kind::Stopping, "the gateway is stopping").hint(AGAIN),
            EngineFault::Differs(_) => Self::new(Kind::RulesDiffer, fault.to_string())
                .hint("ask another replica; /readyz says which file differs"),
            EngineFault::Waits(_) => Self::new(Kind::PolicyWaits, fault.to_string()).hint(
                "nothing is decided until an operator says yes to it, or the files are put back; see GET /v1/policies",
            ),
            EngineFault::BadLedger(_) => Self::new(Kind::NotDurable, "the ledger cannot be understood"),
        }
    }
}

impl From<&BodyFault> for Problem {
    fn from(fault: &BodyFault) -> Self {
        Self::new(Kind::BodyInvalid, fault.to_string()).at(fault.pointer.clone()).hint(fault.hint())
    }
}

impl From<ViewsFault> for Problem {
    fn from(fault: ViewsFault) -> Self {
        tracing::error!(%fault, "a query on the views failed");
        Self::new(Kind::ViewsBehind, "the views could not be asked")
            .hint("decisions go on meanwhile; /readyz says what is wrong, and when it is over")
    }
}
