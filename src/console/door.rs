//! What stands before every page: whose session it is, whether a form is one of ours, and the headers of the answer.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::Response;
use serde_json::Value as Json;

use super::form::{Fields, encoded};
use super::frame::{Frame, Who, problem_page, see_other};
use super::tree::Extent;
use super::{Console, acts, assets, export, live, login, pages, verification};
use crate::callers::{Act, Look, Session};
use crate::http::{Ask, Kind, Problem, examine_head, percent_decoded, say_when_to_come_back};
use crate::os::clock;
use crate::proposal::Proposal;
use crate::timestamp::Timestamp;

/// A page that keeps itself up to date says so; it does not keep a session alive.
const LOOK: &str = "x-handoffd-look";

/// Only from here, nothing inline, and framed by nobody.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What a person can do about a request that is too heavy: of a browser's headers, only cookies grow.
const TOO_MANY_COOKIES: &str = "most likely other programs at this address have left many cookies in your browser, which \
                                it sends along: delete the cookies of this site, or open the console under another name \
                                of this machine, such as localhost";

pub(super) async fn enter(console: Arc<Console>, request: Request) -> Response {
    let began = Instant::now();
    let app = console.app.clone();
    let patience = app.settings.server.request_timeout * 2;
    let mut response = match tokio::time::timeout(patience, answer(console, request)).await {
        Ok(response) => response,
        Err(_) => {
            let problem = Problem::new(Kind::NotDurable, "the page took too long")
                .hint("if it was an act, whether it was done is in the ledger: look before you do it again");
            problem_page(Frame::outside("", clock::now()), &problem)
        }
    };
    dress(&mut response);
    app.metrics.request("console", response.status().as_u16(), began.elapsed());
    response
}

