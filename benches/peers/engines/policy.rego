# May this handoff travel? Every reason why not, as a set of codes.
package handoff

import rego.v1

route := data.routes[input.routing.routeKey]

reaches := {route.primaryAgentId} | {agent | some agent in route.aliases} | {agent | agent := route.fallbackAgentId}

codes contains "A2A_ROUTE_UNKNOWN" if not route

codes contains "A2A_ROUTE_TARGET_MISMATCH" if {
	route
	not input.target.agentId in reaches
}

codes contains "A2A_ROUTE_TARGET_MISMATCH" if {
	route
	object.get(route, "fallbackAgentId", "") != input.routing.fallbackAgentId
}

codes contains "A2A_ROUTE_CAPABILITY_MISMATCH" if route.capability != input.target.capability

codes contains "POLICY_STAGE_NOT_REACHED" if {
	route
	input.mode == "live"
}

codes contains "POLICY_STAGE_NOT_REACHED" if {
	input.mode == "simulated"
	object.get(route, "stage", "dev") == "dev"
}

codes contains "POLICY_ROLLBACK_PLAN_MISSING" if not has_rollback

has_rollback if {
	input.rollback.required
	input.rollback.planRef
}

codes contains "POLICY_SIDE_EFFECTS" if {
	input.mode != "live"
	input.safety.allowExternalSideEffects
}

# What is done in somebody's name stays within what that person's policy file, the TaskSpec's own lists and the scope of its
# envelope allow.

delegated if input.authorship.mode == "delegated-human-proxy"

own := input.authorship.delegationPolicy if delegated

scope := input.authorship.envelope.scope if delegated

file := data.delegation[own.policyRef]

channels contains input.authorship.mentionDelegation.channel if input.authorship.mentionDelegationMode == "gated"

agents contains input.target.agentId

agents contains input.routing.fallbackAgentId

covers(patterns, name) if name in patterns

covers(patterns, name) if {
	some pattern in patterns
	endswith(pattern, "*")
	startswith(name, trim_suffix(pattern, "*"))
}

asked := [
	{"code": "POLICY_AGENT_DENIED", "own": own.allowAgents, "file": "allowAgents", "scope": scope.agents, "names": agents},
	{"code": "POLICY_CHANNEL_DENIED", "own": own.allowChannels, "file": "allowChannels", "scope": scope.channels, "names": channels},
	{"code": "POLICY_TASK_DENIED", "own": own.allowTasks, "file": "allowTasks", "scope": scope.tasks, "names": {input.intent.operation}},
]

codes contains "POLICY_REF_UNKNOWN" if {
	own
	not file
}

codes contains "POLICY_PRINCIPAL_DENIED" if {
	file
	not covers(file.principals, input.authorship.envelope.principal.id)
}

codes contains "POLICY_CHANNEL_DENIED" if {
	file
	count(channels) == 0
	not file.allowWithoutChannel
}

codes contains list.code if {
	some list in asked
	some name in list.names
	not name in list.own
}

codes contains list.code if {
	file
	some list in asked
	some name in list.names
	not covers(file[list.file], name)
}

codes contains "POLICY_ALLOWLIST_EXCEEDED" if {
	file
	some list in asked
	some name in list.own
	not covers(file[list.file], name)
}

codes contains "POLICY_SCOPE_EXCEEDED" if {
	some list in asked
	some name in list.scope
	not name in list.own
}

codes contains "POLICY_SCOPE_EXCEEDED" if {
	some list in asked
	some name in list.names
	not name in list.scope
}
