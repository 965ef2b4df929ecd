//! Cedar: routes and policy files are entities, the TaskSpec is a request with a context.

use cedar_policy::{
    Authorizer, Context, Decision, Entities, EntityId, EntityTypeName, EntityUid, PolicySet, Request,
    RestrictedExpression,
};
use serde_json::{Value as Json, json};

use crate::{Fault, Opinion, Rules};

const POLICIES: &str = include_str!("../policy.cedar");

pub(crate) struct Gate {
    authorizer: Authorizer,
    policies: PolicySet,
    entities: Entities,
    agent: EntityTypeName,
    route: EntityTypeName,
    file: EntityTypeName,
    handoff: EntityUid,
}

impl Gate {
    pub(crate) fn new(rules: &Rules) -> Result<Self, Fault> {
        let mut entities = Vec::new();
        for (key, route) in rules.routes.as_object().into_iter().flatten() {
            let fallback = route.get("fallbackAgentId");
            let aliases = route["aliases"].as_array().into_iter().flatten();
            let reaches: Vec<&Json> =
                std::iter::once(&route["primaryAgentId"]).chain(fallback).chain(aliases).collect();
            let mut attributes = json!({"capability": route["capability"], "reaches": reaches, "stage": route["stage"].as_str().unwrap_or("dev")});
            if let Some(fallback) = fallback {
                attributes["fallback"] = fallback.clone();
            }
            entities.push(json!({"uid": {"type": "Route", "id": key}, "attrs": attributes, "parents": []}));
        }
        for (path, file) in &rules.delegation {
            let attributes = json!({
                "principals": file["principals"], "allowAgents": file["allowAgents"], "allowChannels": file["allowChannels"],
                "allowWithoutChannel": file["allowWithoutChannel"].as_bool().unwrap_or(false),
            });
            entities
                .push(json!({"uid": {"type": "PolicyFile", "id": path}, "attrs": attributes, "parents": []}));
        }
        Ok(Self {
            authorizer: Authorizer::new(),
            policies: POLICIES.parse()?,
            entities: Entities::from_json_value(Json::Array(entities), None)?,
            agent: "Agent".parse()?,
            route: "Route".parse()?,
            file: "PolicyFile".parse()?,
            handoff: r#"Action::"handoff""#.parse()?,
        })
    }

    pub(crate) fn judge(&self, body: &[u8]) -> Result<Opinion, Fault> {
        let spec: Json = serde_json::from_slice(body)?;
        let source = uid(&self.agent, text(&spec["source"]["agentId"])?);
        let route = uid(&self.route, text(&spec["routing"]["routeKey"])?);
        let request = Request::new(source, self.handoff.clone(), route, self.context(&spec)?, None)?;
        let response = self.authorizer.is_authorized(&request, &self.policies, &self.entities);
        if let Some(error) = response.diagnostics().errors().next() {
            return Err(error.to_string().into());
        }
        let handoff_id = text(&spec["handoffId"])?.to_owned();
        if response.decision() == Decision::Allow {
            return Ok(Opinion { handoff_id, codes: Vec::new() });
        }
        let codes = response.diagnostics().reason().filter_map(|id| self.policies.annotation(id, "id"));
        Ok(Opinion { handoff_id, codes: codes.map(str::to_owned).collect() })
    }

    fn context(&self, spec: &Json) -> Result<Context, Fault> {
        let (target, fallback) = (&spec["target"], spec["routing"].get("fallbackAgentId"));
        let mut pairs = vec![
            pair("target", string(&target["agentId"])?),
            pair("capability", string(&target["capability"])?),
            pair("mode", string(&spec["mode"])?),
            pair("operation", string(&spec["intent"]["operation"])?),
            pair("sideEffects", boolean(&spec["safety"]["allowExternalSideEffects"])),
            pair("rollbackRequired", boolean(&spec["rollback"]["required"])),
        ];
        if let Some(plan) = spec["rollback"].get("planRef") {
            pairs.push(pair("rollbackPlan", string(plan)?));
        }
        if let Some(fallback) = fallback {
            pairs.push(pair("fallback", string(fallback)?));
        }
        let authorship = &spec["authorship"];
        if authorship["mode"] == "delegated-human-proxy" {
            pairs.push(pair("agents", set(std::iter::once(&target["agentId"]).chain(fallback))?));
            pairs.push(pair("delegation", self.delegation(authorship)?));
        }
        Ok(Context::from_pairs(pairs)?)
    }

    fn delegation(&self, authorship: &Json) -> Result<RestrictedExpression, Fault> {
        let (own, envelope) = (&authorship["delegationPolicy"], &authorship["envelope"]);
        let is_gated = authorship["mentionDelegationMode"] == "gated";
        let channel = is_gated.then(|| &authorship["mentionDelegation"]["channel"]);
        let policy = uid(&self.file, text(&own["policyRef"])?);
        let mut pairs = vec![
            pair("policy", RestrictedExpression::new_entity_uid(policy)),
            pair("principal", string(&envelope["principal"]["id"])?),
            pair("channels", set(channel)?),
        ];
        for name in ["allowAgents", "allowChannels", "allowTasks"] {
            pairs.push(pair(name, list(&own[name])?));
        }
        for (name, member) in
            [("scopeAgents", "agents"), ("scopeChannels", "channels"), ("scopeTasks", "tasks")]
        {
            pairs.push(pair(name, list(&envelope["scope"][member])?));
        }
        Ok(RestrictedExpression::new_record(pairs)?)
    }
}

fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

fn pair(name: &str, value: RestrictedExpression) -> (String, RestrictedExpression) {
    (name.to_owned(), value)
}

fn text(value: &Json) -> Result<&str, Fault> {
    value.as_str().ok_or_else(|| "a string is missing".into())
}

fn string(value: &Json) -> Result<RestrictedExpression, Fault> {
    Ok(RestrictedExpression::new_string(text(value)?.to_owned()))
}

fn boolean(value: &Json) -> RestrictedExpression {
    RestrictedExpression::new_bool(value.as_bool().unwrap_or(false))
}

fn set<'a>(values: impl IntoIterator<Item = &'a Json>) -> Result<RestrictedExpression, Fault> {
    Ok(RestrictedExpression::new_set(values.into_iter().map(string).collect::<Result<Vec<_>, _>>()?))
}

fn list(value: &Json) -> Result<RestrictedExpression, Fault> {
    set(value.as_array().into_iter().flatten())
}
