//! G0: is this a TaskSpec, from whom it says, along a route we know, with an input its schema takes?

use super::codes::Code;
use super::verdict::Findings;
use super::{Caller, Ground};
use crate::contract::{Finding, Instance, Mode, TaskSpec, shape_findings};
use crate::dispatch::{execution_plane, signing};
use crate::json::{Document, printable};
use crate::limits;
use crate::policy::{InputSchema, PolicySet, Profile, ReferenceFault, Route, names_a_version};
use crate::proof::Key;
use crate::timestamp::Timestamp;

/// Returns until when the key that must sign what is dispatched counts.
pub(super) fn judge(
    document: &Document<'_>,
    spec: &TaskSpec<'_>,
    sound: bool,
    ground: &Ground<'_>,
    findings: &mut Findings,
) -> Option<Timestamp> {
    if !sound {
        shape(document, findings);
    }
    caller(spec, ground.caller, findings);
    created_at(spec, ground.now, findings);
    let route = route(spec, ground.policies, findings);
    let signer = signer(spec, route, ground, findings);
    input(spec, route, signer, ground, findings);
    let demanded = route.zip(spec.mode.get()).is_some_and(|(route, mode)| signing::is_required(route, mode));
    signer.filter(|_| demanded)?.not_after()
}

fn shape(document: &Document<'_>, findings: &mut Findings) {
    let mut any = false;
    for finding in shape_findings(document) {
        any = true;
        let is_list = finding.pointer.is_empty() && document.root().is_array();
        let hint = match finding.hint {
            None if is_list => "send one TaskSpec; POST /v1/handoffs/batch takes a list of them".to_owned(),
            hint => hint.unwrap_or_default(),
        };
        findings.refuse(Code::TaskspecInvalid, finding.pointer, finding.message, hint);
    }
    // The typed reading decides. Should the schema ever have no words for its no, it stays a no.
    if !any {
        findings.refuse(
            Code::TaskspecInvalid,
            "",
            "the document is not a TaskSpec",
            "see docs/schemas/task-spec.schema.json",
        );
    }
}

fn caller(spec: &TaskSpec<'_>, caller: Caller<'_>, findings: &mut Findings) {
    let Some(source) = spec.source.agent_id.get() else { return };
    match caller {
        Caller::Agent(agent) if agent != source.as_str() => findings.refuse(
            Code::SourceMismatch,
            "/source/agentId",
            format!("the caller speaks for `{}`, not for `{}`", printable(agent), printable(source.as_str())),
            "submit with the token of the source agent",
        ),
        Caller::AnySourceButLive if spec.mode.get() == Some(Mode::Live) => findings.refuse(
            Code::SourceMismatch,
            "/source/agentId",
            format!("the caller may not submit live work as `{}`", printable(source.as_str())),
            "submit live work with the source agent's own orchestrator token",
        ),
        Caller::Agent(_) | Caller::AnySourceButLive | Caller::Unchecked => {}
    }
}

fn created_at(spec: &TaskSpec<'_>, now: Timestamp, findings: &mut Findings) {
    if let Some(created_at) = spec.created_at.get()
        && created_at > now.plus_seconds(limits::SKEW_S)
    {
        findings.refuse(
            Code::TimestampWindowExceeded,
            "/createdAt",
            format!("`createdAt` {created_at} lies more than {} seconds after {now}", limits::SKEW_S),
            "set the sender's clock by NTP and stamp the TaskSpec when it is made",
        );
    }
}

/// Which route carries it, and do target, fallback and capability agree with the route?
fn route<'p>(spec: &TaskSpec<'_>, policies: &'p PolicySet, findings: &mut Findings) -> Option<&'p Route> {
    let key = spec.routing.route_key.get()?.as_str();
    let Some(route) = policies.route(key) else {
        findings.refuse(
            Code::RouteUnknown,
            "/routing/routeKey",
            format!("there is no route `{}`", printable(key)),
            "name a route of policies/routes.json, or have an operator add this one",
        );
        return None;
    };
    if let Some(target) = spec.target.agent_id.get()
        && !route.reaches(target.as_str())
    {
        findings.refuse(
            Code::RouteTargetMismatch,
            "/target/agentId",
            format!("route `{}` does not lead to `{}`", printable(key), printable(target.as_str())),
            format!("the route's agent is `{}`", route.primary_agent_id),
        );
    }
    if let Some(fallback) = spec.routing.fallback_agent_id.get()
        && route.fallback_agent_id.as_deref() != Some(fallback.as_str())
    {
        let hint = match &route.fallback_agent_id {
            Some(own) => format!("the route's fallback is `{own}`"),
            None => "the route has no fallback; leave fallbackAgentId out".to_owned(),
        };
        findings.refuse(
            Code::RouteTargetMismatch,
            "/routing/fallbackAgentId",
            format!("`{}` is not the fallback of route `{}`", printable(fallback.as_str()), printable(key)),
            hint,
        );
    }
    if let Some(capability) = spec.target.capability.get()
        && route.capability != capability.as_str()
    {
        findings.refuse(
            Code::RouteCapabilityMismatch,
            "/target/capability",
            format!("route `{}` does not offer `{}`", printable(key), printable(capability.as_str())),
            format!("the route offers `{}`", route.capability),
        );
    }
    Some(route)
}