/// Headers that every answer has, redirects and errors included.
fn dress(response: &mut Response) {
    say_when_to_come_back(response);
    let headers = response.headers_mut();
    let all = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Not less: forms would then not say where they come from.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in all {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Somebody who looks, and what they ask for.
pub(super) struct Visit {
    pub(super) console: Arc<Console>,
    pub(super) session: Session,
    /// What their browser shows.
    pub(super) secret: String,
    /// What the address says, or the form.
    pub(super) fields: Fields,
    pub(super) now: Timestamp,
    /// Whether a person asks, or a page that keeps itself up to date.
    pub(super) look: Look,
}

impl Visit {
    /// Asks the API in the person's name.
    pub(super) async fn ask(&self, ask: Ask) -> Result<Json, Problem> {
        self.console.app.call_json(&self.session.caller, ask).await
    }

    pub(super) fn may(&self, act: Act) -> bool {
        self.session.caller.may(act)
    }

    /// How much of a document is shown: a part at first, and all of it to whoever asks for the whole.
    pub(super) fn extent(&self) -> Extent {
        let whole = format!("?{}", self.fields.query_with("whole", "yes"));
        match self.fields.get("whole") {
            None => Extent { whole, ..Extent::default() },
            Some(_) => Extent { lines_max: usize::MAX, whole },
        }
    }

    /// What stands around the page. A person's look takes what they were to be told; a page that looks by itself, in
    /// another window too, leaves it to them.
    pub(super) fn frame(&self, title: impl Into<String>, section: &'static str) -> Frame {
        let engine = self.console.app.gateway.engine();
        let proposed = self.console.app.rules.proposed();
        let is_rejected = |proposal: &Option<_>| matches!(proposal, Some(Proposal { rejected: Some(_), .. }));
        let is_set_waiting = proposed.is_some_and(|(_, proposal)| !is_rejected(&proposal));
        Frame {
            title: title.into(),
            section,
            who: Some(Who::of(&self.session)),
            flash: match self.look {
                Look::Person => self.console.flashes.take(&self.session),
                Look::Page => None,
            },
            waiting: engine.inbox().count(),
            frozen: engine.freezes().all().map(|freeze| freeze.scope.to_string()).collect(),
            is_set_waiting,
            is_live: false,
            ..Frame::outside("", self.now)
        }
    }
}

async fn answer(console: Arc<Console>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let now = clock::now();
    let outside = |problem: &Problem| problem_page(Frame::outside("", now), problem);
    if let Err(problem) = examine_head(&parts, console.app.settings.server.header_bytes_max) {
        let is_long = problem.kind() == Kind::HeadTooLarge;
        return outside(&if is_long { problem.hint(TOO_MANY_COOKIES) } else { problem });
    }
    let unreadable = || Problem::new(Kind::NotFound, "the address is not percent-encoded UTF-8");
    let below = parts.uri.path().strip_prefix("/console").unwrap_or_default();
    let place: Option<Vec<String>> =
        below.split('/').filter(|part| !part.is_empty()).map(percent_decoded).collect();
    let Some(place) = place else { return outside(&unreadable()) };
    let place: Vec<&str> = place.iter().map(String::as_str).collect();
    let query = parts.uri.query().unwrap_or_default();
    let Some(mut fields) = Fields::read(query) else {
        let problem = Problem::new(Kind::QueryInvalid, "what is asked for is not percent-encoded UTF-8")
            .hint("a percent sign that stands for itself is written %25");
        return outside(&problem);
    };
    let is_get = matches!(parts.method, Method::GET | Method::HEAD);
    if let (true, ["assets", name]) = (is_get, place.as_slice()) {
        let unknown = || outside(&Problem::new(Kind::NotFound, "there is no such file"));
        return assets::find(name).unwrap_or_else(unknown);
    }
    if let Some(allowed) = methods(&place).filter(|allowed| !is_among(&parts.method, allowed)) {
        let problem =
            Problem::new(Kind::MethodNotAllowed, "pages are read with GET and forms sent with POST")
                .with_header(header::ALLOW, HeaderValue::from_static(allowed));
        return outside(&problem);
    }
    if !is_get && parts.method != Method::POST {
        return outside(&no_such_page());
    }
    if !is_get {
        match read_form(body, &parts.headers, &console).await {
            Ok(form) => fields = form,
            Err(problem) => return outside(&problem),
        }
        let host = parts.headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let host = host.or(parts.uri.authority().map(|authority| authority.as_str()));
        if !comes_from_here(&parts.headers, host) {
            let problem = Problem::new(Kind::Forbidden, "the form was sent from another site")
                .hint("open the console itself, and do it there");
            return outside(&problem);
        }
    }
    let secret = login::secret(&parts.headers, &console).unwrap_or_default().to_owned();
    let way_in = login::WayIn { console: &console, secret: &secret, fields: &fields, now };
    match (&parts.method, place.as_slice()) {
        (&Method::GET | &Method::HEAD, ["login"]) => return way_in.show(),
        (&Method::POST, ["login"]) => return way_in.log_in(),
        (&Method::GET, ["enter"]) => return way_in.follow_link(&parts.headers),
        _ => {}
    }
    let look = if parts.headers.contains_key(LOOK) || place == ["live"] { Look::Page } else { Look::Person };
    let roster = console.app.rules.current().roster;
    let Some(session) = console.app.sessions.find(&secret, &roster, now, look) else {
        if is_get && look == Look::Person {
            let wanted = parts.uri.path_and_query().map_or("/console", |wanted| wanted.as_str());
            return see_other(&format!("/console/login?next={}", encoded(wanted)));
        }
        return match look {
            Look::Person => way_in.too_late(&place),
            Look::Page => outside(&Problem::new(Kind::AuthRequired, "the session is over")),
        };
    };
    if !is_get && !same(fields.text("form"), &session.form_word) {
        let problem = Problem::new(Kind::Forbidden, "the form does not belong to this session")
            .hint("open the page again, and send its form");
        return outside(&problem);
    }
    let visit = Visit { console, session, secret, fields, now, look };
    if let Err(problem) = visit.console.app.take_turn(&visit.session.caller) {
        return outside(&problem);
    }
    match serve(&visit, is_get, &place).await {
        Ok(response) => response,
        Err(problem) => problem_page(visit.frame("", "-"), &problem),
    }
}

/// Every page there is.
async fn serve(visit: &Visit, is_get: bool, place: &[&str]) -> Result<Response, Problem> {
    match (is_get, place) {
        (true, []) => pages::overview(visit).await,
        (true, ["handoffs"]) => pages::handoffs(visit).await,
        (true, ["handoffs", id]) => pages::handoff(visit, id).await,
        (true, ["approvals"]) => pages::approvals(visit).await,
        (true, ["approvals", id]) => pages::approval(visit, id).await,
        (true, ["authorizations"]) => pages::authorizations(visit).await,
        (true, ["routes"]) => pages::routes(visit).await,
        (true, ["routes", key]) => pages::route(visit, key).await,
        (true, ["mentions"]) => pages::mentions(visit).await,
        (true, ["audit"]) => pages::audit(visit).await,
        (true, ["audit", "verify"]) => verification::show(visit).await,
        (false, ["audit", "verify"]) => verification::start(visit),
        (true, ["audit", sequence]) => pages::entry(visit, sequence).await,
        (true, ["policies"]) => pages::policies(visit).await,
        (true, ["codes"]) => pages::codes(visit).await,
        (true, ["freezes"]) => pages::freezes(visit).await,
        (true, ["export", what]) => export::download(visit, what).await,
        (true, ["act", name]) => acts::confirm(visit, name).await,
        (false, ["act", name]) => acts::perform(visit, name).await,
        (true, ["live"]) => live::follow(visit),
        (false, ["logout"]) => Ok(login::log_out(visit)),
        _ => Err(no_such_page()),
    }
}

fn no_such_page() -> Problem {
    Problem::new(Kind::NotFound, "there is no such page").hint("its sections are in the menu")
}

/// What a page or a form is asked with; nothing where there is neither.
fn methods(place: &[&str]) -> Option<&'static str> {
    Some(match place {
        ["login"] | ["audit", "verify"] | ["act", _] => "GET, HEAD, POST",
        ["logout"] => "POST",
        []
        | ["handoffs" | "approvals" | "authorizations" | "routes" | "freezes" | "mentions" | "audit"]
        | ["policies" | "codes" | "live" | "enter"]
        | ["handoffs" | "approvals" | "routes" | "audit" | "export" | "assets", _] => "GET, HEAD",
        _ => return None,
    })
}

fn is_among(method: &Method, allowed: &str) -> bool {
    allowed.split(", ").any(|name| name == method.as_str())
}

async fn read_form(
    body: axum::body::Body,
    headers: &HeaderMap,
    console: &Console,
) -> Result<Fields, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("application/x-www-form-urlencoded") {
        return Err(Problem::new(Kind::MediaType, "this is not a form"));
    }
    let bytes = console.app.read_form(body, headers).await?;
    let text = std::str::from_utf8(&bytes).ok().and_then(Fields::read);
    text.ok_or_else(|| Problem::new(Kind::RequestInvalid, "the form is not percent-encoded UTF-8"))
}

