//! The way in and out: a token that is pasted, a link from the command line, and what is said when a session is over.

use askama::Template;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;

use super::Console;
use super::door::Visit;
use super::form::{Fields, encoded};
use super::frame::{Frame, page, see_other};
use crate::callers::{Caller, Look, Session};
use crate::limits;
use crate::os::random;
use crate::timestamp::Timestamp;

/// Somebody who has no session, or is about to begin one.
pub(super) struct WayIn<'r> {
    pub(super) console: &'r Console,
    /// What their browser shows; empty if it shows nothing.
    pub(super) secret: &'r str,
    pub(super) fields: &'r Fields,
    pub(super) now: Timestamp,
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage {
    frame: Frame,
    /// Where to go then.
    next: String,
    /// Why they are here again.
    told: Option<&'static str>,
    problem: Option<&'static str>,
}

const OVER: &str = "Your session is over: it ends after 30 minutes without use, after 8 hours in any case, and when the \
                    gateway is restarted. Log in, and you come back to where you were.";
const TOO_LATE: &str =
    "The session is over, and nothing was done. Log in, and you find the form as you filled it in.";
const TOO_LATE_HERE: &str = "The session is over, and nothing was done. Log in, and do it again.";
const UNKNOWN: &str = "This token is unknown, has expired, or was revoked.";
const OTHERS: &str =
    "The console is for operators, auditors and administrators; this token is for something else.";
const SPENT: &str = "This link was used before, is older than two minutes, or was not opened from a terminal. \
                     Run handoffd console again for a new one, or paste a token.";

impl WayIn<'_> {
    /// The session that the browser shows, if it is not over.
    fn session(&self) -> Option<Session> {
        let app = &self.console.app;
        app.sessions.find(self.secret, &app.rules.current().roster, self.now, Look::Person)
    }

    fn page(
        &self,
        status: StatusCode,
        next: String,
        told: Option<&'static str>,
        problem: Option<&'static str>,
    ) -> Response {
        page(status, &LoginPage { frame: Frame::outside("Log in", self.now), next, told, problem })
    }

    fn next(&self) -> String {
        own_place(self.fields.text("next"))
    }

    /// `GET /console/login`. Whoever comes with a session that is over is told so.
    pub(super) fn show(&self) -> Response {
        let is_over = !self.secret.is_empty() && self.session().is_none();
        self.page(StatusCode::OK, self.next(), is_over.then_some(OVER), None)
    }

    fn refused(&self, why: &'static str) -> Response {
        self.page(StatusCode::FORBIDDEN, self.next(), None, Some(why))
    }

    /// `POST /console/login`.
    pub(super) fn log_in(&self) -> Response {
        let roster = self.console.app.rules.current().roster;
        let caller = roster.find(self.fields.text("token"), self.now).cloned();
        let Some(caller) = caller else { return self.refused_token(UNKNOWN) };
        self.begin(&caller, &self.next()).unwrap_or_else(|| self.refused_token(OTHERS))
    }

    /// Whoever gave a token that does not count here has no session either, whatever the browser showed.
    fn refused_token(&self, why: &'static str) -> Response {
        let mut response = self.refused(why);
        set_cookie(self.console, &mut response, "", 0);
        response
    }

    /// `GET /console/enter`. A link is followed from a terminal: from another site it could put somebody into a session
    /// that is not theirs. A browser that only looks ahead does not use it up.
    pub(super) fn follow_link(&self, headers: &HeaderMap) -> Response {
        let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if said("sec-purpose").starts_with("prefetch") || said("purpose") == "prefetch" {
            return self.page(StatusCode::SERVICE_UNAVAILABLE, self.next(), None, None);
        }
        let roster = self.console.app.rules.current().roster;
        let caller = match said("sec-fetch-site") {
            "" | "none" | "same-origin" => {
                self.console.app.sessions.follow(self.fields.text("link"), &roster, self.now)
            }
            _ => None,
        };
        if let Some(begun) = caller.and_then(|caller| self.begin(&caller, "/console")) {
            return begun;
        }
        // Followed twice: who is in stays in.
        match self.session() {
            Some(session) => {
                let name = session.caller.name().as_str();
                let told = format!("That link was used before; you are still logged in as {name}.");
                self.console.flashes.put(&session, told);
                see_other("/console")
            }
            None => self.refused(SPENT),
        }
    }

    /// A form that came after its session was over. What was typed is carried through the login to the page that asks
    /// once more.
    pub(super) fn too_late(&self, place: &[&str]) -> Response {
        let (next, why) = match place {
            ["act", name] => (self.act(name), TOO_LATE),
            ["audit", "verify"] => ("/console/audit/verify".to_owned(), TOO_LATE_HERE),
            _ => ("/console".to_owned(), TOO_LATE_HERE),
        };
        self.page(StatusCode::UNAUTHORIZED, next, None, Some(why))
    }

    /// The page before an act, filled in. What an address cannot hold is left to be typed again.
    fn act(&self, name: &str) -> String {
        // Its end is counted from when it is asked for again.
        let place = |left_out: &[&str]| {
            format!("/console/act/{}?{}", encoded(name), self.fields.query_without(left_out))
        };
        let whole = place(&["form", "expiresAt"]);
        match whole.len() <= limits::CONSOLE_PLACE_BYTES_MAX {
            true => whole,
            false => place(&["form", "expiresAt", "reason"]),
        }
    }

    fn begin(&self, caller: &Caller, next: &str) -> Option<Response> {
        let random = random::secret_bytes::<32>().ok()?;
        let secret = self.console.app.sessions.begin(caller, &random, self.now)?;
        tracing::info!(
            name = caller.name().as_str(),
            role = caller.role().as_str(),
            "a console session began"
        );
        let mut response = see_other(next);
        set_cookie(self.console, &mut response, secret.expose(), limits::SESSION_S);
        Some(response)
    }
}

