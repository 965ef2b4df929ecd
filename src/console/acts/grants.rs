//! Making and revoking grants.

use serde_json::{Value as Json, json};

use super::super::door::Visit;
use super::super::facts::Facts;
use super::super::filters::Filters;
use super::super::form::{Fields, query};
use super::{Input, Plan, needed};
use crate::authorization::grant_ask;
use crate::callers::Act;
use crate::contract::Finding;
use crate::http::{Ask, Kind, Problem};
use crate::json::read;
use crate::limits;
use crate::timestamp::Timestamp;

/// The fields of the form, with what each takes in words. Whether a value is right is the API's to say.
const FIELDS: [(&str, &str); 8] = [
    ("principal", "1 to 128 characters"),
    ("agents", "each has 2 to 64 characters and is named once, 32 at most"),
    ("operations", "each has 3 to 128 characters and is named once, 32 at most"),
    ("modes", "each is named once"),
    ("channels", "each is a channel or thread of Discord, such as discord:channel:1473392629055098942"),
    ("routeKey", "6 to 160 characters"),
    ("intentHash", "takes `sha256:` and 64 hex digits, in lower case"),
    ("uses", "a whole number from 1 to 1000"),
];

/// The form of a grant, with what it leaves open or says in no way that can be meant.
pub(in super::super) fn marked(fields: &Fields, now: Timestamp) -> Filters {
    let mut form = Filters::read("", &FIELDS.map(|(name, _)| name), fields);
    for (name, open) in [
        ("principal", "in whose name?"),
        ("agents", "name at least one"),
        ("operations", "name at least one"),
        ("modes", "choose at least one"),
    ] {
        if form.given(name).is_empty() {
            form.refuse(name, open);
        }
    }
    if fields.get("uses").is_some_and(|uses| uses.parse::<u32>().is_err()) {
        form.refuse("uses", "not a number of uses");
    }
    let body = body(fields, &now.plus_seconds(60).to_milliseconds()).to_string();
    let document = read(body.as_bytes(), limits::ACT);
    let findings =
        document.ok().and_then(|document| grant_ask(&document, now, None).err()).unwrap_or_default();
    for (name, takes) in FIELDS {
        let is_it = |finding: &Finding| finding.pointer.split('/').nth(1) == Some(name);
        if form.wrong(name).is_empty() && findings.iter().any(is_it) {
            form.refuse(name, takes);
        }
    }
    form
}

/// What the form asks for, as the API takes it.
fn body(fields: &Fields, expires_at: &str) -> Json {
    let list = |name: &str| -> Vec<String> { fields.words(name).into_iter().map(str::to_owned).collect() };
    let mut body = json!({
        "principal": fields.text("principal"),
        "agents": list("agents"),
        "operations": list("operations"),
        "modes": list("modes"),
        "expiresAt": expires_at,
        "uses": fields.get("uses").and_then(|uses| uses.parse::<u32>().ok()).unwrap_or(1),
    });
    if let Some(members) = body.as_object_mut() {
        let channels = list("channels");
        if !channels.is_empty() {
            members.insert("channels".to_owned(), channels.into());
        }
        for name in ["routeKey", "intentHash"] {
            if let Some(value) = fields.get(name) {
                members.insert(name.to_owned(), value.into());
            }
        }
    }
    body
}

/// Where to finish the form of a grant; nothing if it says enough.
pub(super) fn unfinished(fields: &Fields, now: Timestamp) -> Option<String> {
    let is_open = !marked(fields, now).are_right();
    is_open.then(|| format!("/console/authorizations?{}#make", fields.query_with("made", "not yet")))
}

