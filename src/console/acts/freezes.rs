//! Stopping decisions, and letting them go on.

use serde_json::{Value as Json, json};

use super::super::door::Visit;
use super::super::facts::{Facts, grouped};
use super::super::filters::Filters;
use super::super::form::Fields;
use super::{Input, Plan, needed};
use crate::callers::Act;
use crate::contract::{Mode, Word as _};
use crate::http::{App, Ask, Kind, Problem};
use crate::json::printable;
use crate::limits;

/// What can be frozen, by the word of the API and in ours.
pub(in super::super) const SCOPES: [(&str, &str); 3] =
    [("all", "everything"), ("mode", "one mode"), ("route", "one route")];

/// The form of a freeze as it was filled in, with what it leaves open and what does not go together.
pub(in super::super) fn marked(fields: &Fields, app: &App) -> Filters {
    let mut form = Filters::read("", &["scope", "mode", "routeKey"], fields);
    let scope = form.given("scope").to_owned();
    if !scope.is_empty() && SCOPES.iter().all(|(word, _)| *word != scope) {
        form.refuse("scope", "choose one of these");
        return form;
    }
    let fields = [("mode", "mode", "choose a mode"), ("route", "routeKey", "choose a route")];
    if let Some((_, name, open)) =
        fields.into_iter().find(|(own, name, _)| scope == *own && form.given(name).is_empty())
    {
        form.refuse(name, open);
        return form;
    }
    // What would not count is not taken in silence.
    for (own, name, _) in fields {
        if !scope.is_empty() && scope != own && !form.given(name).is_empty() {
            form.refuse(name, &format!("this would not count: freeze one {own}, or leave it out"));
        }
    }
    if scope == "mode" && form.wrong("mode").is_empty() && Mode::from_word(form.given("mode")).is_none() {
        form.refuse("mode", "there is no such mode");
    }
    let routes = app.rules.current().in_force.policies.clone();
    if scope == "route" && form.wrong("routeKey").is_empty() && routes.route(form.given("routeKey")).is_none()
    {
        form.refuse("routeKey", "there is no such route");
    }
    form
}

/// Where to finish the form of a freeze; nothing if it says enough.
pub(super) fn unfinished(visit: &Visit) -> Option<String> {
    let typed = visit.fields.query_of(&["scope", "mode", "routeKey"]);
    let is_open = !marked(&visit.fields, &visit.console.app).are_right();
    is_open.then(|| format!("/console/freezes?{typed}#freeze"))
}

/// The body of the request, and its scope in words.
fn scope(visit: &Visit) -> Result<(Json, String), Problem> {
    let scope = needed(visit, "scope")?;
    let mut body = json!({"scope": scope, "reason": visit.fields.text("reason")});
    // A form has fields for all scopes; those of the others do not count.
    let name = match scope {
        "mode" => Some("mode"),
        "route" => Some("routeKey"),
        "all" => None,
        _ => {
            let why = format!("there is no scope `{}`", printable(scope));
            return Err(Problem::new(Kind::ActInvalid, why).hint("all, mode or route"));
        }
    };
    let value = name.map(|name| needed(visit, name)).transpose()?;
    if let (Some(name), Some(value), Some(members)) = (name, value, body.as_object_mut()) {
        members.insert(name.to_owned(), value.into());
    }
    let words = match value {
        Some(value) => format!("{scope} {value}"),
        None => "everything".to_owned(),
    };
    Ok((body, words))
}

fn plan(visit: &Visit, words: &str) -> Plan {
    let names = ["scope", "mode", "routeKey"];
    let carried = names.into_iter().filter_map(|name| Some((name, visit.fields.get(name)?.to_owned())));
    Plan {
        act: Act::Freeze,
        title: String::new(),
        section: "freezes",
        facts: vec![("What", words.to_owned())],
        hindrance: None,
        happens: Vec::new(),
        steps: Vec::new(),
        documents: Vec::new(),
        inputs: vec![Input::reason(visit, true)],
        carried: carried.collect(),
        button: "Yes",
        is_dangerous: true,
        back: "/console/freezes".to_owned(),
        ask: Ask::of(""),
        next: "/console/freezes".to_owned(),
        told: |_| String::new(),
    }
}