/// Was a form sent from one of our own pages? A browser says so; whoever does not say is not believed.
fn comes_from_here(headers: &HeaderMap, host: Option<&str>) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    match text(header::ORIGIN) {
        Some(origin) => {
            let from = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
            from.is_some() && from == host
        }
        None => text(HeaderName::from_static("sec-fetch-site")) == Some("same-origin"),
    }
}

/// In a time that does not tell where they differ.
fn same(given: &str, expected: &str) -> bool {
    given.len() == expected.len()
        && given.bytes().zip(expected.bytes()).fold(0, |all, (one, other)| all | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_and_every_form_has_its_methods() {
        let get = |place: &[&str]| methods(place).is_some_and(|allowed| is_among(&Method::GET, allowed));
        for (section, _) in super::super::frame::SECTIONS {
            let place: Vec<&str> = section.split('/').filter(|part| !part.is_empty()).collect();
            assert!(get(&place), "{section}");
            assert!(!is_among(&Method::POST, methods(&place).unwrap()), "{section}");
        }
        assert_eq!(methods(&["logout"]), Some("POST"));
        for place in [&["act", "freeze"][..], &["audit", "verify"], &["login"]] {
            assert!(get(place) && is_among(&Method::POST, methods(place).unwrap()), "{place:?}");
        }
        for place in [&["nothing"][..], &["act"], &["handoffs", "a", "b"], &["codes", "x"]] {
            assert_eq!(methods(place), None, "{place:?}");
        }
    }

    #[test]
    fn a_form_comes_from_here_only_if_the_browser_says_so() {
        let check = |origin: Option<&'static str>, site: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            origin.map(|value| headers.insert(header::ORIGIN, HeaderValue::from_static(value)));
            site.map(|value| headers.insert("sec-fetch-site", HeaderValue::from_static(value)));
            comes_from_here(&headers, Some("gateway.example:7420"))
        };
        assert!(check(Some("http://gateway.example:7420"), None));
        assert!(check(Some("https://gateway.example:7420"), None));
        assert!(check(None, Some("same-origin")));
        for (origin, site) in [
            (None, None),
            (Some("null"), Some("same-origin")),
            (Some("http://gateway.example"), None),
            (Some("http://evil.example:7420"), Some("same-origin")),
            (None, Some("same-site")),
            (None, Some("cross-site")),
        ] {
            assert!(!check(origin, site), "{origin:?} {site:?}");
        }
    }
}
