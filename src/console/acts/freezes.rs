//! Stopping decisions, and letting them go on.

use serde_json::{Value as Json, json};

use super::super::door::Visit;
use super::super::facts::grouped;
use super::super::filters::Filters;
use super::super::form::Fields;
use super::{Input, Plan, needed};
use crate::callers::Act;
use crate::http::{Ask, Problem};
use crate::limits;

/// The form of a freeze as it was filled in, with what it leaves open.
pub(in super::super) fn marked(fields: &Fields) -> Filters {
    let mut form = Filters::read("", &["scope", "mode", "routeKey"], fields);
    for (scope, name, open) in [("mode", "mode", "choose a mode"), ("route", "routeKey", "choose a route")] {
        if form.is("scope", scope) && form.given(name).is_empty() {
            form.refuse(name, open);
        }
    }
    form
}

/// Where to finish the form of a freeze; nothing if it says enough.
pub(super) fn unfinished(fields: &Fields) -> Option<String> {
    let form = marked(fields);
    (!form.are_right()).then(|| format!("/console/freezes?{}#freeze", form.right()))
}

/// The body of the request, and its scope in words.
fn scope(visit: &Visit) -> Result<(Json, String), Problem> {
    let scope = needed(visit, "scope")?;
    let mut body = json!({"scope": scope, "reason": visit.fields.text("reason")});
    // A form has fields for all scopes; those of the others do not count.
    let name = match scope {
        "mode" => Some("mode"),
        "route" => Some("routeKey"),
        _ => None,
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

pub(super) async fn freeze(visit: &Visit) -> Result<Plan, Problem> {
    let (body, words) = scope(visit)?;
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
        happens: vec![
            format!("From the next decision on, every handoff {reach}is refused with `POLICY_FROZEN`."),
            in_flight,
            "Only an operator lifts it.".to_owned(),
        ],
        button: "Yes, freeze",
        ask: Ask::of("freeze").body(body.clone()),
        told: |done| {
            format!(
                "Frozen from entry {} on; {} handoffs in flight were not stopped.",
                done.text("fromSequence"),
                done.or("inFlightTotal", "some")
            )
        },
        ..plan(visit, &words)
    })
}

pub(super) fn unfreeze(visit: &Visit) -> Result<Plan, Problem> {
    let (body, words) = scope(visit)?;
    Ok(Plan {
        act: Act::Unfreeze,
        title: format!("Lift the freeze of {words}"),
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