pub(super) fn make(visit: &Visit) -> Result<Plan, Problem> {
    let fields = &visit.fields;
    let wrong = |name: &str, why: &str| Problem::new(Kind::ActInvalid, why).at(format!("/{name}"));
    let minutes: i64 =
        needed(visit, "minutes")?.parse().map_err(|_| wrong("expiresAt", "not a number of minutes"))?;
    if fields.get("uses").is_some_and(|uses| uses.parse::<u32>().is_err()) {
        return Err(wrong("uses", "not a number of uses"));
    }
    // The end is fixed when the form is first sent: what is confirmed is what is made.
    let expires_at = match fields.get("expiresAt") {
        Some(text) => text.to_owned(),
        None => visit.now.plus_seconds(minutes.clamp(1, 60 * 24 * 31).saturating_mul(60)).to_milliseconds(),
    };
    let list = |name: &str| -> Vec<String> { fields.words(name).into_iter().map(str::to_owned).collect() };
    let body = body(fields, &expires_at);
    let facts = Facts::of(&body, visit.now);
    let shown = vec![
        ("In the name of", facts.text("principal")),
        ("Agents", facts.text("agents")),
        ("Operations", facts.text("operations")),
        ("Modes", facts.text("modes")),
        ("Channels", facts.or("channels", "any")),
        ("Route", facts.or("routeKey", "any")),
        ("Intent", facts.or("intentHash", "any")),
        ("Uses", facts.text("uses")),
        ("Ends", facts.text("expiresAt")),
    ];
    let names = ["principal", "routeKey", "intentHash", "uses", "minutes"];
    let mut carried: Vec<(&'static str, String)> =
        names.into_iter().filter_map(|name| Some((name, fields.get(name)?.to_owned()))).collect();
    for name in ["agents", "operations", "modes", "channels"] {
        carried.push((name, list(name).join(" ")));
    }
    // Whoever goes back finds the form as they left it.
    let terms = carried.iter().map(|(name, value)| (*name, value.as_str()));
    let back = format!("/console/authorizations?{}#make", query(terms));
    carried.push(("expiresAt", expires_at));
    Ok(Plan {
        act: Act::Authorize,
        title: "Make a grant".to_owned(),
        section: "authorizations",
        facts: shown,
        hindrance: None,
        happens: vec![
            "Delegated handoffs inside these terms are allowed without asking a person again, as often as it says.".to_owned(),
            "It can be revoked at any time; what was allowed under it before stays allowed.".to_owned(),
        ],
        steps: Vec::new(),
        documents: Vec::new(),
        inputs: Vec::new(),
        carried,
        button: "Yes, make it",
        is_dangerous: true,
        back,
        ask: Ask::of("makeAuthorization").body(body),
        next: "/console/authorizations".to_owned(),
        told: |done| format!("The grant {} is made, and holds until {}.", done.text("authorizationRef"), done.text("expiresAt")),
    })
}

pub(super) async fn revoke(visit: &Visit) -> Result<Plan, Problem> {
    let reference = needed(visit, "ref")?;
    let grant: Json = visit.ask(Ask::of("getAuthorization").at("ref", reference)).await?;
    let facts = Facts::of(&grant, visit.now);
    let hindrance = facts.has("revokedAt").then(|| {
        let by = facts.or("revokedBy", "the gateway");
        Problem::new(
            Kind::AuthorizationRevoked,
            format!("it was revoked by `{by}` at {}", facts.text("revokedAt")),
        )
    });
    let reason = visit.fields.query_of(&["reason"]);
    Ok(Plan {
        act: Act::Authorize,
        title: format!("Revoke {reference}"),
        section: "authorizations",
        facts: vec![
            ("In the name of", facts.text("principal")),
            ("Agents", facts.text("agents")),
            ("Operations", facts.text("operations")),
            ("Used", format!("{} of {}", facts.text("used"), facts.text("uses"))),
            ("Made by", facts.text("madeBy")),
        ],
        hindrance,
        happens: vec![
            "From the next decision on, no handoff is allowed under this grant. It cannot be put in force again.".to_owned(),
        ],
        steps: Vec::new(),
        documents: Vec::new(),
        inputs: vec![Input::reason(visit, true)],
        carried: vec![("ref", reference.to_owned())],
        button: "Yes, revoke it",
        is_dangerous: true,
        back: "/console/authorizations".to_owned(),
        ask: Ask::of("revokeAuthorization").at("ref", reference).query(reason),
        next: "/console/authorizations".to_owned(),
        told: |done| format!("The grant {} is revoked.", done.text("authorizationRef")),
    })
}