/// The freeze of exactly this scope, if there is one.
async fn held(visit: &Visit, body: &Json) -> Result<Option<Json>, Problem> {
    let all = visit.ask(Ask::of("listFreezes")).await?;
    let is_it = |one: &Json| ["scope", "mode", "routeKey"].iter().all(|name| one.get(name) == body.get(name));
    let mut frozen = all.get("frozen").and_then(Json::as_array).into_iter().flatten();
    Ok(frozen.find(|one| is_it(one)).cloned())
}

pub(super) async fn freeze(visit: &Visit) -> Result<Plan, Problem> {
    let (body, words) = scope(visit)?;
    let hindrance = held(visit, &body).await?.map(|held| {
        let held = Facts::of(&held, visit.now);
        let (by, at, from) = (held.text("by"), held.text("at"), held.text("fromSequence"));
        Problem::new(
            Kind::Conflict,
            format!("`{words}` is frozen already: by `{by}`, from entry {from} on, {at}"),
        )
        .hint("nothing would be written; it holds until an operator lifts it")
    });
    let said = |name: &str| body.get(name).and_then(Json::as_str).map(str::to_owned);
    let (route, mode) = (said("routeKey"), said("mode"));
    let reach = match (&route, &mode) {
        (Some(route), _) => format!("on route `{route}` "),
        (_, Some(mode)) => format!("in mode {mode} "),
        _ => String::new(),
    };
    let in_flight = visit
        .console
        .app
        .ask(move |reader| {
            reader.about_in_flight(route.as_deref(), mode.as_deref(), limits::IN_FLIGHT_LISTED_MAX)
        })
        .await;
    let in_flight = match in_flight {
        Ok((0, true)) => "Nothing is in flight there.".to_owned(),
        Ok((1, true)) => "One handoff is in flight there. It is not stopped.".to_owned(),
        Ok((total, true)) => {
            format!("{} handoffs are in flight there. They are not stopped.", grouped(total))
        }
        Ok((total, false)) => {
            format!("At least {} handoffs are in flight there. They are not stopped.", grouped(total))
        }
        Err(_) => "What is in flight cannot be counted now; it is not stopped.".to_owned(),
    };
    Ok(Plan {
        title: format!("Freeze {words}"),
        hindrance,
        happens: vec![
            format!("From the next decision on, every handoff {reach}is refused with `POLICY_FROZEN`."),
            in_flight,
            "Only an operator lifts it.".to_owned(),
        ],
        button: "Yes, freeze",
        ask: Ask::of("freeze").body(body.clone()),
        told: |done| match done.truth("heldBefore") {
            true => format!("It was frozen already, by {}; nothing was written.", done.text("by")),
            false => format!(
                "Frozen from entry {} on; {} handoffs in flight were not stopped.",
                done.text("fromSequence"),
                done.or("inFlightTotal", "some")
            ),
        },
        ..plan(visit, &words)
    })
}

pub(super) async fn unfreeze(visit: &Visit) -> Result<Plan, Problem> {
    let (body, words) = scope(visit)?;
    let hindrance = match held(visit, &body).await? {
        Some(_) => None,
        None => Some(Problem::new(Kind::FreezeNotSet, format!("there is no freeze of `{words}`"))),
    };
    Ok(Plan {
        act: Act::Unfreeze,
        title: format!("Lift the freeze of {words}"),
        hindrance,
        happens: vec![
            "Handoffs are decided again from the next one on; those that were refused stay refused."
                .to_owned(),
        ],
        button: "Yes, lift it",
        ask: Ask::of("unfreeze").body(body),
        told: |done| format!("Lifted; decisions go on from entry {}.", done.text("fromSequence")),
        ..plan(visit, &words)
    })
}
