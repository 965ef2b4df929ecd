//! Who calls: what a request shows of that, a token or a signature, and whether it holds.

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use super::App;
use super::bodies::{Room, too_large};
use super::call::RequestBody;
use super::endpoint::Endpoint;
use super::problem::{Kind, Problem};
use crate::callers::{Caller, RequestFault, SignedRequest};
use crate::gateway::{Rules, SpendFault};
use crate::os::clock;
use crate::proof::Digest;

/// What a request shows of who sends it. Whoever shows one, or a part of one, is held to it.
pub(super) enum Credential<'r> {
    /// The header, if it is one that a token could be in.
    Token(Option<&'r str>),
    Signature(SignedRequest<'r>),
}

impl<'r> Credential<'r> {
    /// What this request shows; nothing if it shows nothing at all.
    pub(super) fn of(parts: &'r Parts) -> Result<Option<Self>, Problem> {
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        // What is no text is there all the same; as no text at all, it is refused by its form.
        let text = |name| parts.headers.get(name).map(|value| value.to_str().unwrap_or_default());
        if let Some(request) = SignedRequest::of(text, parts.method.as_str(), target).map_err(refused)? {
            return Ok(Some(Self::Signature(request)));
        }
        let shown = parts.headers.get(header::AUTHORIZATION);
        Ok(shown.map(|authorization| Self::Token(authorization.to_str().ok())))
    }
}

/// Nobody is shown, where somebody must be.
pub(super) fn missing() -> Problem {
    Problem::new(Kind::AuthRequired, "this endpoint needs a token")
        .at("Authorization")
        .hint("send the header Authorization: Bearer <token>; `handoffd token new` makes one")
}

/// Who calls, and room for what they send. A body that is signed has been read then.
pub(super) async fn authenticate(
    app: &App,
    rules: &Rules,
    endpoint: &Endpoint,
    credential: Credential<'_>,
    headers: &HeaderMap,
    body: &mut RequestBody,
) -> Result<(Caller, Room), Problem> {
    match credential {
        Credential::Token(authorization) => {
            let caller = bearer(app, rules, authorization).await?;
            let room = app.bodies.of_caller(caller.token_id());
            Ok((caller, room))
        }
        Credential::Signature(request) => signer(app, rules, endpoint, request, headers, body).await,
    }
}

async fn bearer(app: &App, rules: &Rules, authorization: Option<&str>) -> Result<Caller, Problem> {
    let token = authorization
        .and_then(|text| text.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim());
    let token = token.ok_or_else(|| unknown("the header Authorization is not Bearer and a token"))?;
    if let Some(caller) = rules.roster.find(token, clock::now()) {
        return Ok(caller.clone());
    }
    // Another replica may have made it a moment ago, and callers take this answer as final.
    if !app.rules.know_shared_tokens().await {
        return Err(Problem::new(Kind::NotDurable, "whether the token counts cannot be found out now")
            .hint("ask again in a moment; the ledger's database, which has the tokens, does not answer"));
    }
    let current = app.rules.current();
    let caller = current.roster.find(token, clock::now());
    caller.cloned().ok_or_else(|| unknown("the token is unknown, has expired, or was revoked"))
}

fn unknown(why: &str) -> Problem {
    Problem::new(Kind::AuthTokenUnknown, why)
        .at("Authorization")
        .hint("send the header Authorization: Bearer <token>; `handoffd token list` shows which there are")
}

/// The signature is over the body, so the body is read first: of those who could have signed it, as much as the endpoint
/// takes, and together no more than there is room for.
async fn signer(
    app: &App,
    rules: &Rules,
    endpoint: &Endpoint,
    request: SignedRequest<'_>,
    headers: &HeaderMap,
    body: &mut RequestBody,
) -> Result<(Caller, Room), Problem> {
    let vouched = request.vouch(&rules.in_force.keyring, clock::now()).map_err(refused)?;
    let server = &app.settings.server;
    let bytes_max = endpoint.body_bytes_max(server);
    let unverified = app.bodies.of_key(request.key_id);
    let bytes = match std::mem::replace(body, RequestBody::Read(bytes::Bytes::new())) {
        RequestBody::Unread(body) => {
            unverified.read(body, headers, bytes_max, server.request_timeout).await?
        }
        RequestBody::Read(bytes) if bytes.len() > bytes_max => return Err(too_large(bytes_max)),
        RequestBody::Read(bytes) => bytes,
    };
    let now = clock::now();
    let verified = vouched.verify(Digest::of(&bytes), &rules.roster, now).map_err(refused)?;
    let room = app.bodies.of_caller(verified.token_id());
    room.take(bytes.len())?;
    *body = RequestBody::Read(bytes);
    let caller = app.nonces.spend(verified, now).await.map_err(not_spent)?;
    Ok((caller, room))
}

fn not_spent(fault: SpendFault) -> Problem {
    let what = match fault {
        SpendFault::Refused(fault) => return refused(fault),
        SpendFault::NotDurable => "that the nonce is used cannot be made durable now",
        SpendFault::NobodyToAsk => "whether the nonce was used before cannot be found out now",
    };
    Problem::new(Kind::NotDurable, what).hint("sign the request again, with a new nonce, in a moment")
}

fn refused(fault: RequestFault) -> Problem {
    let kind =
        Kind::ALL.iter().find(|kind| kind.code() == fault.code()).copied().unwrap_or(Kind::AuthRequired);
    Problem::new(kind, fault.to_string()).hint(fault.hint())
}