/// The key that will sign what is dispatched. A receiver that demands signatures would refuse what has none, so
/// that is said now, while nothing has been sent.
fn signer<'g>(
    spec: &TaskSpec<'_>,
    route: Option<&Route>,
    ground: &Ground<'g>,
    findings: &mut Findings,
) -> Option<&'g Key> {
    match signing::signing_key(route?, spec.mode.get()?, ground.keyring, ground.now) {
        Ok(key) => key,
        Err(fault) => {
            findings.refuse(Code::KeyUnknown, "/routing/routeKey", fault.message(), fault.hint());
            None
        }
    }
}

const SCHEMA_REF: &str = "/intent/inputSchemaRef";

fn input(
    spec: &TaskSpec<'_>,
    route: Option<&Route>,
    signer: Option<&Key>,
    ground: &Ground<'_>,
    findings: &mut Findings,
) {
    let Some(reference) = spec.intent.input_schema_ref.get().map(|reference| reference.as_str()) else {
        return;
    };
    let file = match ground.policies.references().resolve(reference) {
        Ok(file) => file,
        Err(fault @ (ReferenceFault::NotPlain | ReferenceFault::LeadsOut)) => {
            return findings.refuse(
                Code::SchemaRefForbidden,
                SCHEMA_REF,
                format!("`{}` {fault}", printable(reference)),
                "give a path below the workspace root, such as agents/x/config/y.schema.v1.json",
            );
        }
        Err(fault) => {
            return findings.refuse(
                Code::SchemaNotFound,
                SCHEMA_REF,
                format!("`{}` {fault}", printable(reference)),
                "name a .json file below the workspace root",
            );
        }
    };
    if let Some(route) = route
        && !route.takes_input_of(reference)
    {
        findings.refuse(
            Code::SchemaRefForbidden,
            SCHEMA_REF,
            format!("`{}` is no input schema of the route", printable(reference)),
            format!("the route takes {}", route.input_schema_refs.join(" or ")),
        );
    }
    let Some(json) = &file.json else {
        return findings.refuse(
            Code::SchemaNotFound,
            SCHEMA_REF,
            format!("`{}` is not a JSON file", printable(reference)),
            "name a .json file below the workspace root",
        );
    };
    let schema = InputSchema::compiled(file.digest, json);
    let name = reference.rsplit('/').next().unwrap_or_default();
    if !names_a_version(name) && !schema.id_has_version {
        findings.refuse(
            Code::SchemaUnversioned,
            SCHEMA_REF,
            format!("`{}` has no version in its name or $id", printable(reference)),
            "name it like operation.schema.v1.json, so that a later change does not change old TaskSpecs",
        );
    }
    let compiled = match &schema.compiled {
        Ok(compiled) => compiled,
        Err(why) => {
            return findings.refuse(
                Code::SchemaInvalid,
                SCHEMA_REF,
                format!("`{}` cannot be used as a schema: {}", printable(reference), printable(why)),
                "correct the schema; it must stand by itself, without references to other documents",
            );
        }
    };
    // Without a route nobody knows what the target would receive.
    match route.map(|route| route.profile) {
        None => {}
        Some(Profile::Plain) => {
            let Some(input) = spec.intent.input.get() else { return };
            let input = Instance::Document(input);
            if !compiled.is_valid(input) {
                for Finding { pointer, message, hint, .. } in compiled.findings(input) {
                    let path = format!("/intent/input{pointer}");
                    findings.refuse(Code::SchemaInvalid, path, message, hint.unwrap_or_default());
                }
            }
        }
        Some(Profile::ExecutionPlaneV1) => {
            if let Some(envelope) = execution_plane::proposed(spec, ground.now, signer)
                && !compiled.is_valid(envelope.instance())
            {
                for Finding { pointer, message, hint, .. } in compiled.findings(envelope.instance()) {
                    let path = execution_plane::pointer_in_task_spec(&pointer);
                    findings.refuse(Code::SchemaInvalid, path, message, hint.unwrap_or_default());
                }
            }
            for (path, message, hint) in execution_plane::receiver_findings(spec) {
                if !findings.refused_at(path) {
                    findings.refuse(Code::SchemaInvalid, path, message, hint);
                }
            }
        }
    }
}
