//! What is in force: the state, policies, tokens and keys.

use axum::http::Method;
use serde_json::json;

use super::{get, json, path, problem, query};
use crate::callers::Act;
use crate::http::endpoint::{Body, Endpoint, Form, Repeat, Weight};
use crate::http::{console_links, policies, tokens};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint {
            act: Some(Act::ReadState),
            answers: vec![json(200, "State", "memory/orchestration-state.json")],
            ..get("/v1/state", "getState", "state", "Show the published state", handler!(policies::state))
        },
        Endpoint {
            act: Some(Act::ReadPolicies),
            answers: vec![json(
                200,
                "Policies",
                "The set, its digest, how the last load went, and what waits",
            )],
            ..get(
                "/v1/policies",
                "getPolicies",
                "state",
                "Show the policy set in force",
                handler!(policies::show),
            )
        },
        Endpoint {
            method: Method::POST,
            description: "With [policy] approval = \"operator\", a changed policy set waits for an operator's yes to its digest. The answer is to exactly that set, and counts only while the files still have it.",
            act: Some(Act::ApprovePolicies),
            body: Some(Body {
                description: "The digest of the set that was looked at, yes or no, and why",
                schema: "PolicyAnswer",
                weight: Weight::Act,
                example: || {
                    json!({"digest": "sha256:7777777777777777777777777777777777777777777777777777777777777777",
                        "decision": "approve", "reason": "the new route was reviewed"})
                },
            }),
            answers: vec![
                json(200, "PolicyAnswered", "It is in force, or stays out of it"),
                problem(409, "It does not wait, or the files are another set by now"),
                problem(422, "The body does not say what it must"),
            ],
            ..get(
                "/v1/policies/approval",
                "answerPolicies",
                "people",
                "Answer to a changed policy set",
                handler!(policies::answer),
            )
        },
        Endpoint {
            method: Method::POST,
            description: "Reads policies, keys and tokens again, now, and answers when they are in force. Each comes into force \
                by itself: one whose files cannot be read does not hold up the others. With `part` only that one is read.",
            act: Some(Act::ManageKeys),
            parameters: vec![query(
                "part",
                Form::OneOf(|| vec!["policies", "keys", "tokens"]),
                "tokens",
                "Read this one alone; the others stay as they are in force",
            )],
            answers: vec![json(200, "Reloaded", "In force"), problem(409, "A file cannot be read")],
            repeat: Some(Repeat::Harmless),
            ..get("/v1/reload", "reload", "state", "Put changed files in force", handler!(tokens::reload))
        },
        Endpoint {
            method: Method::POST,
            description: "Makes a link that opens the console in the caller's name: once, and soon.",
            act: Some(Act::OpenConsole),
            answers: vec![json(201, "ConsoleLink", "Where to go")],
            ..get(
                "/v1/console/links",
                "makeConsoleLink",
                "callers",
                "Make a link to the console",
                handler!(console_links::make),
            )
        },
        Endpoint {
            act: Some(Act::ManageTokens),
            answers: vec![json(200, "TokenList", "Never the tokens themselves")],
            ..get("/v1/tokens", "listTokens", "callers", "List tokens", handler!(tokens::list_tokens))
        },
        Endpoint {
            description: "An admin makes any; an operator registers a harness.",
            method: Method::POST,
            act: Some(Act::RegisterHarness),
            body: Some(Body {
                description: "Whose it is",
                schema: "NewToken",
                weight: Weight::Act,
                example: || json!({"name": "router-1", "role": "orchestrator", "agentId": "decision-router"}),
            }),
            answers: vec![
                json(201, "Token", "The token, this once"),
                problem(409, "The name is taken"),
                problem(422, "The body does not say what it must"),
            ],
            ..get("/v1/tokens", "makeToken", "callers", "Make a token", handler!(tokens::make_token))
        },
        Endpoint {
            description: "An admin revokes any; an operator that of a harness.",
            method: Method::DELETE,
            act: Some(Act::RegisterHarness),
            parameters: vec![path("token", Form::Text { max: 64 }, "router-1", "Its name or its id")],
            answers: vec![json(200, "Token", "Revoked"), problem(409, "It cannot be revoked")],
            ..get(
                "/v1/tokens/{token}",
                "revokeToken",
                "callers",
                "Revoke a token",
                handler!(tokens::revoke_token),
            )
        },
        Endpoint {
            act: Some(Act::ManageKeys),
            answers: vec![json(200, "KeyList", "Never the secrets")],
            ..get("/v1/keys", "listKeys", "callers", "List keys", handler!(tokens::list_keys))
        },
        Endpoint {
            method: Method::POST,
            act: Some(Act::ManageKeys),
            body: Some(Body {
                description: "Whose it is, and the secret or the public half",
                schema: "NewKey",
                weight: Weight::Document,
                example: || {
                    json!({"keyId": "user-main-2", "owner": "user:main", "algorithm": "ed25519",
                        "publicKey": "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"})
                },
            }),
            answers: vec![json(201, "Key", "In force"), problem(409, "The id is taken")],
            ..get("/v1/keys", "addKey", "callers", "Add a key", handler!(tokens::add_key))
        },
        Endpoint {
            method: Method::DELETE,
            act: Some(Act::ManageKeys),
            parameters: vec![path("key", Form::Text { max: 128 }, "user-main-2", "Its id")],
            answers: vec![
                json(200, "Key", "What it signed is refused from now on"),
                problem(409, "A file cannot be read"),
            ],
            ..get("/v1/keys/{key}", "removeKey", "callers", "Remove a key", handler!(tokens::remove_key))
        },
    ]
}
