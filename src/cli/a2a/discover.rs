//! `handoffd a2a discover`: who an agent is.

use clap::Args;
use serde_json::Value as Json;

use super::super::asking::{details, rows, table, text, texts};
use super::super::{Context, Exit};
use crate::a2a::client::{Client, ClientFault};

/// Show who an agent is, what it speaks, and what you may do.
///
/// With a token the extended card is asked for, which says what its holder may do.
#[derive(Debug, Args)]
pub(super) struct Discover;

pub(super) fn run(context: &Context, client: &Client<'_>, is_known: bool) -> Result<Exit, ClientFault> {
    let extended = is_known && is_extended(client.card());
    let card = if extended { client.extended_card()? } else { client.card().clone() };
    if context.printer.is_json() {
        context.printer.value(&card);
        return Ok(Exit::Done);
    }
    let capabilities = card.get("capabilities").unwrap_or(&Json::Null);
    let able = |name: &str| capabilities.get(name) == Some(&Json::Bool(true));
    let abilities: Vec<&str> = [("streaming", "streams"), ("pushNotifications", "push notifications")]
        .into_iter()
        .filter_map(|(name, word)| able(name).then_some(word))
        .collect();
    let interfaces = rows(&card, "supportedInterfaces")
        .iter()
        .map(|one| format!("{} {}", text(one, "protocolVersion"), text(one, "protocolBinding")));
    let mut spoken: Vec<String> = interfaces.collect();
    if spoken.is_empty() {
        spoken.push(text(&card, "protocolVersion"));
    }
    details(
        context,
        &[
            ("agent", text(&card, "name")),
            ("version", text(&card, "version")),
            ("about", text(&card, "description")),
            ("url", text(&card, "url")),
            ("speaks", format!("{}; {} is used here", spoken.join(", "), client.version().as_str())),
            ("does", if abilities.is_empty() { "-".to_owned() } else { abilities.join(", ") }),
        ],
    );
    for extension in rows(capabilities, "extensions") {
        let Some(params) = extension.get("params") else { continue };
        let you = format!("{} {}", text(params, "role"), text(params, "agentId"));
        details(
            context,
            &[("you", you.trim_end_matches([' ', '-']).to_owned()), ("may", texts(params, "may"))],
        );
    }
    let skills: Vec<Vec<String>> = rows(&card, "skills")
        .iter()
        .map(|skill| vec![text(skill, "id"), text(skill, "name"), texts(skill, "tags")])
        .collect();
    if !skills.is_empty() {
        table(context, &["skill", "name", "tags"], &skills);
    }
    if !is_known && is_extended(client.card()) {
        context.printer.note("with a token in HANDOFFD_TOKEN, the agent says what you may do");
    }
    Ok(Exit::Done)
}

fn is_extended(card: &Json) -> bool {
    let is = |pointer: &str| card.pointer(pointer) == Some(&Json::Bool(true));
    is("/capabilities/extendedAgentCard") || is("/supportsAuthenticatedExtendedCard")
}