pub(super) fn log_out(visit: &Visit) -> Response {
    visit.console.app.sessions.end(&visit.secret);
    let mut response = see_other("/console/login");
    set_cookie(&visit.console, &mut response, "", 0);
    response
}

/// What the browser shows for its session.
pub(super) fn secret<'h>(headers: &'h HeaderMap, console: &Console) -> Option<&'h str> {
    cookie(headers, &cookie_name(console))
}

/// Named after the ledger: two gateways on one machine share a browser's cookies.
fn cookie_name(console: &Console) -> String {
    let topic: String = console.app.gateway.topic_id().chars().filter(char::is_ascii_alphanumeric).collect();
    format!("handoffd_{topic}")
}

fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(';')).find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

fn set_cookie(console: &Console, response: &mut Response, value: &str, seconds: i64) {
    let secure = if console.app.settings.tls.certificate.is_some() { "; Secure" } else { "" };
    let name = cookie_name(console);
    let text = format!("{name}={value}; Path=/console; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
}

/// A place in the console, whatever was asked for.
fn own_place(wanted: &str) -> String {
    let rest = wanted.strip_prefix("/console");
    let path = wanted.split(['?', '#']).next().unwrap_or_default();
    // A browser takes these for steps, also when they are encoded.
    let is_step = |part: &str| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    let is_own = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        && wanted.chars().all(|c| c.is_ascii_graphic() && c != '\\')
        && !path.split('/').any(is_step);
    if is_own { wanted.to_owned() } else { "/console".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_times_is_so() {
        assert!(limits::SESSION_IDLE_S == 30 * 60 && OVER.contains("after 30 minutes without use"));
        assert!(limits::SESSION_S == 8 * 3_600 && OVER.contains("after 8 hours in any case"));
        assert!(limits::SESSION_LINK_S == 2 * 60 && SPENT.contains("older than two minutes"));
    }

    #[test]
    fn after_a_login_nobody_is_sent_elsewhere() {
        for own in [
            "/console",
            "/console/handoffs?route=a%20b",
            "/console?x=1",
            "/console/codes?q=../x",
            "/console/routes/a..b",
        ] {
            assert_eq!(own_place(own), own);
        }
        for foreign in [
            "",
            "//evil.example",
            "https://evil.example",
            "/consoles",
            "/v1/state",
            "/console/\\x",
            "/console\n",
            "/console/../v1/routes",
            "/console/%2e%2E/v1/routes",
            "/console/..",
            "/console/./x",
        ] {
            assert_eq!(own_place(foreign), "/console", "{foreign}");
        }
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_static("a=1; handoffd_x=abc; b=2"));
        assert_eq!(cookie(&headers, "handoffd_x"), Some("abc"));
        assert_eq!(cookie(&headers, "handoffd_"), None);
    }
}
