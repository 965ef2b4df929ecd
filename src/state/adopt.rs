//! What of an edited state file may be taken over: who serves a route, and nothing else.
//!
//! The state file is a view, so an edit in it changes nothing by itself. Adopting writes an edit of the routing
//! table to where routing is declared, the policy set; from there it goes the way of every policy change, and the
//! ledger records it. Stages, blocks, handoffs and audit rows are what the ledger says, whatever the file says.

use serde_json::{Map, Value as Json};

/// The members of a route that may be adopted.
const FIELDS: [&str; 3] = ["capability", "primaryAgentId", "fallbackAgentId"];

/// What adopting comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Adoption {
    /// What is different in the routing table afterwards.
    pub changes: Vec<RouteChange>,
    /// Edits that stay without effect.
    pub left: Vec<NotAdopted>,
    /// `policies/routes.json` with the changes in it.
    pub routes: Json,
}

/// One member of one route.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteChange {
    pub route_key: String,
    pub field: &'static str,
    pub from: Json,
    pub to: Json,
}

/// An edit that is not adopted, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAdopted {
    /// JSON pointer into the state file.
    pub pointer: String,
    pub why: &'static str,
}

/// Compares an edited state file with what the ledger gives at the same entry, and carries routing edits over into
/// the routing table `routes`.
pub fn adopt(edited: &Json, ledger: &Json, routes: &Json) -> Adoption {
    let mut adoption = Adoption { changes: Vec::new(), left: Vec::new(), routes: routes.clone() };
    let nothing = Map::new();
    let (edited, ledger) = (edited.as_object().unwrap_or(&nothing), ledger.as_object().unwrap_or(&nothing));
    for name in names(edited, ledger) {
        let (is, was) = (edited.get(name), ledger.get(name));
        if is == was {
            continue;
        }
        match (name, is.and_then(Json::as_object), was.and_then(Json::as_object)) {
            ("routingTable", Some(is), Some(was)) => adoption.routing(is, was),
            _ => adoption.leave(&[name], why_not(name)),
        }
    }
    adoption
}

/// The names in either object, those of the first one first.
fn names<'m>(one: &'m Map<String, Json>, other: &'m Map<String, Json>) -> impl Iterator<Item = &'m str> {
    let only_other = other.keys().filter(|name| !one.contains_key(*name));
    one.keys().chain(only_other).map(String::as_str)
}

fn why_not(member: &str) -> &'static str {
    match member {
        "activeHandoffs" => "what became of a handoff is decided by events, not by edits",
        "promotion" => "a stage is earned and a block is lifted by promotion, not by edits",
        "rollback" => "a rollback is asked for, not edited in",
        "delegationAuditLog" => "audit rows are the ledger's; none is added, changed or dropped",
        "routingTable" => "it is no table of routes any more",
        "ledger" | "updatedAt" | "schemaVersion" => "it says what the ledger says",
        _ => "the state file has no such member",
    }
}

impl Adoption {
    fn leave(&mut self, path: &[&str], why: &'static str) {
        let pointer =
            path.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect();
        self.left.push(NotAdopted { pointer, why });
    }

    fn routing(&mut self, edited: &Map<String, Json>, ledger: &Map<String, Json>) {
        for key in names(edited, ledger) {
            match (edited.get(key), ledger.get(key)) {
                (Some(is), Some(was)) if is == was => {}
                (Some(Json::Object(is)), Some(Json::Object(was))) => self.route(key, is, was),
                (Some(_), None) => self.leave(
                    &["routingTable", key],
                    "a new route needs more than the state file says; declare it in policies/routes.json",
                ),
                (None, _) => self.leave(&["routingTable", key], "a route is removed in policies/routes.json"),
                _ => self.leave(&["routingTable", key], "it is no route any more"),
            }
        }
    }

    fn route(&mut self, key: &str, edited: &Map<String, Json>, ledger: &Map<String, Json>) {
        for name in names(edited, ledger) {
            let (is, was) = (edited.get(name), ledger.get(name));
            if is == was {
                continue;
            }
            let path = ["routingTable", key, name];
            let Some(field) = FIELDS.into_iter().find(|field| *field == name) else {
                self.leave(&path, "a route has no such member");
                continue;
            };
            let (Some(is), Some(was)) = (is, was) else {
                self.leave(&path, "the member is missing; null is how nothing is written");
                continue;
            };
            let declared = self.routes.get_mut("routes").and_then(|routes| routes.get_mut(key));
            let Some(declared) = declared.and_then(Json::as_object_mut) else {
                self.leave(&path, "policies/routes.json does not declare the route any more");
                continue;
            };
            let now = declared.get(field).cloned().unwrap_or(Json::Null);
            if now == *is {
                // Declared already: the ledger will hear of it when the policy set is loaded.
                continue;
            }
            if now != *was {
                self.leave(&path, "policies/routes.json was edited as well, and says something else");
                continue;
            }
            // Where routes are declared, nothing is written by leaving the member out.
            if is.is_null() {
                declared.shift_remove(field);
            } else {
                declared.insert(field.to_owned(), is.clone());
            }
            self.changes.push(RouteChange { route_key: key.to_owned(), field, from: now, to: is.clone() });
        }
    }
}
